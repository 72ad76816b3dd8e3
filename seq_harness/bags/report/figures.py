"""The figures of a report: what its lines say in numbers, and what the run counted itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from seq_harness.bags.report.data import Channel, EventKind, Floats, Lines, ReportData
from seq_harness.bags.report.moments import moments, period_s

Value: TypeAlias = 'float | int | str | bool | None'


@dataclass(frozen=True)
class Figure:
    """One figure, and when it was met where that is one instant."""

    name: str
    value: Value
    unit: str = ''
    at_s: float | None = None


def figures(data: ReportData) -> tuple[Figure, ...]:
    """Return the figures that the lines, acts and events of a run make."""
    return tuple(_all(data))


def counted(data: ReportData) -> tuple[Figure, ...]:
    """Return the figures that the run counted itself, under dotted names."""
    return tuple(
        Figure(name, value, _unit_of(name))
        for name, value in _flat(data.figures)
        if isinstance(value, float | int | str)
    )


def as_plain(data: ReportData) -> dict[str, Any]:
    """Return all figures and moments as plain data, fit for JSON."""
    return {
        'title': data.title,
        'source': data.source,
        'start_ns': data.start_ns,
        'length_s': round(data.length_s, 6),
        'reason': data.reason,
        'facts': dict(data.facts),
        'figures': {each.name: _plain(each) for each in figures(data)},
        'counted': {each.name: each.value for each in counted(data)},
        'moments': [
            {
                'at_s': round(each.at_s, 6),
                'channel': each.channel,
                'joint': each.joint,
                'jump': round(each.jump, 6),
                'usual': round(each.usual, 6),
                'unit': each.unit,
                'causes': list(each.causes),
            }
            for each in moments(data)
        ],
        'missing': list(data.missing),
    }


def deviation(channel: Channel) -> Lines | None:
    """
    Return how far each measured value is from the command of its instant, [N, joints of both].

    None where nothing was measured, or before anything was commanded.
    """
    commanded, measured = channel.commanded, channel.measured
    if measured is None or not len(commanded) or not len(measured) or channel.is_rate:
        return None
    names = [name for name in measured.names if name in commanded.names]
    last = np.searchsorted(commanded.t_s, measured.t_s, side='right') - 1
    there = (last >= 0) & (measured.t_s <= commanded.t_s[-1])
    if not names or not there.any():
        return None
    theirs = measured.values[:, [measured.names.index(name) for name in names]][there]
    ours = commanded.values[:, [commanded.names.index(name) for name in names]][last[there]]
    return Lines(tuple(names), measured.t_s[there], np.abs(theirs - ours))


def _all(data: ReportData) -> Iterator[Figure]:
    yield Figure('length', round(data.length_s, 3), 's')
    for channel in data.channels:
        yield from _of_channel(channel)
    for kind in EventKind:
        times = data.times_of(kind)
        if len(times):
            yield Figure(f'{kind.value} events', len(times))
    yield from _joins(data)
    yield from _of_acts(data)
    if data.predictions:
        yield Figure('chunks', len({each.name for each in data.predictions}))
    for title, lines, unit in (
        ('age of', data.ages_ms, 'ms'),
        ('backlog:', data.backlog, ''),
    ):
        for column, name in enumerate(lines.names if lines else ()):
            if lines is not None:
                at = lines.t_s, lines.values[:, column]
                yield from _spread(f'{title} {name}', *at, unit)


def _of_channel(channel: Channel) -> Iterator[Figure]:
    name, lines = channel.name, channel.commanded
    yield Figure(f'{name}: setpoints', len(lines))
    period = period_s(channel)
    if not period:
        return
    yield Figure(f'{name}: median period', round(period * 1e3, 3), 'ms')
    gaps = np.diff(lines.t_s)
    widest = int(gaps.argmax())
    yield Figure(
        f'{name}: longest gap', round(float(gaps[widest]) * 1e3, 3), 'ms', float(lines.t_s[widest])
    )
    if len(channel.late_ms):
        yield from _spread(f'{name}: lateness', lines.t_s, channel.late_ms, 'ms')
    off = deviation(channel)
    for column, joint in enumerate(off.names if off else ()):
        if off is not None:
            worst = int(np.nan_to_num(off.values[:, column]).argmax())
            yield Figure(
                f'{name}: largest |commanded - measured| of {joint}',
                _rounded(off.values[worst, column]),
                channel.unit,
                float(off.t_s[worst]),
            )


def _joins(data: ReportData) -> Iterator[Figure]:
    """Yield the largest step of a joint at a join, channel by channel."""
    times = data.times_of(EventKind.JOIN)
    for channel in data.channels:
        steps = join_steps(channel, times)
        if len(steps):
            row, column = np.unravel_index(int(steps.values.argmax()), steps.values.shape)
            joint = steps.names[int(column)]
            yield Figure(
                f'{channel.name}: largest step at a join ({joint})',
                _rounded(steps.values[row, column]),
                channel.unit,
                float(steps.t_s[row]),
            )


def join_steps(channel: Channel, times: Floats) -> Lines:
    """Return by how much each joint changed with the first setpoint after each join, [K, J]."""
    lines = channel.commanded
    after = np.searchsorted(lines.t_s, times - 1e-6)
    after = np.unique(after[(after > 0) & (after < len(lines))])
    changed = np.nan_to_num(np.abs(lines.values[after] - lines.values[after - 1]))
    return Lines(lines.names, lines.t_s[after], changed)


def _of_acts(data: ReportData) -> Iterator[Figure]:
    if not data.acts:
        return
    yield Figure('acts', len(data.acts))
    failed = [act for act in data.acts if act.outcome]
    yield Figure('acts without an answer', len(failed), '', failed[0].asked_s if failed else None)
    answered = [act for act in data.acts if act.answered_s is not None]
    asked_s = np.array([act.asked_s for act in answered])
    whole_ms = np.array([((act.answered_s or 0.0) - act.asked_s) * 1e3 for act in answered])
    yield from _spread('act: asked to answered', asked_s, whole_ms, 'ms')
    for part in dict.fromkeys(part for act in data.acts for part in act.parts_ms):
        held = [act for act in data.acts if part in act.parts_ms]
        at_s = np.array([act.asked_s for act in held])
        yield from _spread(f'act: {part}', at_s, np.array([a.parts_ms[part] for a in held]), 'ms')


def _spread(name: str, t_s: Floats, values: Floats, unit: str) -> Iterator[Figure]:
    """Yield the median, the 99th percentile and the largest of values that are there."""
    there = np.isfinite(values)
    if not there.any():
        return
    t_s, values = t_s[there], values[there]
    yield Figure(f'{name}, median', _rounded(np.percentile(values, 50)), unit)
    yield Figure(f'{name}, p99', _rounded(np.percentile(values, 99, method='nearest')), unit)
    largest = int(values.argmax())
    yield Figure(f'{name}, largest', _rounded(values[largest]), unit, float(t_s[largest]))


def _rounded(value: Any) -> float:
    return float(f'{float(value):.5g}')


def _plain(figure: Figure) -> dict[str, Any]:
    plain: dict[str, Any] = {'value': figure.value, 'unit': figure.unit}
    if figure.at_s is not None:
        plain['at_s'] = round(figure.at_s, 6)
    return plain


def _flat(values: Mapping[str, Any], prefix: str = '') -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f'{prefix}{key}.')
        else:
            yield f'{prefix}{key}', value


def _unit_of(name: str) -> str:
    """Read the unit out of a name such as `lateness_ms.p99`; counts of it have none."""
    if name.endswith('.count'):
        return ''
    for part in reversed(name.split('.')):
        for unit in ('ms', 's', 'm'):
            if part.endswith(f'_{unit}'):
                return unit
    return ''

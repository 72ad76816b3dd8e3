"""The moments at which commands jumped most, and what happened there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from seq_harness.bags.report.data import Channel, Event, EventKind, Floats, Lines, ReportData

APART_S = 0.25
"""Jumps closer than this are one moment."""

SMALLEST_RANGE = 0.1
"""A joint that moves less, in its unit, is measured against this, so that noise is no jump."""

SMALLEST_SCORE = 1e-6
"""Jumps below this part of a joint's range a second come of rounding."""

LATE_MS = 5.0
"""Lateness below this is no reason for a jump, however short the period is."""

ALIKE = 0.8
"""Two jumps one after the other belong together from this ratio on."""

SAME_S = 1e-6
"""Instants closer than this are the same."""

SEAM_SETPOINTS = 4
"""A join still shows so many setpoints later, as a seam leads over."""

TELLING = (EventKind.STATE, EventKind.INSTRUCTION, EventKind.GUARD, EventKind.STARVED,
           EventKind.FAULT)  # fmt: skip


@dataclass(frozen=True)
class Moment:
    """One jump of a commanded value."""

    at_s: float
    channel: str
    joint: str
    jump: float
    """By how much the velocity changed from one setpoint to the next, in `unit`."""
    unit: str
    usual: float
    """The median jump of that joint."""
    causes: tuple[str, ...]
    """What happened there; empty where the rows of one chunk say so themselves."""


@dataclass(frozen=True)
class _Jump:
    """Setpoint `index` of a channel, and how far it jumped: `score` compares all joints."""

    score: float
    channel: Channel
    index: int
    column: int
    size: float


def moments(data: ReportData, most: int = 8) -> tuple[Moment, ...]:
    """
    Return the largest jumps, the largest first.

    A jump is the change of velocity between two setpoints, where a velocity is the change from the
    setpoint before in a median period: what a controller that takes each setpoint at once is told.
    Joints are compared by their jump in relation to the range that they were commanded.
    """
    found = sorted(
        (jump for channel in data.channels for jump in _jumps(channel)),
        key=lambda jump: -jump.score,
    )
    chosen: list[_Jump] = []
    for jump in found:
        at_s = _at_s(jump)
        if len(chosen) < most and all(abs(at_s - _at_s(each)) > APART_S for each in chosen):
            chosen.append(jump)
    return tuple(_told(jump, data) for jump in chosen)


def period_s(channel: Channel) -> float:
    """Return the median time between two setpoints; 0 where there are fewer than two."""
    steps = np.diff(channel.commanded.t_s)
    steps = steps[steps > 0]
    return float(np.median(steps)) if len(steps) else 0.0


def _at_s(jump: _Jump) -> float:
    return float(jump.channel.commanded.t_s[jump.index])


def jump_sizes(channel: Channel) -> Lines:
    """Return by how much each joint's velocity changed with each setpoint, [N, J] per second."""
    lines, period = channel.commanded, period_s(channel)
    first = 1 if channel.is_rate else 2
    if len(lines) <= first or not period:
        return Lines(lines.names, lines.t_s[:0], lines.values[:0])
    if channel.is_rate:
        sizes = np.abs(np.diff(lines.values, axis=0))
    else:
        sizes = np.abs(np.diff(lines.values, n=2, axis=0)) / period
    return Lines(lines.names, lines.t_s[first:], np.nan_to_num(sizes))


def worst_joints(channel: Channel, sizes: Lines) -> npt.NDArray[np.intp]:
    """Return which joint jumped furthest with each setpoint, for the range it goes, [N]."""
    scores: Floats = sizes.values / _ranges(channel.commanded.values)
    worst: npt.NDArray[np.intp] = scores.argmax(axis=1)
    return worst


def jump_unit(channel: Channel) -> str:
    """Return the unit of a channel's jumps."""
    if channel.is_rate:
        return channel.unit
    return ', '.join(f'{unit}/s' for unit in (channel.unit or 'unit').split(', '))


def _jumps(channel: Channel) -> Iterator[_Jump]:
    """Yield the largest jump of each stretch of time."""
    sizes = jump_sizes(channel)
    if not len(sizes):
        return
    first = len(channel.commanded) - len(sizes)
    columns = worst_joints(channel, sizes)
    every = np.arange(len(sizes))
    scores = (sizes.values / _ranges(channel.commanded.values))[every, columns]
    stretches = np.floor(sizes.t_s / APART_S)
    borders = np.append(0, np.flatnonzero(np.diff(stretches)) + 1)
    for begin, end in zip(borders, np.append(borders[1:], len(sizes)), strict=True):
        row = int(begin + scores[begin:end].argmax())
        # A step makes two jumps, there and back: the first is where it happened.
        if row and scores[row - 1] > ALIKE * scores[row]:
            row -= 1
        column = int(columns[row])
        if scores[row] > SMALLEST_SCORE:
            size = float(sizes.values[row, column])
            yield _Jump(float(scores[row]), channel, row + first, column, size)


def _ranges(values: Floats) -> Floats:
    """Return how far each line of [N, J] goes, [J]; at least the smallest that counts."""
    empty = np.isnan(values)
    lowest = np.where(empty, np.inf, values).min(axis=0)
    highest = np.where(empty, -np.inf, values).max(axis=0)
    ranges: Floats = np.maximum(highest - lowest, SMALLEST_RANGE)
    return ranges


def _told(jump: _Jump, data: ReportData) -> Moment:
    channel = jump.channel
    return Moment(
        at_s=_at_s(jump),
        channel=channel.name,
        joint=channel.commanded.names[jump.column],
        jump=jump.size,
        unit=jump_unit(channel),
        usual=float(np.median(jump_sizes(channel).values[:, jump.column])),
        causes=tuple(_causes(jump, data)),
    )


def _causes(jump: _Jump, data: ReportData) -> Iterator[str]:
    channel, index = jump.channel, jump.index
    t_s, period = channel.commanded.t_s, period_s(channel)
    at_s, before_s = float(t_s[index]), float(t_s[index - 1])
    pause_s = at_s - before_s
    if pause_s > 2 * period:
        yield f'{pause_s:.3f} s after the setpoint before'
    late = channel.late_ms
    if len(late) and late[index] > max(LATE_MS, 500 * period):
        yield f'sent {late[index]:.1f} ms late'
    left_out = _left_out(channel, index, period)
    if left_out:
        yield f'{left_out} row{"s" if left_out > 1 else ""} left out'
    yield from _join_before(jump, data.events)
    for event in data.events:
        if event.kind in TELLING and before_s - period <= event.at_s <= at_s + period / 2:
            yield event.text


def _join_before(jump: _Jump, events: Sequence[Event]) -> Iterator[str]:
    """Yield the last join, if the setpoint is its first, or of the few that a seam leads over."""
    t_s, at_s = jump.channel.commanded.t_s, _at_s(jump)
    joins = [each for each in events if each.kind is EventKind.JOIN and each.at_s <= at_s + SAME_S]
    if not joins:
        return
    since = jump.index - int(np.searchsorted(t_s, joins[-1].at_s - SAME_S))
    if since == 0:
        yield joins[-1].text
    elif since <= SEAM_SETPOINTS:
        yield f'{joins[-1].text}, {since} setpoint{"s" if since > 1 else ""} before'


def _left_out(channel: Channel, index: int, period: float) -> int:
    """Return how many rows were due between a setpoint and the one before, beyond the time."""
    if not len(channel.late_ms):
        return 0
    t_s, due_s = channel.commanded.t_s, channel.due_s
    beyond_s = (due_s[index] - due_s[index - 1]) - (t_s[index] - t_s[index - 1])
    return max(0, round(float(beyond_s) / period)) if np.isfinite(beyond_s) else 0

"""The rows of the plot: one a joint, and one for each thing that is measured beside them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any, TypeAlias

import numpy as np
from seq_harness.bags.report.arrays import Arrays
from seq_harness.bags.report.data import (
    Act,
    Channel,
    EventKind,
    Floats,
    Lines,
    ReportData,
)
from seq_harness.bags.report.fans import chunk_stride, joined
from seq_harness.bags.report.figures import deviation, join_steps
from seq_harness.bags.report.lanes import bars, by_part, part_ms, WHOLE
from seq_harness.bags.report.moments import jump_sizes, jump_unit, Moment, worst_joints
from seq_harness.bags.report.thinning import thinned

Trace: TypeAlias = dict[str, Any]

POINTS = 1_600_000
"""About how many points of joints a page draws: what a browser still moves smoothly."""

FEWEST_POINTS, MOST_POINTS = 4_000, 200_000
"""What each line is drawn with at least, and at most."""

MOST_EVENTS = 5_000

AROUND, SMALLEST_MARGIN = 0.2, 0.005
"""How much more of a joint's values is shown than it was commanded: a share, and in its unit."""


@dataclass(frozen=True)
class Palette:
    """The colours of one run."""

    commanded: str
    measured: str
    predicted: tuple[str, str]


PALETTES = (
    Palette('#1f5fbf', '#e07b00', ('rgba(70,140,220,.8)', 'rgba(60,165,90,.8)')),
    Palette('#b01b6a', '#7a9a2b', ('rgba(215,100,170,.8)', 'rgba(150,120,215,.8)')),
)

PART_COLOURS = ('#8a8a8a', '#3b7dd8', '#2f9e62', '#c9a227', '#9257b8')

EVENT_COLOURS = {
    EventKind.STATE: '#555555',
    EventKind.INSTRUCTION: '#3b7dd8',
    EventKind.JOIN: '#2f9e62',
    EventKind.GUARD: '#d12f2f',
    EventKind.STARVED: '#c9a227',
    EventKind.FAULT: '#d12f2f',
}


@dataclass(frozen=True)
class Run:
    """One of the runs that a page shows."""

    label: str
    """In front of its lines; empty where there is but one run."""
    data: ReportData
    moments: Sequence[Moment]
    palette: Palette

    def named(self, text: str) -> str:
        return escape(f'{self.label}: {text}' if self.label else text)


@dataclass
class Row:
    """One row of the plot."""

    title: str
    unit: str = ''
    height: int = 110
    traces: list[Trace] = field(default_factory=list)
    ticks: dict[float, str] = field(default_factory=dict)
    """Words for values, where they stand for something."""
    span: tuple[float, float] | None = None
    """What is shown at first; all of it where None."""


class Rows:
    """Make the rows of one page, which may show several runs."""

    def __init__(self, runs: Sequence[Run], arrays: Arrays) -> None:
        self._runs = runs
        self._arrays = arrays
        lines = sum(_line_count(run.data) for run in runs)
        self._most = min(MOST_POINTS, max(FEWEST_POINTS, POINTS // max(1, lines)))
        self._legends: set[str] = set()

    def all(self) -> list[Row]:
        """Return the rows that have something to show, from top to bottom."""
        rows = [
            self._jumps(),
            *self._joints(),
            *self._states(),
            Row('|commanded - measured|', traces=list(self._deviations())),
            Row('setpoint lateness', 'ms', traces=list(self._lateness())),
            Row('observation age', 'ms', traces=list(self._over_time('ages_ms', 'age of '))),
            Row('act, by its parts', 'ms', traces=list(self._act_times())),
            self._timeline(),
            Row('stream backlog', traces=list(self._over_time('backlog', 'backlog, '))),
            self._events(),
        ]
        return [row for row in rows if row.traces]

    def _line(self, name: str, t_s: Floats, values: Floats, **more: Any) -> Trace:
        # One entry a name: what is shown or hidden there goes for all rows.
        first = name not in self._legends
        self._legends.add(name)
        return {
            'type': 'scattergl',
            'mode': 'lines',
            'name': name,
            'legendgroup': name,
            'showlegend': first,
            'legendrank': _rank(name),
            'x': self._arrays.put(t_s, 'f8'),
            'y': self._arrays.put(values),
            **more,
        }

    def _jumps(self) -> Row:
        row, units = Row('jump of the commanded velocity', height=130), set()
        for run in self._runs:
            for channel in run.data.channels:
                sizes = jump_sizes(channel)
                if not len(sizes):
                    continue
                units.add(jump_unit(channel))
                worst = worst_joints(channel, sizes)
                values = sizes.values[np.arange(len(sizes)), worst][:, None]
                drawn = thinned(Lines((channel.name,), sizes.t_s, values), self._most)
                name = run.named(f'jump, {channel.name}')
                colour = {'color': run.palette.commanded, 'width': 1}
                row.traces.append(self._line(name, drawn.t_s, drawn.values[:, 0], line=colour))
            if run.moments:
                row.traces.append(self._moments(run))
        row.unit = units.pop() if len(units) == 1 else ''
        return row

    def _moments(self, run: Run) -> Trace:
        texts = [
            escape(f'{number}: {moment.joint}, {"; ".join(moment.causes) or "within a chunk"}')
            for number, moment in enumerate(run.moments, 1)
        ]
        return self._line(
            run.named('largest jumps'),
            np.array([moment.at_s for moment in run.moments]),
            np.array([moment.jump for moment in run.moments]),
            mode='markers',
            marker={'color': '#d12f2f', 'size': 9, 'symbol': 'circle-open'},
            text=texts,
            hoverinfo='x+text',
        )

    def _joints(self) -> Iterator[Row]:
        """Yield a row a joint, which joints of one name in both runs share."""
        rows: dict[tuple[str, str], Row] = {}
        for run in self._runs:
            for channel in run.data.channels:
                many = len({each.name for each in run.data.channels}) > 1
                for joint in channel.commanded.names:
                    key = self._key(run, channel, joint)
                    title = f'{channel.name}: {joint}' if many and key[0] else joint
                    rows.setdefault(key, Row(title, channel.unit, height=150))
                self._draw_channel(run, channel, rows)
        for key, row in rows.items():
            row.span = _span_of(self._runs, *key)
        yield from rows.values()

    def _key(self, run: Run, channel: Channel, joint: str) -> tuple[str, str]:
        """Return channel and joint; a joint alone where runs may name its channel differently."""
        of = [each for each in run.data.channels if joint in each.commanded.names]
        return ('' if len(self._runs) > 1 and len(of) == 1 else channel.name, joint)

    def _draw_channel(self, run: Run, channel: Channel, rows: dict[tuple[str, str], Row]) -> None:
        fans = self._fans(run, channel)
        commanded = thinned(channel.commanded, self._most)
        measured = thinned(channel.measured, self._most) if channel.measured else None
        joins = join_steps(channel, run.data.times_of(EventKind.JOIN))
        at_joins = channel.commanded.values[np.searchsorted(channel.commanded.t_s, joins.t_s)]
        for column, joint in enumerate(channel.commanded.names):
            into = rows[self._key(run, channel, joint)].traces
            for name, lines, colour in fans:
                into.append(
                    self._line(
                        name, lines.t_s, lines.values[:, column], hoverinfo='skip',
                        line={'color': colour, 'width': 1.3}, **self._hidden_where_compared(),
                    )
                )  # fmt: skip
            if measured is not None and joint in measured.names:
                values = measured.values[:, measured.names.index(joint)]
                line = {'color': run.palette.measured, 'width': 1.2}
                into.append(self._line(run.named('measured'), measured.t_s, values, line=line))
            line = {'color': run.palette.commanded, 'width': 1.6, 'shape': 'hv'}
            into.append(
                self._line(
                    run.named('commanded'), commanded.t_s, commanded.values[:, column], line=line
                )
            )
            if len(joins):
                into.append(self._join_marks(run, joins, at_joins, column))

    def _join_marks(self, run: Run, joins: Lines, values: Floats, column: int) -> Trace:
        return self._line(
            run.named('first of a new chunk'),
            joins.t_s,
            values[:, column],
            mode='markers',
            marker={'color': 'rgba(20,20,20,.6)', 'size': 4, 'symbol': 'circle-open'},
            customdata=self._arrays.put(joins.values[:, column]),
            hovertemplate='%{x:.3f} s, join, step %{customdata:.4g}<extra></extra>',
            **self._hidden_where_compared(),
        )

    def _hidden_where_compared(self) -> dict[str, str]:
        return {'visible': 'legendonly'} if len(self._runs) > 1 else {}

    def _fans(self, run: Run, channel: Channel) -> list[tuple[str, Lines, str]]:
        """Return every other chunk, and those between, each as one line with gaps."""
        width = len(channel.commanded.names)
        chunks = [
            each for each in run.data.predictions
            if each.channel == channel.name and each.values.shape[1] == width and len(each.t_s)
        ]  # fmt: skip
        chunks = chunks[:: chunk_stride(chunks, self._most)]
        fans = []
        for number, colour in enumerate(run.palette.predicted):
            held = chunks[number::2]
            if held:
                name = run.named(f'chunks as predicted ({"odd" if number == 0 else "even"})')
                fans.append((name, joined(held, channel.commanded.names), colour))
        return fans

    def _states(self) -> Iterator[Row]:
        for run in self._runs:
            for lines in run.data.states:
                drawn = thinned(lines, self._most)
                for column, joint in enumerate(lines.names):
                    line = {'color': run.palette.measured, 'width': 1.2}
                    values = drawn.values[:, column]
                    trace = self._line(run.named('measured'), drawn.t_s, values, line=line)
                    yield Row(run.named(joint), height=120, traces=[trace])

    def _deviations(self) -> Iterator[Trace]:
        for run in self._runs:
            for channel in run.data.channels:
                off = deviation(channel)
                if off is None:
                    continue
                worst = Lines(('worst',), off.t_s, np.nan_to_num(off.values).max(axis=1)[:, None])
                drawn = thinned(worst, self._most)
                name = run.named(f'worst joint of {channel.name}')
                line = {'color': run.palette.measured, 'width': 1}
                yield self._line(name, drawn.t_s, drawn.values[:, 0], line=line)

    def _lateness(self) -> Iterator[Trace]:
        for run in self._runs:
            for channel in run.data.channels:
                if len(channel.late_ms):
                    late = Lines(('late',), channel.commanded.t_s, channel.late_ms[:, None])
                    drawn = thinned(late, self._most)
                    name = run.named(f'lateness, {channel.name}')
                    line = {'color': run.palette.commanded, 'width': 1}
                    yield self._line(name, drawn.t_s, drawn.values[:, 0], line=line)

    def _over_time(self, which: str, prefix: str) -> Iterator[Trace]:
        for run in self._runs:
            lines: Lines | None = getattr(run.data, which)
            if lines is None:
                continue
            drawn = thinned(lines, self._most)
            for column, name in enumerate(lines.names):
                yield self._line(run.named(prefix + name), drawn.t_s, drawn.values[:, column])

    def _act_times(self) -> Iterator[Trace]:
        for run in self._runs:
            for part, acts in by_part(run.data.acts):
                at_s = np.array([act.asked_s for act in acts])
                taken_ms = np.array([part_ms(act, part) for act in acts])
                yield self._line(
                    run.named(part), at_s, taken_ms, mode='markers', marker={'size': 4}
                )

    def _timeline(self) -> Row:
        row = Row('acts', height=60 + 30 * len(self._runs))
        for lane, run in enumerate(self._runs):
            row.ticks[float(lane)] = escape(run.label)
            for number, (part, acts) in enumerate(by_part(run.data.acts)):
                if part != WHOLE or not any(act.parts_ms for act in run.data.acts):
                    t_s, y = bars(acts, part, lane)
                    colour = PART_COLOURS[number % len(PART_COLOURS)]
                    line = {'color': colour, 'width': 12}
                    row.traces.append(self._line(run.named(f'{part}, when'), t_s, y, line=line))
            failed = [act for act in run.data.acts if act.outcome]
            if failed:
                row.traces.append(self._failed(run, failed, lane))
        return row

    def _failed(self, run: Run, failed: Sequence[Act], lane: int) -> Trace:
        return self._line(
            run.named('acts without an answer'),
            np.array([act.asked_s for act in failed]),
            np.full(len(failed), float(lane)),
            mode='markers',
            marker={'color': '#d12f2f', 'size': 9, 'symbol': 'x'},
            text=[escape(f'{act.name}: {act.outcome}') for act in failed],
            hoverinfo='x+text',
        )

    def _events(self) -> Row:
        row = Row('events', height=140)
        for place, kind in enumerate(EventKind):
            for run in self._runs:
                events = [each for each in run.data.events if each.kind is kind][:MOST_EVENTS]
                if not events:
                    continue
                row.ticks[float(place)] = kind.value
                row.traces.append(
                    self._line(
                        run.named(f'{kind.value} events'),
                        np.array([event.at_s for event in events]),
                        np.full(len(events), float(place)),
                        mode='markers',
                        marker={'color': EVENT_COLOURS[kind], 'size': 7, 'symbol': 'diamond'},
                        text=[escape(event.text) for event in events],
                        hoverinfo='x+text',
                    )
                )
        return row


FIRST = ('commanded', 'measured', 'chunks as predicted', 'first of a new chunk')
"""Names that a legend begins with."""


def _rank(name: str) -> int:
    return next((rank for rank, text in enumerate(FIRST, 1) if text in name), 1000)


def _span_of(runs: Sequence[Run], channel: str, joint: str) -> tuple[float, float] | None:
    """Return the values to show of a joint: wild chunks must not flatten what was commanded."""
    values = [
        lines.values[:, lines.names.index(joint)]
        for run in runs
        for each in run.data.channels
        if channel in ('', each.name)
        for lines in (each.commanded, each.measured)
        if lines is not None and joint in lines.names
    ]
    held = np.concatenate(values) if values else np.zeros(0)
    held = held[np.isfinite(held)]
    if not len(held):
        return None
    margin = max(AROUND * float(np.ptp(held)), SMALLEST_MARGIN)
    return float(held.min()) - margin, float(held.max()) + margin


def _line_count(data: ReportData) -> int:
    commanded = sum(len(each.commanded.names) for each in data.channels)
    measured = sum(len(each.measured.names) for each in data.channels if each.measured)
    return commanded + measured + sum(len(lines.names) for lines in data.states)

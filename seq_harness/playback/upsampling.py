"""Rows become commands at a fixed output rate."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from seq_harness.playback.curve import Curve, Interpolation
from seq_harness.playback.kinds import Delta, KindRefused, Kinds
from seq_harness.playback.plan import Plan, Waypoint
from seq_harness.playback.record import Record

__all__ = ['Interpolation', 'RowMeans', 'Upsampling']


class RowMeans(Enum):
    """What a row that is due at `t_i` says."""

    REACHED_AT = 'reached_at'
    """Be there at `t_i`: the way to it starts at the row before."""
    TARGET_FROM = 'target_from'
    """Go there from `t_i` on: it is reached when the next row is due, or at the end."""


class Upsampling:
    """Give a plan ticks at a fixed rate, that goes on over the joins and never past an end."""

    def __init__(
        self,
        period_ns: int,
        interpolation: Interpolation,
        row_means: RowMeans,
        kinds: Kinds | None = None,
    ) -> None:
        """
        `period_ns` is from one command to the next.

        Raises
        ------
        KindRefused
            A channel carries changes: to repeat or divide one would be another motion.

        """
        self._period_ns = period_ns
        self._how = interpolation
        self._means = row_means
        self._kinds = kinds or Kinds()
        for name, kind in self._kinds.items():
            if isinstance(kind, Delta):
                raise KindRefused(f'channel {name!r} carries deltas, which cannot be up-sampled')

    def apply(self, plan: Plan, record: Record) -> Plan:
        """Return `plan` with ticks, that lead on from what was commanded last."""
        rows = plan.waiting()
        if not rows:
            return plan
        gap_ns = (rows[1].due_ns if len(rows) > 1 else plan.end_ns) - rows[0].due_ns
        start = rows[0].due_ns
        joined = record.due_ns is not None and start - record.due_ns <= gap_ns
        if joined and record.due_ns is not None:
            start = record.due_ns + self._period_ns
        names = dict.fromkeys(name for row in rows for name in row.commands)
        instants = self._instants(start, plan)
        before = record if joined else None
        columns = {name: self._curve(name, plan, before).at(instants) for name in names}
        named = _names_by_chunk(rows)
        held_ns = max((last.due_ns for last in record.last.values()), default=None)
        ticks, row = [], -1
        for i, instant in enumerate(instants):
            while row + 1 < len(rows) and rows[row + 1].due_ns <= instant:
                row += 1
            # Before the first row, what was commanded last leads there or is held.
            sampled_ns = rows[max(0, row)].sampled_ns
            said = {
                name: values[i]
                for name, values in columns.items()
                if values[i] is not None and name in named[sampled_ns]
            }
            row_ns = rows[row].due_ns if row >= 0 else held_ns
            held = self._how is Interpolation.HOLD
            ticks.append(Waypoint(instant, said, sampled_ns, row_ns if held else None))
        return plan.replaced(rows, ticks)

    def _instants(self, start: int, plan: Plan) -> list[int]:
        instants = list(range(start, plan.end_ns, self._period_ns))
        last = plan.last_due_ns
        if last is not None and (not instants or instants[-1] < last):
            instants.append(last)
        return instants

    def _curve(self, name: str, plan: Plan, record: Record | None) -> Curve:
        rows = [row for row in plan.waiting() if name in row.commands]
        instants = [row.due_ns for row in rows]
        shifted = self._means is RowMeans.TARGET_FROM and self._how is not Interpolation.HOLD
        if shifted:
            instants = [*instants[1:], plan.end_ns]
        knots = [(at, row.commands[name]) for at, row in zip(instants, rows, strict=True)]
        last = record.last.get(name) if record else None
        if last is not None and last.due_ns < knots[0][0]:
            knots.insert(0, (last.due_ns, last.value))
        elif shifted:
            knots.insert(0, (rows[0].due_ns, rows[0].commands[name]))
        # Of rows that are due at one instant, the last wins.
        return Curve(self._kinds[name], list(dict(knots).items()), self._how)


def _names_by_chunk(rows: Sequence[Waypoint]) -> dict[int | None, set[str]]:
    """Return the channels that each chunk names, by the observation that its rows answer."""
    named: dict[int | None, set[str]] = {}
    for row in rows:
        named.setdefault(row.sampled_ns, set()).update(row.commands)
    return named

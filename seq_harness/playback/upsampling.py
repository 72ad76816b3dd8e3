"""Rows become commands at a fixed output rate."""

from __future__ import annotations

from bisect import bisect_right
from enum import Enum
from typing import Any

import numpy as np
from seq_harness.playback.kinds import Binary, Delta, Kind, KindRefused, Kinds
from seq_harness.playback.plan import Plan, Waypoint
from seq_harness.playback.record import Record


class Interpolation(Enum):
    """What leads from one row to the next."""

    HOLD = 'hold'
    LINEAR = 'linear'
    CUBIC = 'cubic'
    """Hermite, with Catmull-Rom tangents that are bounded, so that nothing overshoots."""


class RowMeans(Enum):
    """What a row that is due at `t_i` says."""

    REACHED_AT = 'reached_at'
    """Be there at `t_i`: the way to it starts at the row before."""
    TARGET_FROM = 'target_from'
    """Go there from `t_i` on: it is reached when the next row is due, or at the end."""


class Curve:
    """What one channel does over the rows of a plan."""

    def __init__(self, kind: Kind, knots: list[tuple[int, Any]], how: Interpolation) -> None:
        """`knots` are instants and values, in order of time."""
        self._kind = kind
        self._instants = [instant for instant, _ in knots]
        self._values = [value for _, value in knots]
        self._how = Interpolation.LINEAR if isinstance(kind, Binary) else how
        if how is Interpolation.HOLD:
            self._how = how

    def at(self, t: int) -> Any:
        """Return the value at `t`; None before the first knot, the last one's after it."""
        after = bisect_right(self._instants, t)
        if after == 0:
            return None
        value = self._values[after - 1]
        exact = self._instants[after - 1] == t
        if after == len(self._values) or exact or self._how is Interpolation.HOLD:
            return value
        span = self._instants[after] - self._instants[after - 1]
        share = (t - self._instants[after - 1]) / span
        if self._how is Interpolation.LINEAR:
            return self._kind.blend(value, self._values[after], share)
        return self._hermite(after - 1, share, span)

    def _hermite(self, k: int, s: float, span: int) -> Any:
        value = self._values[k]
        change = self._kind.difference(value, self._values[k + 1])
        start, end = self._slope(k) * span, self._slope(k + 1) * span
        move = (3 * s**2 - 2 * s**3) * change
        move = move + (s**3 - 2 * s**2 + s) * start + (s**3 - s**2) * end
        return self._kind.moved(value, move)

    def _slope(self, k: int) -> Any:
        """
        Return the change a ns at knot `k`, from its neighbours.

        It is bounded so that no component leaves the span of its two rows (Fritsch and Carlson).
        """
        if k == 0 or k == len(self._values) - 1:
            return self._secant(min(k, len(self._values) - 2))
        before, after = self._secant(k - 1), self._secant(k)
        start, knot, end = (self._instants[i] for i in (k - 1, k, k + 1))
        spans = (knot - start, end - knot)
        mean = (before * spans[0] + after * spans[1]) / sum(spans)
        steepest = 3 * np.minimum(np.abs(before), np.abs(after))
        return np.where(before * after > 0, np.clip(mean, -steepest, steepest), 0.0)

    def _secant(self, k: int) -> Any:
        """Return the mean change a ns between knots `k` and `k + 1`."""
        change = self._kind.difference(self._values[k], self._values[k + 1])
        return change / (self._instants[k + 1] - self._instants[k])


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
        curves = {name: self._curve(name, plan, record if joined else None) for name in names}
        ticks = [
            Waypoint(
                instant,
                {n: value for n, c in curves.items() if (value := c.at(instant)) is not None},
                rows[0].sampled_ns,
            )
            for instant in self._instants(start, plan)
        ]
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
        return Curve(self._kinds[name], knots, self._how)

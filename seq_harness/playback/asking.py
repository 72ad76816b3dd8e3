"""When the player asks for its next chunk."""

from __future__ import annotations

from bisect import bisect_right
import math
from typing import Protocol

from seq_harness.playback.delays import Delays
from seq_harness.playback.plan import Plan


class Asking(Protocol):
    """Place the next ask while a plan plays."""

    def due_ns(self, plan: Plan) -> int:
        """Return the instant at which the next ask falls due."""

    def answered(self, delay_ns: int) -> None:
        """Note how long an answer took, from its ask to the round that read it."""

    def expected_ns(self) -> int | None:
        """Return how long an answer is expected to take; None where nothing is known."""


class Drain:
    """Ask when the end of the plan is due (R26)."""

    def __init__(self, delays: Delays | None = None) -> None:
        self._delays = delays or Delays()

    def due_ns(self, plan: Plan) -> int:
        return plan.end_ns

    def answered(self, delay_ns: int) -> None:
        self._delays.add(delay_ns)

    def expected_ns(self) -> int | None:
        return self._delays.expected_ns()


class Lead(Drain):
    """
    Ask a lead before the end of the plan, so that the answer is there before it drains.

    The lead is `fixed_ns`, or else the delay that the recent answers let expect (by default the
    longest of 20) plus `margin_ns`; it never exceeds `cap_ns`. Until there is a delay to go by,
    the lead is the cap. A measured lead is lengthened to a row, so that row 0 of the answer is the
    one that goes out with the ask.
    """

    def __init__(
        self,
        *,
        cap_ns: int,
        margin_ns: int,
        fixed_ns: int | None = None,
        delays: Delays | None = None,
    ) -> None:
        super().__init__(delays)
        self._cap_ns = cap_ns
        self._margin_ns = margin_ns
        self._fixed_ns = fixed_ns

    def lead_ns(self) -> int:
        """Return the lead that holds now, in ns."""
        expected = self.expected_ns()
        if self._fixed_ns is not None:
            return min(self._fixed_ns, self._cap_ns)
        if expected is None:
            return self._cap_ns
        return min(expected + self._margin_ns, self._cap_ns)

    def due_ns(self, plan: Plan) -> int:
        due_ns = plan.end_ns - self.lead_ns()
        if self._fixed_ns is not None:
            return due_ns
        waiting = plan.waiting()
        by_then = bisect_right(waiting, due_ns, key=lambda row: row.due_ns)
        return waiting[max(0, by_then - 1)].due_ns if waiting else due_ns


class ContinuingLead(Lead):
    """
    A lead for chunks that continue the plan row for row (R14).

    Whatever its length, it asks so late that a quarter of a chunk is still to come when the plan
    has run out, and once an eighth of a chunk of this very plan has been played. Where answers
    take as long as a chunk or longer, by their median, it asks as `Drain` does.
    """

    def due_ns(self, plan: Plan) -> int:
        waiting, rows = plan.waiting(), plan.chunk_rows
        # Asked on what shows nothing of this plan, every second chunk would go on by itself.
        first = max(shown_rows(rows), len(waiting) - (rows - math.ceil(rows / 4)))
        if self.drains(plan) or first >= len(waiting):
            return plan.end_ns
        return max(super().due_ns(plan), waiting[first].due_ns)

    def drains(self, plan: Plan) -> bool:
        """Tell whether answers take so long that with a lead the robot would stand longer."""
        usual_ns = self._delays.median_ns()
        return usual_ns is not None and usual_ns >= plan.chunk_ns


def shown_rows(chunk_rows: int) -> int:
    """Return how many rows of a plan an observation shows before the next ask goes by it."""
    return max(1, chunk_rows // 8)


class Threshold(Drain):
    """Ask once at most `share` of the newest chunk's rows is held."""

    def __init__(self, share: float, delays: Delays | None = None) -> None:
        super().__init__(delays)
        self._share = share

    def due_ns(self, plan: Plan) -> int:
        return _due_when_held(plan, math.floor(self._share * plan.chunk_rows))


class Every(Drain):
    """Ask each `rows` rows, counted from the first that a chunk gives to play."""

    def __init__(self, rows: int, delays: Delays | None = None) -> None:
        super().__init__(delays)
        self._rows = rows

    def due_ns(self, plan: Plan) -> int:
        return _due_when_held(plan, plan.held - self._rows)


class Reached(Every):
    """
    Ask once `rows` rows of a chunk are over, played or passed, as real-time chunking does.

    Sooner where answers take so long that else fewer rows would be left than are executed
    meanwhile: delay <= horizon - executed.
    """

    def due_ns(self, plan: Plan) -> int:
        return _due_when_held(plan, max(plan.chunk_rows - self._rows, self._delay_rows(plan)))

    def _delay_rows(self, plan: Plan) -> int:
        expected_ns = self.expected_ns()
        if expected_ns is None or not plan.chunk_ns:
            return 0
        return min(-(-expected_ns * plan.chunk_rows // plan.chunk_ns), plan.chunk_rows - 1)


def _due_when_held(plan: Plan, held: int) -> int:
    """
    Return the instant of the row that leaves `held` rows, or of the end when there is none.

    A plan that holds fewer already is due at its next row.
    """
    waiting = plan.waiting()
    if held < 0 or not waiting:
        return plan.end_ns
    popped = max(1, len(waiting) - held)
    return waiting[popped - 1].due_ns

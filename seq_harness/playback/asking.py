"""When the player asks for its next chunk."""

from __future__ import annotations

from collections import deque
from typing import Protocol

from seq_harness.playback.plan import Plan


class Asking(Protocol):
    """Place the next ask while a plan plays."""

    def due_ns(self, plan: Plan) -> int:
        """Return the instant at which the next ask falls due."""

    def answered(self, delay_ns: int) -> None:
        """Note how long an answer took, from its ask to the round that read it."""


class Drain:
    """Ask when the end of the plan is due (R26)."""

    def due_ns(self, plan: Plan) -> int:
        return plan.end_ns

    def answered(self, delay_ns: int) -> None:
        """Ignore the delay: it places nothing."""


class Lead:
    """
    Ask a lead before the end of the plan, so that the answer is there before it drains.

    The lead is `fixed_ns`, or else the longest of the last `window` answer delays plus
    `margin_ns`; it never exceeds `cap_ns`. The first delay, which pays for cold caches, is left
    out; until there is another one, the lead is the cap.
    """

    def __init__(
        self, *, cap_ns: int, margin_ns: int, fixed_ns: int | None = None, window: int = 20
    ) -> None:
        self._cap_ns = cap_ns
        self._margin_ns = margin_ns
        self._fixed_ns = fixed_ns
        self._delays: deque[int] = deque(maxlen=window)
        self._first_seen = False

    def lead_ns(self) -> int:
        """Return the lead that holds now, in ns."""
        if self._fixed_ns is not None:
            return min(self._fixed_ns, self._cap_ns)
        if not self._delays:
            return self._cap_ns
        return min(max(self._delays) + self._margin_ns, self._cap_ns)

    def due_ns(self, plan: Plan) -> int:
        return plan.end_ns - self.lead_ns()

    def answered(self, delay_ns: int) -> None:
        if self._first_seen:
            self._delays.append(delay_ns)
        self._first_seen = True

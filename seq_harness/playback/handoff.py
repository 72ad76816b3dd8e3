"""How a new chunk takes over from the plan that is playing."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Protocol

from seq_harness.playback.anchors import Anchor, Arrived, AtArrival, AtEnd, AtRowsEmitted
from seq_harness.playback.kinds import Kinds
from seq_harness.playback.plan import Plan

PASSED, REPLACED = 'passed', 'replaced'
"""Causes of a drop: the row's time was over when its chunk came; a newer plan took over."""


@dataclass(frozen=True)
class Joined:
    """The plan to play from now on (None: the chunk is wholly past), and what was dropped."""

    plan: Plan | None
    dropped: Counter[str] = field(default_factory=Counter)
    unsewn: Plan | None = None
    """The same rows without their seam, for a guard that refuses what the seam makes of them."""
    cut: bool = False
    """Whether the plan has lost its seam to the guard."""


class HandOff(Protocol):
    """Join a new chunk to the plan that is playing."""

    waits: bool
    """Whether an answer that comes early waits for the end of the plan, so that no row is lost."""

    def join(self, old: Plan | None, arrived: Arrived) -> Joined:
        """Return the new plan; rows it leaves out are counted by cause (R31)."""


class Seam(Protocol):
    """Shape the first rows of a placed chunk after the plan that it replaces."""

    def sew(self, old: Plan | None, new: Plan, arrived: Arrived, kinds: Kinds) -> Plan:
        """Return the plan to play; `old` is None, or starved, when nothing is to be joined."""


class Cut:
    """Play the new rows as they are."""

    def sew(self, old: Plan | None, new: Plan, arrived: Arrived, kinds: Kinds) -> Plan:
        return new


class Replace:
    """The new chunk, where its anchor places it, takes the place of the plan."""

    def __init__(
        self,
        anchor: Anchor,
        seam: Seam | None = None,
        kinds: Kinds | None = None,
        *,
        waits: bool = False,
    ) -> None:
        self._anchor = anchor
        self._seam = seam or Cut()
        self._kinds = kinds or Kinds()
        self.waits = waits

    def join(self, old: Plan | None, arrived: Arrived) -> Joined:
        rows = len(arrived.chunk.rows)
        new = self._anchor.place(old, arrived)
        if new is None:
            return Joined(None, dropped(PASSED, rows))
        lost = dropped(PASSED, rows - new.held) + dropped(REPLACED, old.held if old else 0)
        sewn = self._seam.sew(old, new, arrived, self._kinds)
        return Joined(sewn, lost, None if sewn is new else new)


class ArriveAtStart(Replace):
    """
    Play every chunk from its own first row, anchored where its answer is read (R14, R32).

    One that waits is anchored at the end of the plan, however late the call that reads it.
    """

    def __init__(self, *, waits: bool = False) -> None:
        super().__init__(AtEnd() if waits else AtArrival(), waits=waits)


class Continue(Replace):
    """Replace the plan on arrival, aligned by rows (R14)."""

    def __init__(self, seam: Seam | None = None, kinds: Kinds | None = None) -> None:
        super().__init__(AtRowsEmitted(), seam, kinds)


class Append:
    """Play the plan to its end, then the new chunk from its own first row."""

    waits = False

    def join(self, old: Plan | None, arrived: Arrived) -> Joined:
        held = old.waiting() if old else ()
        start = max(arrived.t, old.end_ns) if old else arrived.t
        new = Plan.anchored(arrived.chunk, start, 0, arrived.sampled_ns)
        return Joined(new.replaced([*held, *new.waiting()]))


def dropped(cause: str, rows: int) -> Counter[str]:
    """Return a count of `rows` by their cause; empty for none."""
    return Counter({cause: rows} if rows else {})

"""How a new chunk takes over from the plan that is playing."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Protocol

from seq_harness.playback.chunk import Chunk
from seq_harness.playback.plan import Plan


@dataclass(frozen=True)
class Arrived:
    """A chunk, and what happened between its ask and the round that reads it."""

    chunk: Chunk
    t: int
    """The instant of the call that reads the answer."""
    sampled_ns: int
    """The instant of the round whose observation was asked about."""
    emitted_since_ask: int
    """Rows of the old plan emitted since the ask, its own round included."""


@dataclass(frozen=True)
class Joined:
    """The plan to play from now on (None: the chunk is wholly past), and what was dropped."""

    plan: Plan | None
    dropped: Counter[str] = field(default_factory=Counter)


class HandOff(Protocol):
    """Join a new chunk to the plan that is playing."""

    def join(self, old: Plan | None, arrived: Arrived) -> Joined:
        """Return the new plan; rows it leaves out are counted by cause (R31)."""


class ArriveAtStart:
    """Play every chunk from its own first row, anchored where its answer is read (R14, R32)."""

    def join(self, old: Plan | None, arrived: Arrived) -> Joined:
        plan = Plan.anchored(arrived.chunk, arrived.t, 0, arrived.sampled_ns)
        return Joined(plan, _dropped(replaced=old.held if old else 0))


class Continue:
    """
    Replace the plan on arrival, aligned by rows (R14).

    The first row played is the one whose number is the rows emitted since the ask, due at the old
    plan's next row instant; on the first chunk or when starved it is row 0, due at once.
    """

    def join(self, old: Plan | None, arrived: Arrived) -> Joined:
        chunk = arrived.chunk
        if old is None or (old.held == 0 and arrived.t >= old.end_ns):
            return Joined(Plan.anchored(chunk, arrived.t, 0, arrived.sampled_ns))
        first = arrived.emitted_since_ask
        if first >= len(chunk.rows):
            return Joined(None, _dropped(passed=len(chunk.rows)))
        due = old.next_due_ns if old.next_due_ns is not None else old.end_ns
        anchor = due - chunk.rows[first].offset_ns
        plan = Plan.anchored(chunk, anchor, first, arrived.sampled_ns)
        return Joined(plan, _dropped(passed=first, replaced=old.held))


def _dropped(**causes: int) -> Counter[str]:
    return Counter({cause: count for cause, count in causes.items() if count})

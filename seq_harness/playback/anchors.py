"""Where the rows of a new chunk stand on the playback clock."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from seq_harness.playback.chunk import Chunk
from seq_harness.playback.plan import Plan
from seq_harness.playback.record import Record


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
    record: Record
    """What was commanded before."""
    expected_rows: int | None = None
    """Rows that were expected to be emitted since the ask, if that was told to the policy."""
    there_ns: int | None = None
    """When the answer was there, if it has waited since; None for `t`."""

    def placed(self, anchor_ns: int, first_row: int) -> Plan | None:
        """Return the plan of the rows from `first_row` on; None when there are none."""
        if first_row >= len(self.chunk.rows):
            return None
        return Plan.anchored(self.chunk, anchor_ns, first_row, self.sampled_ns)


class Anchor(Protocol):
    """Place a chunk: its first row to play, and the instant of its row 0."""

    def place(self, old: Plan | None, arrived: Arrived) -> Plan | None:
        """Return the plan of what is still to be played; None when the chunk is wholly past."""


class AtArrival:
    """Row 0 is due in the call that reads the answer (R14, R32)."""

    def place(self, old: Plan | None, arrived: Arrived) -> Plan | None:
        return arrived.placed(arrived.t, 0)


class AtEnd:
    """Row 0 is due at the old plan's end, or when the answer came, if that was later (R14)."""

    def place(self, old: Plan | None, arrived: Arrived) -> Plan | None:
        there_ns = arrived.t if arrived.there_ns is None else arrived.there_ns
        return arrived.placed(there_ns if old is None else max(there_ns, old.end_ns), 0)


class AtRowsEmitted:
    """
    Continue the old plan's numbering (R14).

    The first row played is the one whose number is the rows emitted since the ask, so that none is
    played twice. It is due at the old plan's next row instant, or at once where that plan has run
    out or there is none.
    """

    def place(self, old: Plan | None, arrived: Arrived) -> Plan | None:
        first, rows = arrived.emitted_since_ask, arrived.chunk.rows
        if first >= len(rows):
            return None
        return arrived.placed(_next_instant(old, arrived.t) - rows[first].offset_ns, first)


class AtObservation:
    """
    Row 0 is due in the round that sampled the observation (R14).

    Rows that a later one has already overtaken, or that are due before what was commanded last,
    are past.
    """

    def place(self, old: Plan | None, arrived: Arrived) -> Plan | None:
        chunk, anchor = arrived.chunk, arrived.sampled_ns
        if anchor + chunk.end_ns <= arrived.t:
            return None
        due = [anchor + row.offset_ns for row in chunk.rows]
        first = max(0, sum(instant <= arrived.t for instant in due) - 1)
        last = arrived.record.due_ns
        while last is not None and first < len(due) and due[first] <= last:
            first += 1
        return arrived.placed(anchor, first)


def _next_instant(old: Plan | None, t: int) -> int:
    """Return when the row after the old plan's last emitted one is due."""
    if old is None or (old.held == 0 and t >= old.end_ns):
        return t
    return old.end_ns if old.next_row_ns is None else old.next_row_ns

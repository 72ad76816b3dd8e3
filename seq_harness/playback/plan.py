"""The waypoints that a player holds: a chunk with an anchor, and how far it has been played."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from seq_harness.playback.chunk import Chunk
from seq_harness.playback.session import Commands


@dataclass(frozen=True)
class Waypoint:
    """A row with its due instant on the playback clock."""

    due_ns: int
    commands: Commands


class Plan:
    """Waypoints in order of time, popped from the front in constant time."""

    def __init__(
        self,
        waypoints: Sequence[Waypoint],
        end_ns: int,
        *,
        sampled_ns: int,
        end_reason: str | None = None,
    ) -> None:
        self._waypoints = waypoints
        self._next = 0
        self.end_ns = end_ns
        self.sampled_ns = sampled_ns
        """The instant of the round whose observation this plan answers."""
        self.end_reason = end_reason

    @classmethod
    def anchored(cls, chunk: Chunk, anchor_ns: int, first_row: int, sampled_ns: int) -> Plan:
        """Place the rows of `chunk` from `first_row` on: due = anchor + offset (R15, R16)."""
        waypoints = [
            Waypoint(anchor_ns + row.offset_ns, row.commands) for row in chunk.rows[first_row:]
        ]
        return cls(
            waypoints,
            anchor_ns + chunk.end_ns,
            sampled_ns=sampled_ns,
            end_reason=chunk.end_reason,
        )

    @property
    def held(self) -> int:
        """How many waypoints are anchored and not yet answered."""
        return len(self._waypoints) - self._next

    @property
    def next_due_ns(self) -> int | None:
        """The due instant of the first held waypoint; None when nothing is held."""
        if self._next == len(self._waypoints):
            return None
        return self._waypoints[self._next].due_ns

    def waiting(self) -> Sequence[Waypoint]:
        """Return the held waypoints, oldest first."""
        return self._waypoints[self._next :]

    def pop_due(self, t: int) -> list[Waypoint]:
        """Take every held waypoint with `due <= t`, oldest first (R21, R24)."""
        start = self._next
        while self._next < len(self._waypoints) and self._waypoints[self._next].due_ns <= t:
            self._next += 1
        return list(self._waypoints[start : self._next])

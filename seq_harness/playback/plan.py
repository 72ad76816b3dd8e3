"""The waypoints that a player holds: a chunk with an anchor, and how far it has been played."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
import itertools
from typing import Any

from seq_harness.playback.chunk import Chunk
from seq_harness.playback.kinds import Kind
from seq_harness.playback.mixture import Mixture
from seq_harness.playback.session import Commands


@dataclass(frozen=True)
class Waypoint:
    """A row with its due instant on the playback clock."""

    due_ns: int
    commands: Commands
    sampled_ns: int | None = None
    """The instant of the round whose observation the row answers."""
    row_ns: int | None = None
    """The due instant of the row that is held here; None where this is the row itself."""

    @property
    def since_ns(self) -> int:
        """Return since when these values are due."""
        return self.due_ns if self.row_ns is None else self.row_ns


class Plan:
    """Waypoints in order of time, popped from the front in constant time."""

    def __init__(
        self,
        waypoints: Sequence[Waypoint],
        end_ns: int,
        *,
        end_reason: str | None = None,
        ticks: Sequence[Waypoint] | None = None,
        tail: Plan | None = None,
        chunk_rows: int | None = None,
        chunk_ns: int | None = None,
        first_row: int = 0,
        mixture: Mixture | None = None,
    ) -> None:
        """
        `ticks` are emitted in the place of the rows; a row counts with the tick that reaches it.

        `tail` is what the chunk holds beyond its open-loop horizon; `chunk_rows` how many rows the
        newest chunk has, `chunk_ns` how long they last, and `first_row` the number of the first
        one here; `mixture` is of the chunks, as they came, that went into these rows.
        """
        self._rows = waypoints
        self._ticks = ticks
        self._row = 0
        self._tick = 0
        self.end_ns = end_ns
        self.end_reason = end_reason
        self.tail = tail
        self.chunk_rows = len(waypoints) if chunk_rows is None else chunk_rows
        if chunk_ns is None:
            chunk_ns = end_ns - waypoints[0].due_ns if waypoints else 0
        self.chunk_ns = chunk_ns
        self.first_row = first_row
        self.mixture = mixture

    @classmethod
    def anchored(cls, chunk: Chunk, anchor_ns: int, first_row: int, sampled_ns: int) -> Plan:
        """Place the rows of `chunk` from `first_row` on: due = anchor + offset (R15, R16)."""
        waypoints = [
            Waypoint(anchor_ns + row.offset_ns, row.commands, sampled_ns)
            for row in chunk.rows[first_row:]
        ]
        end_ns = anchor_ns + chunk.end_ns
        tail = None
        if chunk.beyond:
            beyond = [
                Waypoint(anchor_ns + row.offset_ns, row.commands, sampled_ns)
                for row in chunk.beyond
            ]
            tail = cls(beyond, anchor_ns + chunk.beyond_end_ns)
        return cls(
            waypoints,
            end_ns,
            end_reason=chunk.end_reason,
            tail=tail,
            chunk_rows=len(chunk.rows),
            chunk_ns=chunk.end_ns,
            first_row=first_row,
        )

    def replaced(
        self, waypoints: Sequence[Waypoint], ticks: Sequence[Waypoint] | None = None
    ) -> Plan:
        """Return a plan like this one, of other waypoints at the same place."""
        return Plan(
            waypoints,
            self.end_ns,
            end_reason=self.end_reason,
            ticks=ticks,
            tail=self.tail,
            chunk_rows=self.chunk_rows,
            chunk_ns=self.chunk_ns,
            first_row=self.first_row + self._row,
            mixture=self.mixture,
        )

    def counted_by(self, rows: int, lasts_ns: int) -> None:
        """Take the newest chunk, of which nothing plays, for what the next one will be like."""
        self.chunk_rows, self.chunk_ns = rows, lasts_ns

    def made_of(self, mixture: Mixture) -> Plan:
        """Return this plan with the chunks that went into it."""
        made = self.replaced(self.waiting())
        made.mixture = mixture
        return made

    def later(self, by_ns: int) -> Plan:
        """Return what is held, all of it due `by_ns` later."""
        rows = [replace(row, due_ns=row.due_ns + by_ns) for row in self.waiting()]
        plan = self.replaced(rows)
        plan.end_ns += by_ns
        plan.tail = None if plan.tail is None else plan.tail.later(by_ns)
        return plan

    @property
    def held(self) -> int:
        """How many rows are anchored and not yet answered."""
        return len(self._rows) - self._row

    @property
    def row_ns(self) -> int:
        """Return how long a row of the newest chunk lasts, on average."""
        return self.chunk_ns // max(1, self.chunk_rows)

    @property
    def next_row(self) -> int:
        """Return the number, in its chunk, of the first row that is held."""
        return self.first_row + self._row

    @property
    def next_row_ns(self) -> int | None:
        """Return the due instant of the first held row; None when nothing is held."""
        if self._row == len(self._rows):
            return None
        return self._rows[self._row].due_ns

    @property
    def next_due_ns(self) -> int | None:
        """Return the instant of the next emission; None when there is none."""
        if self._ticks is None:
            return self.next_row_ns
        if self._tick == len(self._ticks):
            return None
        return self._ticks[self._tick].due_ns

    @property
    def current_row_ns(self) -> int | None:
        """Return the due instant of the row played last; None when none has been."""
        return self._rows[self._row - 1].due_ns if self._row else None

    @property
    def channels(self) -> list[str]:
        """Return the channels that the rows name, in the order of their first mention."""
        return list(dict.fromkeys(name for row in self._rows for name in row.commands))

    @property
    def last_due_ns(self) -> int | None:
        """Return the due instant of the last row; None for a plan without rows."""
        return self._rows[-1].due_ns if self._rows else None

    def waiting(self) -> Sequence[Waypoint]:
        """Return the held rows, oldest first."""
        return _from(self._rows, self._row)

    def emissions(self) -> Sequence[Waypoint]:
        """Return what is still to be emitted, oldest first."""
        return self.waiting() if self._ticks is None else _from(self._ticks, self._tick)

    def with_emissions(self, waypoints: Sequence[Waypoint]) -> Plan:
        """Return this plan with other values at the instants of its emissions."""
        if self._ticks is None:
            return self.replaced(waypoints)
        return self.replaced(self.waiting(), waypoints)

    def due_alone(self, t: int) -> Waypoint | None:
        """Return what `pop_due` would take at `t`, where that is one emission."""
        line, start, end = self._due(t)
        return line[start] if end == start + 1 else None

    def spacing_ns(self, t: int) -> int:
        """Return the longest time between two of what is due at `t` and the one before; or 0."""
        line, start, end = self._due(t)
        if end == start + 1:
            return spacing_between(line[start - 1], line[start]) if start else 0
        pairs = itertools.pairwise(line[max(0, start - 1) : end])
        return max((spacing_between(before, after) for before, after in pairs), default=0)

    def pop_due(self, t: int) -> Sequence[Waypoint]:
        """
        Take what is due by `t`, oldest first, and the rows that it reaches (R21, R24).

        What answers another observation is left for a message of its own (R29).
        """
        line, start, end = self._due(t)
        if self._ticks is None:
            self._row = end
        else:
            self._tick = end
            if end > start:
                self._row = _past(self._rows, self._row, line[end - 1].due_ns)
        return line[start:end]

    def _due(self, t: int) -> tuple[Sequence[Waypoint], int, int]:
        """Return what is emitted, and from where to where of it goes out together at `t`."""
        line, start = (self._rows, self._row) if self._ticks is None else (self._ticks, self._tick)
        end = start
        while end < len(line) and line[end].due_ns <= t:
            if line[end].sampled_ns != line[start].sampled_ns:
                break
            end += 1
        return line, start, end

    def value_at(self, channel: str, at_ns: int, kind: Kind) -> Any:
        """
        Return where the rows lead `channel` at an instant, on a line between two; None if nowhere.

        The last row holds until the end of the plan; before the first row, and at the end, the
        plan says nothing.
        """
        if at_ns >= self.end_ns:
            return None
        after = bisect_right(self._rows, at_ns, key=lambda row: row.due_ns)
        if after == 0:
            return None
        before = self._rows[after - 1]
        value = before.commands.get(channel)
        if value is None or before.due_ns == at_ns or after == len(self._rows):
            return value
        following = self._rows[after]
        if channel not in following.commands:
            return value
        share = (at_ns - before.due_ns) / (following.due_ns - before.due_ns)
        return kind.blend(value, following.commands[channel], share)


def spacing_between(before: Waypoint, after: Waypoint) -> int:
    """Return the time from a waypoint to the next; of held rows, that between the rows, in ns."""
    return max(after.due_ns - before.due_ns, after.since_ns - before.since_ns)


def _from(waypoints: Sequence[Waypoint], start: int) -> Sequence[Waypoint]:
    return waypoints[start:]


def _past(waypoints: Sequence[Waypoint], start: int, t: int) -> int:
    """Return the number of the first waypoint from `start` on that is due after `t`."""
    while start < len(waypoints) and waypoints[start].due_ns <= t:
        start += 1
    return start

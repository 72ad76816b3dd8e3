"""Channels whose controller takes a plan at a time instead of a value."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from seq_harness.playback.plan import Plan, Waypoint
from seq_harness.playback.record import Record
from seq_harness.playback.session import Commands


@dataclass(frozen=True)
class Trajectory:
    """The command of a whole-chunk channel: it supersedes the one before."""

    sent_ns: int
    """The instant of the round that sends it, on the playback clock."""
    points: tuple[tuple[int, Any], ...]
    """Due instants on the playback clock, and values, in order of time; at least one."""


class WholeChunks:
    """
    Send plans, and holds where a plan is over before its time.

    A plan reaches at most `max_ahead_ns` ahead, and is sent anew before that is used up, so that a
    controller whose harness dies soon stands still.
    """

    def __init__(self, channels: Iterable[str], max_ahead_ns: int) -> None:
        self._channels = frozenset(channels)
        self._max_ahead_ns = max_ahead_ns
        self._sent: dict[str, Trajectory] = {}
        """What each channel's controller was told last."""
        self._rows: Sequence[Waypoint] = ()
        self._sent_once = False
        self.next_ns: int | None = None
        """When a plan must be sent anew; None while nothing is left to send."""

    def loaded(self, plan: Plan, t: int) -> None:
        """Have the plan sent that plays from now on; none of it has been popped."""
        if self._channels:
            self._rows, self._sent_once, self.next_ns = plan.emissions(), False, t

    def take(self, commands: Commands) -> Commands:
        """Return what of a row's commands goes out as it is."""
        if not self._channels:
            return commands
        return {name: value for name, value in commands.items() if name not in self._channels}

    def due(self, plan: Plan | None, record: Record, t: int) -> Commands:
        """Return the plans, and the holds of channels that the plan leaves out, due at `t`."""
        if plan is None or self.next_ns is None or t < self.next_ns:
            return {}
        made: dict[str, Trajectory] = {}
        self.next_ns = None
        for name in self._channels:
            points = self._points(name, t)
            if points:
                made[name] = self._sent[name] = Trajectory(t, points)
                self._plan_next(points[-1][0])
        self._sent_once = True
        return {**self.holds(record, t, besides=made), **made}

    def holds(self, record: Record, t: int, besides: Iterable[str] = ()) -> Commands:
        """Return a superseding hold for every channel that may still be moving."""
        moving = [name for name, sent in self._sent.items() if sent.points[-1][0] > t]
        holds = {}
        for name in moving:
            if name not in besides:
                sent, last = self._sent.pop(name), record.last.get(name)
                # Before its first row is due, a plan already leads there.
                value = last.value if last else sent.points[0][1]
                holds[name] = Trajectory(t, ((t, value),))
        return holds

    def _points(self, name: str, t: int) -> tuple[tuple[int, Any], ...]:
        """Return the rows to come, and in a plan's first message the one that is in force."""
        rows = [row for row in self._rows if name in row.commands]
        start = bisect_left(rows, t, key=lambda row: row.due_ns)
        if not self._sent_once:
            start = max(0, bisect_right(rows, t, key=lambda row: row.due_ns) - 1)
        until = t + self._max_ahead_ns
        return tuple(
            (row.due_ns, row.commands[name]) for row in rows[start:] if row.due_ns <= until
        )

    def _plan_next(self, sent_to_ns: int) -> None:
        if self._rows and sent_to_ns < self._rows[-1].due_ns:
            again = sent_to_ns - self._max_ahead_ns // 2
            self.next_ns = again if self.next_ns is None else min(again, self.next_ns)

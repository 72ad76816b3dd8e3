"""What will still be executed while a policy thinks: the robot's side of real-time chunking."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from seq_harness.playback.kinds import KindRefused, Kinds
from seq_harness.playback.plan import Plan
from seq_harness.playback.session import Commands


@dataclass(frozen=True)
class Ahead:
    """The rows that go with a request, on the new chunk's grid."""

    prefix: tuple[Commands, ...]
    """What the plan holds for row 0, 1, ... of the new chunk."""
    delay_rows: int
    """How many of them are expected to be executed before the answer is there."""
    executed_rows: int
    """How many rows of the current chunk lie before row 0 of the new one."""
    short: bool = False
    """Whether more rows are expected to be executed meanwhile than are left."""


class LookAhead:
    """Sample the plan at the instants of the new chunk's rows, at the time of the request."""

    def __init__(self, period_ns: int, kinds: Kinds | None = None) -> None:
        """
        `period_ns` is from one row of the new chunk to the next.

        Raises
        ------
        KindRefused
            A channel is not absolute: its rows cannot be taken over by another chunk.

        """
        self._period_ns = period_ns
        self._kinds = kinds or Kinds()
        for name, kind in self._kinds.items():
            if not kind.absolute:
                raise KindRefused(
                    f'channel {name!r} is a {kind.name}: real-time chunking takes absolute '
                    'channels only'
                )

    def sample(
        self, plan: Plan | None, t: int, emitted: bool, expected_ns: int | None
    ) -> Ahead | None:
        """
        Return what lies ahead at a request at `t`; None when nothing is held.

        `emitted` tells whether the round of the request emits a row, which is then row 0 of the
        new chunk; else the next row is. Until a delay is known, all of it is taken as executed.
        """
        start = None if plan is None else plan.current_row_ns if emitted else plan.next_row_ns
        if plan is None or start is None or plan.held == 0:
            return None
        instants = range(start, plan.end_ns, self._period_ns)
        prefix = tuple(self._commands(plan, instant) for instant in instants)
        delay = len(prefix) if expected_ns is None else -(-expected_ns // self._period_ns)
        executed = plan.next_row - (1 if emitted else 0)
        return Ahead(prefix, min(delay, len(prefix)), executed, delay > len(prefix))

    def _commands(self, plan: Plan, instant: int) -> Commands:
        row: dict[str, Any] = {}
        for name in plan.channels:
            value = plan.value_at(name, instant, self._kinds[name])
            if value is not None:
                row[name] = value
        return row

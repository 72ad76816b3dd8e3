"""What a chunk goes through before any of it plays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from seq_harness.playback.anchors import Arrived
from seq_harness.playback.chunk import ChunkRefused
from seq_harness.playback.guard import Guard
from seq_harness.playback.handoff import HandOff, Joined
from seq_harness.playback.horizon import Horizon
from seq_harness.playback.kinds import Kinds
from seq_harness.playback.plan import Plan, Waypoint
from seq_harness.playback.record import Record
from seq_harness.playback.rotations import Vector
from seq_harness.playback.session import Observation
from seq_harness.playback.upsampling import Upsampling

Measured = Callable[[Observation], Mapping[str, Vector]]
"""Reads the measured state of each channel out of an observation."""


@dataclass(frozen=True)
class Loading:
    """The horizon, hand-off, nearest turns, up-sampling and the guard, in this order."""

    horizon: Horizon
    handoff: HandOff
    kinds: Kinds
    upsampling: Upsampling | None
    guard: Guard | None
    measured: Measured | None

    def measured_of(self, observation: Observation) -> Mapping[str, Vector]:
        """Return the measured state of every channel that has one."""
        return self.measured(observation) if self.measured else {}

    def join(self, old: Plan | None, arrived: Arrived, observation: Observation) -> Joined:
        """
        Return the plan that takes over from `old`, and what was dropped.

        Raises
        ------
        ChunkRefused
            The guard refuses a row.

        """
        if self.guard is not None:
            chunk = arrived.chunk
            self.guard.check_rows(row.commands for row in (*chunk.rows, *chunk.beyond))
        joined = self.handoff.join(old, arrived)
        if joined.plan is None:
            return joined
        try:
            plan = self.prepare(joined.plan, arrived.record, observation)
        except ChunkRefused:
            if joined.unsewn is None:
                raise
            # The policy's own rows are not refused for what a seam made of them.
            plan = self.prepare(joined.unsewn, arrived.record, observation)
            return Joined(plan, joined.dropped, cut=True)
        return Joined(plan, joined.dropped)

    def prepare(self, plan: Plan, record: Record, observation: Observation) -> Plan:
        """
        Return what of `plan` may be emitted, and when.

        Raises
        ------
        ChunkRefused
            The guard refuses a row.

        """
        if self.guard is None and not self.kinds.turning:
            return self._ticking(plan, record)
        measured = self.measured_of(observation)
        if self.kinds.turning:
            plan = self._turned(plan, record, measured)
        plan = self._ticking(plan, record)
        if self.guard is not None:
            plan = self.guard.check_plan(plan, record.last, measured)
        return plan

    def _ticking(self, plan: Plan, record: Record) -> Plan:
        return plan if self.upsampling is None else self.upsampling.apply(plan, record)

    def _turned(self, plan: Plan, record: Record, measured: Mapping[str, Vector]) -> Plan:
        """Write angles and rotations as the turns nearest to those before them."""
        before: dict[str, Any] = {**measured}
        before.update((name, last.value) for name, last in record.last.items())
        rows = []
        for row in plan.waiting():
            commands = dict(row.commands)
            for name in self.kinds.turning & commands.keys():
                if name in before:
                    commands[name] = self.kinds[name].near(before[name], commands[name])
                before[name] = commands[name]
            rows.append(Waypoint(row.due_ns, commands, row.sampled_ns))
        return plan.replaced(rows)

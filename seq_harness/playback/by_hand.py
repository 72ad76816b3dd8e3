"""What manual commands must pass: the guard of the rows (R50)."""

from __future__ import annotations

from seq_harness.playback.guard import Emitted, Guard
from seq_harness.playback.loading import Measured
from seq_harness.playback.plan import Plan, Waypoint
from seq_harness.playback.session import Commands, Observation

FRESH_PERIODS = 3
"""A command older than this many row periods says nothing of where the robot is."""


class ByHand:
    """
    Hold manual commands to the limits and steps of rows.

    The first one, and one after a while, is bounded from the measured state; the others from the
    one before.
    """

    def __init__(self, guard: Guard, measured: Measured, period_ns: int) -> None:
        """`period_ns` is one row's: no command moves further than one row may."""
        self._guard = guard
        self._measured = measured
        self._period_ns = period_ns
        self._last: dict[str, Emitted] = {}

    def check(self, commands: Commands, observation: Observation, t: int) -> Commands:
        """
        Return what may go out at `t`, as the guard's policy refuses, cuts or ramps it.

        Raises
        ------
        ChunkRefused
            Names the channel, the joint, the value and its limit.

        """
        oldest = t - FRESH_PERIODS * self._period_ns
        last = {name: item for name, item in self._last.items() if item.due_ns >= oldest}
        asked = Plan([Waypoint(t, commands)], t + self._period_ns)
        plan = self._guard.check_plan(asked, last, self._measured(observation))
        allowed = plan.emissions()[0].commands
        self._last.update((name, Emitted(value, t)) for name, value in allowed.items())
        return allowed

    def reset(self) -> None:
        """Bound the next command from the measured state."""
        self._last.clear()

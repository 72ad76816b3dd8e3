"""The guard of a preview, in which the robot does not follow what is commanded."""

from __future__ import annotations

from collections.abc import Mapping

from seq_harness.playback.guard import Emitted, Guard
from seq_harness.playback.plan import Plan, Waypoint
from seq_harness.playback.rotations import Vector
from seq_harness.playback.session import Commands


class ShadowGuard(Guard):
    """
    Hold every chunk to the measured state, as if it were the first.

    The last command says nothing here: the robot never went there.
    """

    def check_plan(
        self, plan: Plan, last: Mapping[str, Emitted], measured: Mapping[str, Vector]
    ) -> Plan:
        """Check as `Guard` does, each channel from where it is measured."""
        return super().check_plan(plan, {}, measured)

    def check_emission(
        self,
        waypoint: Waypoint,
        last: Mapping[str, Emitted],
        longest_ns: int | None = None,
        *,
        late: bool = False,
    ) -> Commands:
        """Check as `Guard` does, but for the step from the last command."""
        return super().check_emission(waypoint, {}, longest_ns, late=late)

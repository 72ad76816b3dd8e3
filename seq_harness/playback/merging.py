"""What several waypoints that are due in one round come to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from seq_harness.playback.kinds import Kinds
from seq_harness.playback.plan import Waypoint


def merge(waypoints: Sequence[Waypoint], kinds: Kinds) -> Waypoint:
    """
    Merge due waypoints, oldest first, by each channel's own rule (R21, R22).

    The result is due when the last of them is.
    """
    if len(waypoints) == 1:
        return waypoints[0]
    merged: dict[str, Any] = {}
    for waypoint in waypoints:
        if kinds.sums:
            merged.update(_summed(merged, waypoint, kinds))
        else:
            merged.update(waypoint.commands)
    return Waypoint(waypoints[-1].due_ns, merged, waypoints[-1].sampled_ns)


def _summed(merged: dict[str, Any], waypoint: Waypoint, kinds: Kinds) -> dict[str, Any]:
    return {
        name: kinds[name].merge(merged[name], value) if name in merged else value
        for name, value in waypoint.commands.items()
    }

"""The limits of the robot that faults are injected into, and who is beyond them."""

from __future__ import annotations

from collections.abc import Sequence
import math

JOINTS = ('shoulder', 'elbow', 'wrist')
LOWER, UPPER = -2.0, 2.0
"""What each joint may be commanded, in rad, or in rad/s where velocities are."""

MAX_VELOCITY = 2.0
"""The fastest change of a joint, in rad/s, or in rad/s^2 where velocities are commanded."""

START_DISTANCE = 0.2
"""The largest distance of a first setpoint from the measured position, in rad."""

HZ = 10.0
"""Rows a second: slow enough that a busy machine is no frozen one."""

STEP = MAX_VELOCITY * 1.5 / HZ
"""The largest step between two setpoints, however late the second is."""

ROUNDING = 1e-6


def is_beyond(
    values: Sequence[float], before: Sequence[float] | None, measured: Sequence[float] | None
) -> bool:
    """
    Tell whether a setpoint breaks a limit.

    `before` is the setpoint before it in its episode; the first is held against what was
    `measured`, where positions are.
    """
    if len(values) != len(JOINTS) or not all(map(math.isfinite, values)):
        return True
    if any(not LOWER - ROUNDING <= value <= UPPER + ROUNDING for value in values):
        return True
    origin, bound = (before, STEP) if before is not None else (measured, START_DISTANCE + STEP)
    if origin is None:
        return False
    return any(abs(a - b) > bound + ROUNDING for a, b in zip(values, origin, strict=True))

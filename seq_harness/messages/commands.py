"""Fill the command messages that have a header or a single value, by their fields alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from seq_harness.messages.setpoints import container_of, finite_setpoint, Floats, SetpointRefused

__all__ = [
    'fill_float64',
    'fill_gripper_command',
    'fill_joint_jog',
    'fill_joint_state',
    'fill_pose',
    'fill_twist',
]

FIELDS = {'velocity': 'velocity', 'effort': 'effort'}
"""The kind of a channel to the field of a JointState that holds it; all others are positions."""


def fill_joint_state(message: Any, names: Sequence[str], kind: str, values: Floats) -> None:
    """
    Put `values` into the field of a sensor_msgs/JointState that `kind` names.

    The two other arrays stay empty: each is as long as the names, or empty.

    Raises
    ------
    SetpointRefused
        When a value is not finite, or the width differs from the names.

    """
    numbers = _as_many(values, len(names))
    message.name = list(names)
    for field in ('position', 'velocity', 'effort'):
        held = numbers if field == FIELDS.get(kind, 'position') else []
        setattr(message, field, container_of(message)(held))


def fill_pose(pose: Any, values: Floats) -> None:
    """Put (x, y, z, qx, qy, qz, qw), in m and a unit quaternion, into a geometry_msgs/Pose."""
    numbers = _as_many(values, 7)
    for axis, number in zip('xyz', numbers[:3], strict=True):
        setattr(pose.position, axis, number)
    for axis, number in zip('xyzw', numbers[3:], strict=True):
        setattr(pose.orientation, axis, number)


def fill_twist(twist: Any, values: Floats) -> None:
    """Put (vx, vy, vz, wx, wy, wz), in m/s and rad/s, into a geometry_msgs/Twist."""
    numbers = _as_many(values, 6)
    for axis, number in zip('xyz', numbers[:3], strict=True):
        setattr(twist.linear, axis, number)
    for axis, number in zip('xyz', numbers[3:], strict=True):
        setattr(twist.angular, axis, number)


def fill_joint_jog(
    message: Any, names: Sequence[str], kind: str, values: Floats, duration_s: float
) -> None:
    """
    Put rates, or changes where `kind` is delta, into a control_msgs/JointJog.

    `duration_s` is how long they hold: one row period.
    """
    numbers = _as_many(values, len(names))
    floats = container_of(message)
    message.joint_names = list(names)
    message.displacements = floats(numbers if kind == 'delta' else [])
    message.velocities = floats([] if kind == 'delta' else numbers)
    message.duration = float(duration_s)


def fill_float64(message: Any, values: Floats) -> None:
    """Put one value into a std_msgs/Float64."""
    message.data = _as_many(values, 1)[0]


def fill_gripper_command(message: Any, values: Floats, max_effort: float) -> None:
    """Put a position, in m or rad, into a control_msgs/GripperCommand."""
    message.position = _as_many(values, 1)[0]
    message.max_effort = float(max_effort)


def _as_many(values: Floats, count: int) -> list[float]:
    numbers = finite_setpoint(values)
    if len(numbers) != count:
        raise SetpointRefused(f'expected {count} values, got {len(numbers)}')
    return numbers

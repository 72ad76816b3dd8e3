"""The message of each type of channel, and how a channel's value fills it, by fields alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from seq_harness.messages.setpoints import (
    container_of,
    fill_float64_multi_array,
    fill_joint_trajectory,
    finite_setpoint,
    Floats,
    SetpointRefused,
    TrajectoryPoint,
)

__all__ = [
    'COMMANDS',
    'Channel',
    'Command',
    'Library',
    'encoder',
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


class Channel(Protocol):
    """What the settings of a command output say of its messages."""

    @property
    def type(self) -> str:
        """Return a key of `COMMANDS`."""

    @property
    def joints(self) -> tuple[str, ...]:
        """Return the joints commanded, in the order of the controller."""

    @property
    def kind(self) -> str:
        """Return what the values are."""

    @property
    def frame(self) -> str:
        """Return the frame that a header names."""

    @property
    def max_effort(self) -> float:
        """Return the most effort of a gripper, in N or Nm."""

    @property
    def time_from_start_s(self) -> float:
        """Return when a row of a trajectory is to be reached; 0 takes one row period."""


@dataclass(frozen=True)
class Library:
    """Where messages come from; both take a type such as `std_msgs/msg/Float64`."""

    blank: Callable[[str], Callable[[], Any]]
    """Returns what makes a message of zeros, empty texts and empty arrays."""
    made_of: Callable[[str], Callable[..., Any]]
    """Returns what makes a message of its fields, by keyword."""


Fill: TypeAlias = Callable[[Any, Any], None]
"""Puts a value into a message."""


@dataclass(frozen=True)
class Command:
    """What a type of channel sends."""

    message: str
    """The ROS type."""
    filling: Callable[[Channel, int, Library], Fill]
    """Returns what fills the messages of a channel whose rows last so many ns."""
    stamped: bool = False
    """Whether its header holds the present and the channel's frame."""


def encoder(
    item: Channel, period_ns: int, library: Library, stamp: Callable[[], Any] | None
) -> Callable[[Any], Any]:
    """
    Return what makes the message that carries a channel's value.

    A value is the numbers of a row or, for a trajectory, a plan with `sent_ns` and `points`.
    `stamp` returns the present as builtin_interfaces/Time, for headers; None leaves them empty.
    What it returns raises `SetpointRefused` for a value that cannot be sent.
    """
    command = COMMANDS[item.type]
    blank, fill = library.blank(command.message), command.filling(item, period_ns, library)
    if stamp is None or not command.stamped:

        def encode(value: Any) -> Any:
            message = blank()
            fill(message, value)
            return message

        return encode

    def encode_stamped(value: Any) -> Any:
        message = blank()
        fill(message, value)
        message.header.stamp = stamp()
        message.header.frame_id = item.frame
        return message

    return encode_stamped


def _multi_array(item: Channel, period_ns: int, library: Library) -> Fill:
    return fill_float64_multi_array


def _trajectory(item: Channel, period_ns: int, library: Library) -> Fill:
    reach_ns = round(item.time_from_start_s * 1e9) or period_ns
    point = library.made_of('trajectory_msgs/msg/JointTrajectoryPoint')
    duration = library.made_of('builtin_interfaces/msg/Duration')

    def fill(message: Any, value: Any) -> None:
        fill_joint_trajectory(message, point, duration, item.joints, _points(value, reach_ns))

    return fill


def _points(value: Any, reach_ns: int) -> list[TrajectoryPoint]:
    """Return a row, or the rows of a whole chunk, each reached `reach_ns` after it is due."""
    plan = getattr(value, 'points', None)
    if plan is None:
        return [TrajectoryPoint(tuple(value), reach_ns)]
    return [
        TrajectoryPoint(tuple(row), max(0, due_ns - value.sent_ns) + reach_ns)
        for due_ns, row in plan
    ]


def _joint_state(item: Channel, period_ns: int, library: Library) -> Fill:
    return lambda message, value: fill_joint_state(message, item.joints, item.kind, value)


def _pose(item: Channel, period_ns: int, library: Library) -> Fill:
    return lambda message, value: fill_pose(message.pose, value)


def _twist(item: Channel, period_ns: int, library: Library) -> Fill:
    return lambda message, value: fill_twist(message.twist, value)


def _joint_jog(item: Channel, period_ns: int, library: Library) -> Fill:
    duration_s = period_ns / 1e9
    return lambda message, value: fill_joint_jog(
        message, item.joints, item.kind, value, duration_s
    )


def _float64(item: Channel, period_ns: int, library: Library) -> Fill:
    return fill_float64


def _gripper_command(item: Channel, period_ns: int, library: Library) -> Fill:
    return lambda message, value: fill_gripper_command(message, value, item.max_effort)


def _parallel_gripper(item: Channel, period_ns: int, library: Library) -> Fill:
    effort = [item.max_effort] * len(item.joints) if item.max_effort else []

    def fill(message: Any, value: Any) -> None:
        fill_joint_state(message, item.joints, 'position', value)
        message.effort = container_of(message)(effort)

    return fill


COMMANDS: dict[str, Command] = {
    'float64_multi_array': Command('std_msgs/msg/Float64MultiArray', _multi_array),
    'joint_trajectory': Command('trajectory_msgs/msg/JointTrajectory', _trajectory),
    'joint_state': Command('sensor_msgs/msg/JointState', _joint_state, stamped=True),
    'pose_stamped': Command('geometry_msgs/msg/PoseStamped', _pose, stamped=True),
    'twist_stamped': Command('geometry_msgs/msg/TwistStamped', _twist, stamped=True),
    'joint_jog': Command('control_msgs/msg/JointJog', _joint_jog, stamped=True),
    'float64': Command('std_msgs/msg/Float64', _float64),
    'gripper_command': Command('control_msgs/msg/GripperCommand', _gripper_command),
    # An action's goal holds this message.
    'gripper_action': Command('control_msgs/msg/GripperCommand', _gripper_command),
    'parallel_gripper_action': Command(
        'sensor_msgs/msg/JointState', _parallel_gripper, stamped=True
    ),
}
"""The type of a channel to what it sends."""

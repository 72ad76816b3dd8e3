"""The messages that controllers would get, of rosbags' own classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from seq_harness.bags.blanks import blank, message_class
from seq_harness.messages.commands import (
    fill_float64,
    fill_gripper_command,
    fill_joint_jog,
    fill_joint_state,
    fill_pose,
    fill_twist,
)
from seq_harness.messages.setpoints import (
    fill_float64_multi_array,
    fill_joint_trajectory,
    TrajectoryPoint,
)
from seq_harness.playback.whole import Trajectory
from seq_harness.settings import ChannelSettings

KINDS = {
    'float64_multi_array': 'std_msgs/msg/Float64MultiArray',
    'joint_trajectory': 'trajectory_msgs/msg/JointTrajectory',
    'joint_state': 'sensor_msgs/msg/JointState',
    'pose_stamped': 'geometry_msgs/msg/PoseStamped',
    'twist_stamped': 'geometry_msgs/msg/TwistStamped',
    'joint_jog': 'control_msgs/msg/JointJog',
    'float64': 'std_msgs/msg/Float64',
    'gripper_command': 'control_msgs/msg/GripperCommand',
}
"""The type of a channel to that of its messages."""

Fill: TypeAlias = Callable[[Any, ChannelSettings, Any, int], None]


def command(item: ChannelSettings, value: Any, period_ns: int, now_ns: int) -> Any:
    """
    Return the message that carries a channel's value, as a node makes it at `now_ns`.

    Raises
    ------
    SetpointRefused
        The value cannot be sent.

    """
    message = blank(KINDS[item.type])
    _FILLS[item.type](message, item, value, period_ns)
    if hasattr(message, 'header') and item.type != 'joint_trajectory':
        sec, message.header.stamp.nanosec = divmod(now_ns, 1_000_000_000)
        message.header.stamp.sec = sec
        message.header.frame_id = item.frame
    return message


def _trajectory(message: Any, item: ChannelSettings, value: Any, period_ns: int) -> None:
    reach_ns = round(item.time_from_start_s * 1e9) or period_ns
    point = message_class('trajectory_msgs/msg/JointTrajectoryPoint')
    duration = message_class('builtin_interfaces/msg/Duration')
    fill_joint_trajectory(message, point, duration, item.joints, _points(value, reach_ns))


def _points(value: Any, reach_ns: int) -> list[TrajectoryPoint]:
    if not isinstance(value, Trajectory):
        return [TrajectoryPoint(tuple(value), reach_ns)]
    return [
        TrajectoryPoint(tuple(row), max(0, due_ns - value.sent_ns) + reach_ns)
        for due_ns, row in value.points
    ]


_FILLS: dict[str, Fill] = {
    'float64_multi_array': lambda message, item, value, period_ns: fill_float64_multi_array(
        message, value
    ),
    'joint_trajectory': _trajectory,
    'joint_state': lambda message, item, value, period_ns: fill_joint_state(
        message, item.joints, item.kind, value
    ),
    'pose_stamped': lambda message, item, value, period_ns: fill_pose(message.pose, value),
    'twist_stamped': lambda message, item, value, period_ns: fill_twist(message.twist, value),
    'joint_jog': lambda message, item, value, period_ns: fill_joint_jog(
        message, item.joints, item.kind, value, period_ns / 1e9
    ),
    'float64': lambda message, item, value, period_ns: fill_float64(message, value),
    'gripper_command': lambda message, item, value, period_ns: fill_gripper_command(
        message, value, item.max_effort
    ),
}

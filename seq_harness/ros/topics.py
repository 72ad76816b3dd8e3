"""Publishers that carry the setpoints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from builtin_interfaces.msg import Duration
from geometry_msgs.msg import PoseStamped, TwistStamped
from rclpy.event_handler import PublisherEventCallbacks
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState
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
from seq_harness.outputs import Output
from seq_harness.playback.whole import Trajectory
from seq_harness.ros.message_types import message_class
from seq_harness.settings import ChannelSettings
from seq_harness.settings.output_types import FLOAT64_MULTI_ARRAY, JOINT_TRAJECTORY
from std_msgs.msg import Float64, Float64MultiArray
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

_OUTPUT_TYPES = {
    FLOAT64_MULTI_ARRAY: Float64MultiArray,
    JOINT_TRAJECTORY: JointTrajectory,
    'joint_state': JointState,
    'pose_stamped': PoseStamped,
    'twist_stamped': TwistStamped,
    'float64': Float64,
}

# control_msgs is not part of every ROS installation.
_CONTROL_TYPES = {
    'joint_jog': 'control_msgs/msg/JointJog',
    'gripper_command': 'control_msgs/msg/GripperCommand',
}

SETPOINT_QOS = QoSProfile(
    history=HistoryPolicy.KEEP_LAST,
    depth=1,
    reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.VOLATILE,
)

Stamp = Callable[[], Any]
"""Returns the present as builtin_interfaces/Time, on the node's clock."""


def setpoint_publisher(
    node: Node,
    item: ChannelSettings,
    preview: bool,
    events: PublisherEventCallbacks | None = None,
) -> Publisher:
    """
    Publish one channel to its controller, or under ~/preview/ where nothing listens.

    Raises
    ------
    TypeMissing
        The message of the channel's type is not installed.

    """
    topic = f'~/preview/{item.topic.lstrip("~/")}' if preview else item.topic
    return node.create_publisher(_class_of(item.type), topic, SETPOINT_QOS, event_callbacks=events)


def output(
    publisher: Publisher, item: ChannelSettings, period_ns: int, stamp: Stamp | None = None
) -> Output:
    """
    Return how a channel's value becomes a message; a row is to be reached in `period_ns`.

    `stamp` gives headers the present, which MoveIt Servo wants: it takes no older command.
    """
    if item.type == FLOAT64_MULTI_ARRAY:
        return Output(_multi_array, publisher.publish)
    if item.type == JOINT_TRAJECTORY:
        return Output(_trajectories(item, period_ns), publisher.publish)
    fill, made = _FILLS[item.type], _class_of(item.type)

    def encode(value: Any) -> Any:
        message = made()
        fill(message, item, value, period_ns)
        if stamp is not None and hasattr(message, 'header'):
            message.header.stamp = stamp()
            message.header.frame_id = item.frame
        return message

    return Output(encode, publisher.publish)


_Fill = Callable[[Any, ChannelSettings, Any, int], None]

_FILLS: dict[str, _Fill] = {
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


def _class_of(kind: str) -> Any:
    return _OUTPUT_TYPES.get(kind) or message_class(_CONTROL_TYPES[kind])


def _trajectories(item: ChannelSettings, period_ns: int) -> Callable[[Any], JointTrajectory]:
    reach_ns = round(item.time_from_start_s * 1e9) or period_ns

    def trajectory(value: Any) -> JointTrajectory:
        message = JointTrajectory()
        points = _points(value, reach_ns)
        fill_joint_trajectory(message, JointTrajectoryPoint, Duration, item.joints, points)
        return message

    return trajectory


def _points(value: Any, reach_ns: int) -> list[TrajectoryPoint]:
    """Return a row, or the rows of a whole chunk, each reached `reach_ns` after it is due."""
    if not isinstance(value, Trajectory):
        return [TrajectoryPoint(tuple(value), reach_ns)]
    return [
        TrajectoryPoint(tuple(row), max(0, due_ns - value.sent_ns) + reach_ns)
        for due_ns, row in value.points
    ]


def _multi_array(value: Any) -> Float64MultiArray:
    message = Float64MultiArray()
    fill_float64_multi_array(message, value)
    return message

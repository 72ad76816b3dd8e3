"""Publishers that carry the setpoints."""

from __future__ import annotations

from typing import Any

from builtin_interfaces.msg import Duration
from rclpy.lifecycle import LifecycleNode
from rclpy.publisher import Publisher
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy
from seq_harness.messages.setpoints import (
    fill_float64_multi_array,
    fill_joint_trajectory,
    TrajectoryPoint,
)
from seq_harness.outputs import Output
from seq_harness.playback.whole import Trajectory
from seq_harness.settings import ChannelSettings
from seq_harness.settings.parameters import (
    FLOAT64_MULTI_ARRAY,
    JOINT_TRAJECTORY,
)
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

_OUTPUT_TYPES = {FLOAT64_MULTI_ARRAY: Float64MultiArray, JOINT_TRAJECTORY: JointTrajectory}

SETPOINT_QOS = QoSProfile(
    history=HistoryPolicy.KEEP_LAST,
    depth=1,
    reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.VOLATILE,
)


def setpoint_publisher(node: LifecycleNode, item: ChannelSettings, preview: bool) -> Publisher:
    """Publish one channel to its controller, or under ~/preview/ where nothing listens."""
    topic = f'~/preview/{item.topic.lstrip("~/")}' if preview else item.topic
    return node.create_publisher(_OUTPUT_TYPES[item.type], topic, SETPOINT_QOS)


def output(publisher: Publisher, item: ChannelSettings, period_ns: int) -> Output:
    """Return how a channel's value becomes a message; a row is to be reached in `period_ns`."""
    if item.type == FLOAT64_MULTI_ARRAY:
        return Output(_multi_array, publisher.publish)
    reach_ns = round(item.time_from_start_s * 1e9) or period_ns

    def trajectory(value: Any) -> JointTrajectory:
        message = JointTrajectory()
        points = _points(value, reach_ns)
        fill_joint_trajectory(message, JointTrajectoryPoint, Duration, item.joints, points)
        return message

    return Output(trajectory, publisher.publish)


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

"""The topics of the stop input and of the deadman."""

from __future__ import annotations

from collections.abc import Callable

from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from seq_harness.ros.safety import Safety
from seq_harness.settings import Settings
from std_msgs.msg import Bool

DEPTH = 10


def subscribe_safety(node: Node, settings: Settings, safety: Safety) -> None:
    """Listen to what the settings name; a message that comes twice does no harm."""
    for topic, say in (
        (settings['stop_topic'], safety.stop_said),
        (settings['deadman_topic'], safety.deadman_said),
    ):
        if not topic:
            continue
        # Best effort matches every publisher; reliable loses nothing of those that offer it.
        for reliability in (ReliabilityPolicy.BEST_EFFORT, ReliabilityPolicy.RELIABLE):
            profile = QoSProfile(depth=DEPTH, reliability=reliability)
            node.create_subscription(Bool, topic, _saying(say), profile)


def _saying(say: Callable[[bool], None]) -> Callable[[Bool], None]:
    return lambda message: say(bool(message.data))

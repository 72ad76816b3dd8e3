"""Commands by hand, a topic for each channel."""

from __future__ import annotations

from collections.abc import Callable

from rclpy.lifecycle import LifecycleNode
from rclpy.subscription import Subscription
from seq_harness.harness import RequestAnswer
from seq_harness.messages.setpoints import read_float64_multi_array
from seq_harness.playback.session import Commands
from seq_harness.settings import ChannelSettings
from std_msgs.msg import Float64MultiArray


def manual_subscription(
    node: LifecycleNode, item: ChannelSettings, command: Callable[[Commands], RequestAnswer]
) -> Subscription:
    """Take commands for one channel on ~/manual/<channel>, in the order of its joints."""

    def arrived(message: Float64MultiArray) -> None:
        answer = command({item.name: read_float64_multi_array(message)})
        if not answer.accepted:
            node.get_logger().warning(
                f'a manual command for {item.name} was refused: {answer.reason}',
                throttle_duration_sec=1.0,
            )

    return node.create_subscription(Float64MultiArray, f'~/manual/{item.name}', arrived, 1)

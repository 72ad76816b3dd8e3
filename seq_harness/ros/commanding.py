"""What a node commands: its setpoints, and who else commands there."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
import time
from typing import Any

from rclpy.event_handler import PublisherEventCallbacks
from rclpy.node import Node
from rclpy.qos import qos_policy_name_from_kind
from seq_harness.inputs import Verdict
from seq_harness.outputs import Output, Outputs
from seq_harness.ros.message_types import message_class
from seq_harness.ros.ownership import Ownership
from seq_harness.ros.rejections import RejectionWatch
from seq_harness.ros.subscribing import Tell
from seq_harness.ros.topics import output, setpoint_publisher
from seq_harness.settings import ChannelSettings, Settings

CONTROLLER_STATE = 'control_msgs/msg/JointTrajectoryControllerState'


class Commanding:
    """Publishers of a configured node; the executor's thread opens and closes them."""

    def __init__(self, node: Node, settings: Settings, period_ns: int, tell: Tell) -> None:
        """
        Open a publisher for every channel.

        Raises
        ------
        TypeMissing
            The message of a channel's type is not installed.

        """
        self._node = node
        self._tell = tell
        made = {}
        with ExitStack() as parts:
            publishers = []
            for item in settings.channels:
                publisher = setpoint_publisher(node, item, settings['preview'], self._events(item))
                parts.callback(node.destroy_publisher, publisher)
                publishers.append(publisher)
                made[item.name] = output(publisher, item, period_ns, self._stamp)
                if item.controller_state and not settings['preview']:
                    made[item.name] = self._watched(item, made[item.name], parts)
            self._parts = parts.pop_all()
        self.outputs = Outputs(made)
        self.ownership = Ownership(node, publishers, settings['on_other_publisher'])

    def watch(self, stop: Callable[[str], object]) -> None:
        """Look for other publishers from now on; `stop` ends the episode for a reason."""
        self._parts.callback(self.ownership.watch(stop, self._tell))

    def close(self) -> None:
        """Close all publishers."""
        self._parts.close()

    def _watched(self, item: ChannelSettings, sent: Output, parts: ExitStack) -> Output:
        """Watch whether the controller takes what is sent, by the state that it publishes."""
        watch = RejectionWatch(item.joints, item.topic)

        def publish(message: Any) -> None:
            watch.commanded(message)
            sent.publish(message)

        def arrived(state: Any) -> None:
            said = watch.look(state, time.monotonic_ns())
            self._tell(f'{item.name} (controller)', said, Verdict.REFUSED)

        subscription = self._node.create_subscription(
            message_class(CONTROLLER_STATE), item.controller_state, arrived, 1
        )
        parts.callback(self._node.destroy_subscription, subscription)
        return Output(sent.encode, publish)

    def _stamp(self) -> Any:
        return self._node.get_clock().now().to_msg()

    def _events(self, item: ChannelSettings) -> PublisherEventCallbacks:
        def incompatible(event: Any) -> None:
            policy = qos_policy_name_from_kind(event.last_policy_kind)
            self._tell(
                f'{item.name} (QoS)',
                f'a subscription on {item.topic} asks for another {policy} than setpoints have '
                '(reliable, volatile), so none arrives: change the subscription',
                Verdict.INCOMPATIBLE,
            )

        return PublisherEventCallbacks(incompatible_qos=incompatible)

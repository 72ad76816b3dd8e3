"""What a node commands: its setpoints, and who else commands there."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from rclpy.event_handler import PublisherEventCallbacks
from rclpy.node import Node
from rclpy.qos import qos_policy_name_from_kind
from seq_harness.inputs import Verdict
from seq_harness.outputs import Outputs
from seq_harness.ros.ownership import Ownership
from seq_harness.ros.subscribing import Tell
from seq_harness.ros.topics import output, setpoint_publisher
from seq_harness.settings import ChannelSettings, Settings


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
            self._parts = parts.pop_all()
        self.outputs = Outputs(made)
        self.ownership = Ownership(node, publishers, settings['on_other_publisher'])

    def watch(self, stop: Callable[[str], object]) -> None:
        """Look for other publishers from now on; `stop` ends the episode for a reason."""
        self._parts.callback(self.ownership.watch(stop, self._tell))

    def close(self) -> None:
        """Close all publishers."""
        self._parts.close()

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

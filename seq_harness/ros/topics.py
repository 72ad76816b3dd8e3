"""Publishers that carry the setpoints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from rclpy.event_handler import PublisherEventCallbacks
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy
from seq_harness.messages.commands import COMMANDS, encoder, Library
from seq_harness.outputs import Output
from seq_harness.ros.message_types import message_class
from seq_harness.settings import ChannelSettings

SETPOINT_QOS = QoSProfile(
    history=HistoryPolicy.KEEP_LAST,
    depth=1,
    reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.VOLATILE,
)

RCLPY = Library(blank=message_class, made_of=message_class)

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
    kind = message_class(COMMANDS[item.type].message)
    return node.create_publisher(kind, topic, SETPOINT_QOS, event_callbacks=events)


class Sends(Protocol):
    """What takes the messages of a channel."""

    def publish(self, message: Any) -> None:
        """Take a message."""


def output(
    publisher: Publisher | Sends,
    item: ChannelSettings,
    period_ns: int,
    stamp: Stamp | None = None,
) -> Output:
    """
    Return how a channel's value becomes a message; a row is to be reached in `period_ns`.

    `stamp` gives headers the present, which MoveIt Servo wants: it takes no older command.
    """
    return Output(encoder(item, period_ns, RCLPY, stamp), publisher.publish)

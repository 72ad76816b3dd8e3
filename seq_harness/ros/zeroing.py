"""The publishers by which a watchdog keeps command topics at zero."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from rclpy.node import Node
from rclpy.publisher import Publisher
from seq_harness.messages.commands import COMMANDS, encoder
from seq_harness.ros.beats import Watched, zeros
from seq_harness.ros.message_types import message_class, TypeMissing
from seq_harness.ros.topics import RCLPY, SETPOINT_QOS


class ZeroRefused(ValueError):
    """A channel that no zero can be sent to; names it and why."""


class Zeroing:
    """
    Publishers for the channels of a harness, open before they are needed.

    The executor's thread owns it. A publisher that was just opened reaches nobody yet, so none is
    closed while its channel may still be wanted.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self._open: dict[Watched, tuple[Publisher, Callable[[], Any]]] = {}
        self._endpoints: dict[Watched, tuple[str, ...]] = {}

    @property
    def endpoints(self) -> tuple[str, ...]:
        """Return the identifiers of the publishers, in hex, as others see them in the graph."""
        return tuple(known for each in self._endpoints.values() for known in each)

    def prepare(self, channels: Iterable[Watched], period_s: float) -> None:
        """
        Open what these channels lack, and close what none of them needs.

        Raises
        ------
        ZeroRefused
            A channel cannot be zeroed: its message is not installed, or takes no such zero, or
            the middleware refuses it.

        """
        wanted = set(channels)
        made = {channel: self._made(channel, period_s) for channel in wanted - set(self._open)}
        for channel in set(self._open) - wanted:
            publisher, _ = self._open.pop(channel)
            del self._endpoints[channel]
            self._node.destroy_publisher(publisher)
        for channel, (kind, message) in made.items():
            before = set(self._of(channel.topic))
            try:
                publisher = self._node.create_publisher(kind, channel.topic, SETPOINT_QOS)
            except RuntimeError as error:
                raise ZeroRefused(f'{channel.topic} cannot be published on: {error}') from error
            self._open[channel] = publisher, message
            self._endpoints[channel] = tuple(set(self._of(channel.topic)) - before)

    def publish(self, channels: Iterable[Watched]) -> None:
        """Send each of these channels that is open its zero."""
        for channel in channels:
            if channel in self._open:
                publisher, message = self._open[channel]
                publisher.publish(message())

    def _made(self, channel: Watched, period_s: float) -> tuple[Any, Callable[[], Any]]:
        """Return the class of a channel's messages, and what makes its zero; it was tried."""
        try:
            kind = message_class(COMMANDS[channel.type].message)
            encode = encoder(channel, round(period_s * 1e9), RCLPY, self._stamp)
            encode(zeros(channel))
        except (TypeMissing, ValueError) as error:
            raise ZeroRefused(f'{channel.topic} ({channel.type}): {error}') from error
        return kind, lambda: encode(zeros(channel))

    def _of(self, topic: str) -> list[str]:
        """List the publishers of this node on a topic."""
        own = self._node.get_fully_qualified_name()
        return [
            bytes(info.endpoint_gid).hex()
            for info in self._node.get_publishers_info_by_topic(topic)
            if f'{info.node_namespace.rstrip("/")}/{info.node_name}' == own
        ]

    def _stamp(self) -> Any:
        return self._node.get_clock().now().to_msg()

"""Subscriptions of the inputs: QoS that matches, and a count of what does not arrive."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.node import Node
from rclpy.qos import (
    DurabilityPolicy,
    HistoryPolicy,
    qos_policy_name_from_kind,
    QoSProfile,
    ReliabilityPolicy,
)
from seq_harness.inputs import Verdict
from seq_harness.messages.converters import converter, Form
from seq_harness.ros.message_types import message_class
from seq_harness.settings import InputSettings

Arrived = Callable[[Any, str, int | None], None]
"""Takes a message, its topic, and what number its publisher gave it, if that is known."""

Tell = Callable[[str, str, Verdict], None]
"""Takes a name, what is wrong or an empty text once it is well again, and what that means."""

WINDOW_NS = 2_000_000_000
"""Over how long losses are counted before they are told."""

MOST_LOST = 0.1
"""A larger share of lost messages than this is told."""

LARGE_BYTES = 65_000
"""A message above this travels in several datagrams, all of which must arrive."""

_UNKNOWN_SEQUENCE = 2**64 - 1


class Losses:
    """Counts messages that were sent and did not arrive, window by window."""

    def __init__(self, item: InputSettings) -> None:
        self._item = item
        self._since_ns: int | None = None
        self._arrived = 0
        self._missed = 0
        self._last: int | None = None
        self._counted = True
        self.lost = 0
        """Messages that did not arrive, in all windows that are over."""
        self.share: float | None = None
        """The share of messages that did not arrive in the last such window, from 0 to 1."""

    def note(self, sequence: int | None, size: int, now_ns: int) -> str | None:
        """
        Count an arrival; return what was lost in a window that is over, or nothing.

        None while the window goes on. The publisher's own numbers tell what was sent; with
        several publishers, or none that are known, the expected rate does.
        """
        if self._since_ns is None:
            self._begin(sequence, now_ns)
            return None
        self._arrived += 1
        self._count(sequence)
        length_ns = now_ns - self._since_ns
        if length_ns < WINDOW_NS:
            return None
        sent = self._sent(length_ns)
        lost = sent - self._arrived
        self.lost += lost
        self.share = lost / sent if sent else 0.0
        said = '' if lost <= MOST_LOST * sent else self._said(lost, sent, length_ns, size)
        self._begin(sequence, now_ns)
        return said

    def _begin(self, sequence: int | None, now_ns: int) -> None:
        self._since_ns, self._last = now_ns, sequence
        self._arrived, self._missed, self._counted = 0, 0, sequence is not None

    def _count(self, sequence: int | None) -> None:
        if sequence is None or self._last is None or sequence <= self._last:
            self._counted = False
        else:
            self._missed += sequence - self._last - 1
        self._last = sequence

    def _sent(self, length_ns: int) -> int:
        expected = round(self._item.expected_hz * length_ns / 1e9)
        return max(expected, self._arrived + (self._missed if self._counted else 0))

    def _said(self, lost: int, sent: int, length_ns: int, size: int) -> str:
        remedy = 'check the network and the load of both machines'
        if size > LARGE_BYTES:
            remedy = (
                f'messages of {size} bytes are split up: give the middleware a larger '
                'shared-memory segment (config/fastdds_shared_memory.xml), send smaller or '
                'compressed frames, or make publisher and subscription reliable'
            )
        return (
            f'{lost} of {sent} messages on {self._item.topic} did not arrive within '
            f'{length_ns / 1e9:.1f} s: {remedy}'
        )


class InputSubscription:
    """One topic of an input; the executor's thread alone uses it."""

    def __init__(
        self, node: Node, item: InputSettings, topic: str, arrived: Arrived, tell: Tell
    ) -> None:
        """
        Subscribe.

        Raises
        ------
        TypeMissing, LookupError
            The message type, or what reads it, is not installed.

        """
        self._node = node
        self._item = item
        self._topic = topic
        self._arrived = arrived
        self._tell = tell
        self.losses = Losses(item)
        """What did not arrive of it."""
        found = converter(item.type)
        self._class = message_class(found.message)
        # Of a camera only the newest frame counts; other messages come in bursts.
        self._depth = 1 if found.form is Form.IMAGE else 10
        self._subscription = self._subscribed(self._profile())

    def close(self) -> None:
        """Subscribe no longer."""
        self._node.destroy_subscription(self._subscription)

    def _subscribed(self, profile: QoSProfile) -> Any:
        return self._node.create_subscription(
            self._class,
            self._topic,
            self._on_message,  # type: ignore[arg-type]
            profile,
            event_callbacks=SubscriptionEventCallbacks(incompatible_qos=self._on_incompatible),
        )

    def _on_message(self, message: Any, info: Any) -> None:
        sequence = info.get('publication_sequence_number')
        if sequence == _UNKNOWN_SEQUENCE:
            sequence = None
        now_ns = info.get('received_timestamp') or 0
        size = len(message.data) if hasattr(message, 'data') and self._depth == 1 else 0
        lost = self.losses.note(sequence, size, now_ns)
        if lost is not None:
            self._tell(f'{self._item.name} (loss)', lost, Verdict.LOST)
        self._arrived(message, self._topic, sequence)

    def _on_incompatible(self, event: Any) -> None:
        policy = qos_policy_name_from_kind(event.last_policy_kind)
        if 'auto' in (self._item.reliability, self._item.durability):
            weakest = self._made(ReliabilityPolicy.BEST_EFFORT, DurabilityPolicy.VOLATILE)
            if self._subscription.qos_profile != weakest:
                self.close()
                self._subscription = self._subscribed(weakest)
                return
        self._tell(
            f'{self._item.name} (QoS)',
            f'a publisher on {self._topic} offers another {policy} than inputs.{self._item.name} '
            'asks for, so nothing of it arrives: set reliability and durability to auto',
            Verdict.INCOMPATIBLE,
        )

    def _profile(self) -> QoSProfile:
        """Take what the publishers that are there offer, where a parameter does not say."""
        offered = [
            info.qos_profile for info in self._node.get_publishers_info_by_topic(self._topic)
        ]
        reliable = _chosen(
            self._item.reliability,
            'reliable',
            [profile.reliability == ReliabilityPolicy.RELIABLE for profile in offered],
        )
        latched = _chosen(
            self._item.durability,
            'transient_local',
            [profile.durability == DurabilityPolicy.TRANSIENT_LOCAL for profile in offered],
        )
        return self._made(
            ReliabilityPolicy.RELIABLE if reliable else ReliabilityPolicy.BEST_EFFORT,
            DurabilityPolicy.TRANSIENT_LOCAL if latched else DurabilityPolicy.VOLATILE,
        )

    def _made(self, reliability: ReliabilityPolicy, durability: DurabilityPolicy) -> QoSProfile:
        given = self._item
        if given.reliability != 'auto':
            reliability = ReliabilityPolicy[given.reliability.upper()]
        if given.durability != 'auto':
            durability = DurabilityPolicy[given.durability.upper()]
        return QoSProfile(
            history=HistoryPolicy.KEEP_LAST,
            depth=self._depth,
            reliability=reliability,
            durability=durability,
        )


def _chosen(given: str, stronger: str, offered: list[bool]) -> bool:
    """Return whether to ask for the stronger policy: as given, or if all publishers offer it."""
    return given == stronger if given != 'auto' else bool(offered) and all(offered)

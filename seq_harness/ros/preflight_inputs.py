"""What arrives of each input in a few seconds, against what its parameters say."""

from __future__ import annotations

from collections.abc import Iterator
import os
import time
from typing import Any

from rclpy.node import Node
from seq_harness.inputs import Inputs, Verdict
from seq_harness.messages.converters import converter
from seq_harness.ros.findings import fault, Finding, ok, warning
from seq_harness.ros.subscribing import InputSubscription
from seq_harness.settings import ChannelSettings, InputSettings, Settings

DEFAULT_SEGMENT_BYTES = 512 * 1024
"""What Fast DDS gives to one message in shared memory, unless it is told otherwise."""

SLOW = 0.7
"""Less than this share of the expected rate is slow."""

_PROFILES = ('FASTDDS_DEFAULT_PROFILES_FILE', 'FASTRTPS_DEFAULT_PROFILES_FILE')


class InputCheck:
    """Listen to one input, and say what was heard; the executor's thread alone."""

    def __init__(self, node: Node, item: InputSettings, inputs: Inputs) -> None:
        """Subscribe as the harness does."""
        self._node = node
        self._item = item
        self._inputs = inputs
        self._count = 0
        self._refusal = ''
        self._odd = ''
        self._told = ''
        self._names: set[str] = set()
        self._form = ''
        self._bytes = 0
        self._began_ns = time.monotonic_ns()
        self._subscriptions: list[InputSubscription] = []
        for topic in item.topics:
            try:
                subscription = InputSubscription(node, item, topic, self._arrived, self._tell)
            except Exception as error:
                self._refusal = f'{topic} cannot be subscribed to: {error}'
            else:
                self._subscriptions.append(subscription)

    def close(self) -> None:
        """Subscribe no longer."""
        for subscription in self._subscriptions:
            subscription.close()

    def findings(self) -> Iterator[Finding]:
        """Say what was heard since."""
        subject, found = f'input {self._item.name}', list(self._graph())
        yield from found
        if found:
            return
        if not self._count and not self._refusal:
            yield fault(
                subject,
                f'{self._item.topic} is published and says nothing',
                'see whether its sensor runs, and whether both machines share a network',
            )
        elif self._refusal:
            yield fault(subject, self._refusal, 'correct the publisher, or inputs.<name>.type')
        else:
            yield from self._heard(subject)

    def _heard(self, subject: str) -> Iterator[Finding]:
        rate = self._count / max(1e-9, (time.monotonic_ns() - self._began_ns) / 1e9)
        missing = [
            joint for joint in self._item.joints if self._names and joint not in self._names
        ]
        if missing:
            yield fault(
                subject,
                f'{missing} are not among the joints of {self._item.topic}: {sorted(self._names)}',
                'write inputs.<name>.joints as the robot names them',
            )
        if self._odd:
            yield warning(subject, self._odd, 'set the clocks of both machines, or stamp: arrival')
        if self._told:
            yield warning(subject, self._told, 'see what it says')
        if self._item.expected_hz and rate < SLOW * self._item.expected_hz:
            yield warning(
                subject,
                f'{rate:.1f} a second arrive, and {self._item.expected_hz:g} are expected',
                'see whether the network or the middleware loses them, or lower expected_hz',
            )
        if self._bytes > DEFAULT_SEGMENT_BYTES and not any(map(os.environ.get, _PROFILES)):
            yield warning(
                subject,
                f'a frame has {self._bytes} bytes, more than the shared memory that Fast DDS '
                f'gives to one by itself ({DEFAULT_SEGMENT_BYTES}): most are lost there',
                f'set {_PROFILES[0]} to config/fastdds_shared_memory.xml of this package',
            )
        yield ok(subject, f'{self._item.topic}, {rate:.1f} a second{self._form}')

    def _graph(self) -> Iterator[Finding]:
        subject, wanted = f'input {self._item.name}', converter(self._item.type).message
        for topic in self._item.topics:
            kinds = {info.topic_type for info in self._node.get_publishers_info_by_topic(topic)}
            if not kinds:
                yield fault(
                    subject,
                    f'nobody publishes {self._node.resolve_topic_name(topic)}',
                    'start its node, or correct inputs.<name>.topic, the namespace or a remapping',
                )
            elif kinds != {wanted}:
                yield fault(
                    subject,
                    f'{topic} carries {sorted(kinds)}, and {self._item.type} reads {wanted}',
                    'correct inputs.<name>.type or .topic',
                )

    def _arrived(self, message: Any, topic: str, sequence: int | None) -> None:
        self._count += 1
        arrival = self._inputs.put(
            self._item.name,
            message,
            now_ns=time.monotonic_ns(),
            ros_now_ns=self._node.get_clock().now().nanoseconds,
            topic=topic,
            sequence=sequence,
        )
        self._refusal = arrival.reason if arrival.verdict is Verdict.REFUSED else ''
        if arrival.verdict is Verdict.RESTAMPED:
            self._odd = arrival.reason
        elif arrival.verdict is not Verdict.REFUSED and arrival.reason:
            self._told = arrival.reason
        if hasattr(message, 'encoding'):
            self._form = f', {message.width}x{message.height} {message.encoding}'
            self._bytes = len(message.data)
        elif hasattr(message, 'format'):
            self._form = f', {message.format!r}, {len(message.data)} bytes'
        self._names.update(getattr(message, 'name', ()))

    def _tell(self, name: str, reason: str, verdict: Verdict) -> None:
        self._told = reason or self._told


def state_findings(settings: Settings, inputs: Inputs) -> Iterator[Finding]:
    """Compare what is measured with the limits of each channel, and show both."""
    snapshot = inputs.snapshot()
    for channel in settings.channels:
        sample = snapshot.get(channel.state)
        if sample is not None and isinstance(sample.value, dict) and channel.kind == 'position':
            yield from _measured(channel, sample.value)


def _measured(channel: ChannelSettings, values: dict[str, float]) -> Iterator[Finding]:
    subject, shown = f'channel {channel.name}', []
    for joint, low, high in zip(channel.joints, channel.lower, channel.upper, strict=True):
        value = values.get(joint)
        if value is None:
            continue
        shown.append(f'{joint} {value:.3f} in [{low:g}, {high:g}]')
        if not low <= value <= high:
            yield warning(
                subject,
                f'{joint} is measured at {value:.3f}, outside its limits [{low:g}, {high:g}]',
                'compare the units (rad or degrees), the sign, and the open and closed values of '
                'a gripper; correct the limits, or move the robot',
            )
    yield ok(subject, '; '.join(shown))

"""What arrives of each input in a few seconds, against what its parameters say."""

from __future__ import annotations

from collections.abc import Iterator
import os
import time
from typing import Any

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, ReliabilityPolicy
from rclpy.utilities import get_rmw_implementation_identifier
from seq_harness.inputs import Inputs, Snapshot, Verdict
from seq_harness.messages.converters import converter
from seq_harness.ros.findings import fault, Finding, ok, warning
from seq_harness.ros.shared_memory import (
    FILES_GONE,
    KEEP_FILES,
    lost_ports,
    PROFILES,
    ProfilesUnreadable,
    segment_bytes,
)
from seq_harness.ros.subscribing import InputSubscription
from seq_harness.settings import InputSettings

SLOW = 0.7
"""Less than this share of the expected rate is slow."""

ENOUGH = 4
"""So few messages tell no rate."""


STAMPS = 'set the clocks of both machines, or inputs.<name>.stamp to arrival where they are right'
"""What to do about stamps that are wrong."""


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
        self._deaf = ''
        self._names: set[str] = set()
        self._form = ''
        self._bytes = 0
        self._first_ns: int | None = None
        self._subscriptions: list[InputSubscription] = []
        for topic in item.topics:
            try:
                subscription = InputSubscription(node, item, topic, self._arrived, self._tell)
            except Exception as error:
                self._refusal = f'{topic} cannot be subscribed to: {error}'
            else:
                self._subscriptions.append(subscription)

    @property
    def rate_hz(self) -> float:
        """Return how many messages a second came since the first, as discovery takes its time."""
        since_s = (time.monotonic_ns() - (self._first_ns or 0)) / 1e9
        return max(0, self._count - 1) / max(1e-9, since_s)

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
        if self._refusal:
            yield fault(subject, self._refusal, 'correct the publisher, or inputs.<name>.type')
        elif not self._count:
            yield self._silent(subject)
        else:
            yield from self._heard(subject)

    def _silent(self, subject: str) -> Finding:
        if self._deaf:
            return fault(subject, self._deaf, 'set reliability and durability to auto')
        return fault(
            subject,
            f'{self._item.topic} is published and says nothing',
            'see whether its sensor runs, and whether both machines share a network',
        )

    def _heard(self, subject: str) -> Iterator[Finding]:
        yield from self._joints(subject)
        if self._odd:
            yield warning(subject, self._odd, 'set the clocks of both machines, or stamp: arrival')
        for told in filter(None, (self._told, self._deaf)):
            yield warning(subject, told, 'see what it says')
        yield from self._rates(subject)
        if self._bytes:
            yield from memory_findings(subject, self._bytes)
        said = f'{self._item.topic}, {self.rate_hz:.1f} a second{self._form}, {self._offered()}'
        yield ok(subject, said)

    def _joints(self, subject: str) -> Iterator[Finding]:
        wanted = self._item.joints
        missing = [joint for joint in wanted if self._names and joint not in self._names]
        if missing:
            yield fault(
                subject,
                f'{missing} are not among the joints of {self._item.topic}: {sorted(self._names)}',
                'write inputs.<name>.joints as the robot names them',
            )
        more = sorted(self._names - set(wanted))
        if more and not missing:
            yield ok(subject, f'{self._item.topic} has {more} too, which are not read')

    def _rates(self, subject: str) -> Iterator[Finding]:
        rate, item = self.rate_hz, self._item
        if item.expected_hz and rate < SLOW * item.expected_hz:
            yield warning(
                subject,
                f'{rate:.1f} a second arrive, and {item.expected_hz:g} are expected',
                'see whether the network or the middleware loses them, or lower expected_hz',
            )
        sample = self._inputs.snapshot().get(item.name)
        if sample is None or item.is_status or item.on_stale == 'continue':
            return
        age_s = (time.monotonic_ns() - sample.born_ns) / 1e9
        if age_s > item.max_age_s or not sample.proven:
            said = f'the newest is {age_s:.2f} s old, and max_age_s is {item.max_age_s:g}'
            remedy = 'see whether its publisher still runs, or set max_age_s to what it can give'
            if sample.doubt:
                said, remedy = f'{rate:.1f} a second arrive, but {sample.doubt}', STAMPS
            yield fault(subject, f'{said}: it would end every episode as stale', remedy)
        elif self._count >= ENOUGH and rate * item.max_age_s < 1:
            yield warning(
                subject,
                f'{rate:.1f} a second arrive, so one is often older than max_age_s, '
                f'{item.max_age_s:g} s, before the next comes',
                'have it published more often, or raise max_age_s',
            )

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

    def _offered(self) -> str:
        """Say what QoS the publishers offer."""
        offered = {
            f'{ReliabilityPolicy(info.qos_profile.reliability).name.lower()} '
            f'{DurabilityPolicy(info.qos_profile.durability).name.lower()}'
            for topic in self._item.topics
            for info in self._node.get_publishers_info_by_topic(topic)
        }
        return ' and '.join(sorted(offered)) or 'published no longer'

    def _arrived(self, message: Any, topic: str, sequence: int | None) -> None:
        self._count += 1
        self._first_ns = self._first_ns or time.monotonic_ns()
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
        elif arrival.verdict is Verdict.AGEING:
            self._odd = ''
        elif arrival.verdict is not Verdict.REFUSED and arrival.reason:
            self._told = arrival.reason
        if hasattr(message, 'encoding'):
            self._form = f', {message.width}x{message.height} {message.encoding}'
            self._bytes = len(message.data)
        elif hasattr(message, 'format'):
            self._form = f', {message.format!r}, {len(message.data)} bytes'
            self._bytes = len(message.data)
        self._names.update(getattr(message, 'name', ()))

    def _tell(self, name: str, reason: str, verdict: Verdict) -> None:
        if verdict is Verdict.INCOMPATIBLE:
            self._deaf = reason
        else:
            self._told = reason or self._told


def memory_findings(subject: str, frame_bytes: int) -> Iterator[Finding]:
    """Compare a frame with the shared memory of Fast DDS, as this environment sets it."""
    if 'fastrtps' not in get_rmw_implementation_identifier():
        return
    try:
        segment = segment_bytes(os.environ)
    except ProfilesUnreadable as error:
        yield warning(subject, str(error), f'correct {PROFILES[0]}')
        return
    if frame_bytes > segment:
        yield warning(
            subject,
            f'a frame has {frame_bytes} bytes, more than the shared memory that Fast DDS gives to '
            f'all of a sender ({segment}, as set here): most are lost there',
            f'set {PROFILES[0]} to config/fastdds_shared_memory.xml of this package, for the '
            'camera too',
        )


def lost_memory_findings() -> Iterator[Finding]:
    """Say whether the files through which this very process hears are gone (G52)."""
    lost = lost_ports()
    if lost:
        yield fault('middleware', f'{", ".join(lost)} {FILES_GONE}', KEEP_FILES)


def clock_findings(node: Node) -> Iterator[Finding]:
    """Say whether the time that a simulation is to give is there (G16)."""
    if not node.get_parameter('use_sim_time').value:
        return
    if not node.get_publishers_info_by_topic('/clock'):
        yield fault(
            'clock',
            'use_sim_time is set and nobody publishes /clock: nothing starts before it comes',
            'start the simulation or the bag, or leave use_sim_time out',
        )
    elif not node.get_clock().now().nanoseconds:
        yield fault(
            'clock', '/clock is published and says nothing', 'see whether the simulation is paused'
        )
    else:
        yield ok('clock', '/clock is the time')


def status_findings(inputs: Inputs, snapshot: Snapshot) -> Iterator[Finding]:
    """Say whether a status keeps the arm from moving."""
    said = inputs.unavailable(snapshot, time.monotonic_ns())
    if said:
        yield warning('arm', f'it is not available: {said}', 'see what the robot waits for')

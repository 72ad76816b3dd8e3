"""The node bag_recorder: writes live topics to a recording as they come."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
import sys
from typing import Any

from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.topic_endpoint_info import TopicEndpointInfo
from seq_harness.bags.recording import Kept, Recorded, Recorder, Storage
from seq_harness.bags.records import BagError, Offered, Record, Topic
from seq_harness.ros.message_types import definition, message_class, TypeMissing
from seq_harness.ros.process import Process

LOOK_EVERY_S = 0.1
"""How often the graph is searched for topics that have not appeared yet."""

DEPTH = 100
"""Messages that may wait for this node; a burst of one topic fits."""


class BagRecorder(Node):
    """Subscribes to each topic once it is published, and hands its messages on, serialised."""

    def __init__(
        self,
        topics: Sequence[str],
        recorder: Recorder,
        on_failure: Callable[[str], None],
        **kwargs: Any,
    ) -> None:
        """`on_failure` hears once, on the executor's thread, why nothing more is written."""
        super().__init__('bag_recorder', **kwargs)
        self._recorder = recorder
        self._on_failure = on_failure
        self._failed = False
        self._told: set[str] = set()
        self.awaited = {self.resolve_topic_name(topic) for topic in topics}
        """The topics that nobody has published yet."""
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self.create_timer(LOOK_EVERY_S, self._look, clock=steady)

    def _look(self) -> None:
        for name in sorted(self.awaited):
            publishers = self.get_publishers_info_by_topic(name)
            if publishers:
                self._begin(name, publishers)

    def _begin(self, name: str, publishers: list[TopicEndpointInfo]) -> None:
        kinds = sorted({publisher.topic_type for publisher in publishers})
        try:
            if len(kinds) > 1:
                raise TypeMissing(f'{name} has several types: {", ".join(kinds)}')
            message_type = message_class(kinds[0])
        except TypeMissing as error:
            self._tell_once(f'{name} is not recorded: {error}')
            return
        offered = _offered(publishers)
        self.awaited.discard(name)
        self._recorder.add_topic(Topic(name, kinds[0], offered=offered))
        self.create_subscription(
            message_type, name, self._taker(name, kinds[0]), _requested(offered), raw=True
        )
        self.get_logger().info(f'recording {name} ({kinds[0]})')

    def _taker(self, name: str, kind: str) -> Callable[[bytes], None]:
        clock = self.get_clock()

        def take(data: bytes) -> None:
            kept = self._recorder.write(Record(name, kind, clock.now().nanoseconds, data))
            if kept is Kept.DROPPED:
                self._tell_once(f'{name}: the disk is too slow, messages are dropped')
            elif kept is Kept.FAILED and not self._failed:
                self._failed = True
                self._on_failure('the disk refused')

        return take

    def _tell_once(self, text: str) -> None:
        if text not in self._told:
            self._told.add(text)
            self.get_logger().warning(text)


def record(
    path: Path,
    topics: Sequence[str],
    storage: Storage,
    seconds: float | None,
    argv: Sequence[str] | None = None,
) -> int:
    """
    Record `topics` until a signal, or for `seconds`; print what was recorded.

    Returns 0, or 1 when nothing was recorded or the recording cannot be written.
    """
    process = Process(argv)
    try:
        recorder = Recorder(path, storage, define=definition)
    except BagError as error:
        process.close()
        print(f'record-bag: {error}', file=sys.stderr)
        return 1
    node = BagRecorder(topics, recorder, lambda reason: process.finish(reason, 1))
    if seconds is not None:
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        node.create_timer(seconds, lambda: process.finish('time is up', 0), clock=steady)
    status = process.run(node, lambda reason: None)
    awaited = sorted(node.awaited)
    node.destroy_node()
    process.close()
    try:
        recorded = recorder.close()
    except BagError as error:
        print(f'record-bag: {error}', file=sys.stderr)
        return 1
    print(_summary(path, recorded, awaited))
    return status if any(recorded.counts.values()) else 1


def _summary(path: Path, recorded: Recorded, awaited: Sequence[str]) -> str:
    lines = [f'{path}: {sum(recorded.counts.values())} messages']
    for name, count in sorted(recorded.counts.items()):
        dropped = recorded.dropped.get(name, 0)
        lines.append(f'  {name}  {count}' + (f', {dropped} dropped' if dropped else ''))
    lines.extend(f'  {name}  never published' for name in awaited)
    return '\n'.join(lines)


def _offered(publishers: Sequence[TopicEndpointInfo]) -> Offered:
    """Return what all publishers of a topic offer at least."""
    profiles = [publisher.qos_profile for publisher in publishers]
    return Offered(
        reliable=all(p.reliability is ReliabilityPolicy.RELIABLE for p in profiles),
        latched=all(p.durability is DurabilityPolicy.TRANSIENT_LOCAL for p in profiles),
        depth=max(1, *(p.depth for p in profiles)),
    )


def _requested(offered: Offered) -> QoSProfile:
    latched, reliable = offered.latched, offered.reliable
    return QoSProfile(
        depth=DEPTH,
        reliability=ReliabilityPolicy.RELIABLE if reliable else ReliabilityPolicy.BEST_EFFORT,
        durability=DurabilityPolicy.TRANSIENT_LOCAL if latched else DurabilityPolicy.VOLATILE,
    )

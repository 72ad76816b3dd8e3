"""The node bag_player: publishes a recording at its own times, with its clock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
import sys
import threading
import time
from typing import Any

from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rosgraph_msgs.msg import Clock
from seq_harness.bags.records import BagError, Offered, Record, Topic
from seq_harness.bags.timeline import Timeline
from seq_harness.ros.message_types import message_class, TypeMissing
from seq_harness.ros.process import Process
from std_srvs.srv import Trigger

SETTLE_NS = 500_000_000
"""Once somebody listens, how long nobody else must come before the replay begins."""

DELIVERY_NS = 500_000_000
"""The longest wait for the last messages to be acknowledged."""

LEAST_DEPTH = 10

ALWAYS_LATCHED = ('/tf_static', '/robot_description')
"""Topics that late subscribers need, where the recording does not say how they were offered."""


@dataclass(frozen=True)
class PlaySettings:
    """How a recording is played."""

    rate: float = 1.0
    """Its seconds in one of ours."""
    clock_hz: float = 200.0
    """How often /clock is published, in our seconds; 0 is never."""
    remaps: Mapping[str, str] = field(default_factory=dict)
    start_paused: bool = False
    wait_s: float = 5.0
    """The longest wait for subscribers."""


@dataclass
class Played:
    """What was published."""

    counts: Counter[str] = field(default_factory=Counter)
    skipped: dict[str, str] = field(default_factory=dict)
    """Topic to why none of it was published."""
    unheard: tuple[str, ...] = ()
    """Topics to which nobody listened when the replay began."""
    recorded_s: float = 0.0
    latest_ms: float = 0.0
    """How late the latest message went out."""


class BagPlayer(Node):
    """
    Publishes messages as they were serialised; `~/pause` and `~/resume` halt and go on.

    `play` runs on one thread; the services on the executor's.
    """

    def __init__(
        self, topics: Sequence[Topic], start_ns: int, settings: PlaySettings, **kwargs: Any
    ) -> None:
        """Offer the topics of a recording that begins at `start_ns`."""
        super().__init__('bag_player', **kwargs)
        self._settings = settings
        self._played = Played()
        self._outputs = self._offer(topics)
        self._time_topic = (
            self.create_publisher(Clock, '/clock', 10) if settings.clock_hz else None
        )
        self._stop = threading.Event()
        self._changed = threading.Event()
        self._next_tick_ns = time.monotonic_ns()  # the playing thread's alone
        self._lock = threading.Lock()
        # Guarded by _lock.
        self._timeline = Timeline(start_ns, settings.rate)
        self._begun = False
        self._paused = settings.start_paused
        self.create_service(Trigger, '~/pause', self._on_pause)
        self.create_service(Trigger, '~/resume', self._on_resume)

    def stop(self) -> None:
        """End the replay soon; from any thread."""
        self._stop.set()
        self._changed.set()

    def play(self, records: Iterable[Record]) -> Played:
        """Publish `records` at their times; return when all are out or the replay is stopped."""
        self.get_logger().info(f'waiting for subscribers of {len(self._outputs)} topics')
        self._await_subscribers()
        self._tick()
        with self._lock:
            self._begun = True
            self._set_going()
        first_ns = None
        for record in records:
            if not self._await(record.log_ns):
                break
            first_ns = record.log_ns if first_ns is None else first_ns
            self._publish(record)
            self._played.recorded_s = (record.log_ns - first_ns) / 1e9
        self._tick()
        self._await_delivery()
        return self._played

    def _offer(self, topics: Sequence[Topic]) -> dict[str, Publisher]:
        publishers: dict[str, Publisher] = {}
        for topic in topics:
            name = self._settings.remaps.get(topic.name, topic.name)
            if name in publishers:
                continue
            try:
                kind = message_class(topic.type)
            except TypeMissing as error:
                self._played.skipped[name] = str(error)
                self.get_logger().warning(f'{name} is not played: {error}')
                continue
            publishers[name] = self.create_publisher(kind, name, _profile(topic))
        return publishers

    def _await_subscribers(self) -> None:
        """Wait until every topic is heard, or nobody else comes; time stands meanwhile."""
        end_ns = time.monotonic_ns() + round(self._settings.wait_s * 1e9)
        heard, since_ns = self._heard(), time.monotonic_ns()
        while len(heard) < len(self._outputs) or self._clock_is_awaited():
            now_ns = time.monotonic_ns()
            settled = heard and now_ns - since_ns > SETTLE_NS
            if settled or now_ns >= end_ns or not self._wait_until(now_ns + 20_000_000):
                break
            if (now_heard := self._heard()) != heard:
                heard, since_ns = now_heard, now_ns
        self._played.unheard = tuple(sorted(set(self._outputs) - heard))

    def _clock_is_awaited(self) -> bool:
        """Tell whether somebody wants /clock whom it does not reach yet."""
        topic = self._time_topic
        wanted = self.count_subscribers('/clock')
        return topic is not None and topic.get_subscription_count() < wanted

    def _await_delivery(self) -> None:
        """Give the last messages time to be taken; acknowledgements alone may come much later."""
        end_ns = time.monotonic_ns() + DELIVERY_NS
        for publisher in self._outputs.values():
            rest_ns = max(0, end_ns - time.monotonic_ns())
            publisher.wait_for_all_acked(Duration(nanoseconds=rest_ns))

    def _heard(self) -> set[str]:
        return {n for n, p in self._outputs.items() if p.get_subscription_count()}

    def _await(self, log_ns: int) -> bool:
        """Wait until a time of the recording has come; False when the replay was stopped."""
        while not self._stop.is_set():
            with self._lock:
                instant = self._timeline.when(log_ns)
            if instant is not None and instant <= time.monotonic_ns():
                late_ms = (time.monotonic_ns() - instant) / 1e6
                self._played.latest_ms = max(self._played.latest_ms, late_ms)
                return True
            self._wait_until(instant)
        return False

    def _wait_until(self, instant_ns: int | None) -> bool:
        """Wait until an instant or a change, whichever is first, and keep the clock going."""
        while not self._stop.is_set():
            self._tick_if_due()
            instants = [i for i in (instant_ns, self._due_tick_ns()) if i is not None]
            rest_s = (min(instants) - time.monotonic_ns()) / 1e9 if instants else None
            if rest_s is None or rest_s > 0:
                self._changed.wait(rest_s)
            if self._changed.is_set():
                self._changed.clear()
                break
            if instant_ns is not None and time.monotonic_ns() >= instant_ns:
                break
        return not self._stop.is_set()

    def _due_tick_ns(self) -> int | None:
        return self._next_tick_ns if self._time_topic is not None else None

    def _tick_if_due(self) -> None:
        now_ns = time.monotonic_ns()
        if self._time_topic is None or now_ns < self._next_tick_ns:
            return
        period_ns = round(1e9 / self._settings.clock_hz)
        self._next_tick_ns += period_ns * (1 + (now_ns - self._next_tick_ns) // period_ns)
        self._tick()

    def _tick(self) -> None:
        if self._time_topic is None:
            return
        with self._lock:
            seconds, nanoseconds = divmod(self._timeline.at(time.monotonic_ns()), 1_000_000_000)
        message = Clock()
        message.clock.sec, message.clock.nanosec = seconds, nanoseconds
        self._time_topic.publish(message)

    def _publish(self, record: Record) -> None:
        self._tick_if_due()
        name = self._settings.remaps.get(record.topic, record.topic)
        if (publisher := self._outputs.get(name)) is not None:
            publisher.publish(record.data)
            self._played.counts[name] += 1

    def _set_going(self) -> None:
        """Let time pass, or stand, as is wanted; with the lock held."""
        now_ns = time.monotonic_ns()
        if self._begun and not self._paused:
            self._timeline.go(now_ns)
        else:
            self._timeline.stand(now_ns)
        self._changed.set()

    def _on_pause(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        return self._pause(True, response)

    def _on_resume(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        return self._pause(False, response)

    def _pause(self, paused: bool, response: Trigger.Response) -> Trigger.Response:
        with self._lock:
            self._paused = paused
            self._set_going()
        response.success, response.message = True, 'paused' if paused else 'playing'
        return response


def play(
    topics: Sequence[Topic],
    records: Iterable[Record],
    start_ns: int,
    settings: PlaySettings,
    argv: Sequence[str] | None = None,
) -> int:
    """
    Play a recording until its end or a signal; print what was played.

    Returns 0, or 1 when the recording broke off or nothing of it could be published.
    """
    process = Process(argv)
    node = BagPlayer(topics, start_ns, settings)
    outcome: list[Played | Exception] = []

    def run() -> None:
        try:
            outcome.append(node.play(records))
        except Exception as error:
            outcome.append(error)
        process.finish('played', 0)

    thread = threading.Thread(target=run, name='player')
    thread.start()
    process.run(node, lambda reason: node.stop())
    thread.join()
    node.destroy_node()
    process.close()
    if isinstance(outcome[0], BagError):
        print(f'play-bag: {outcome[0]}', file=sys.stderr)
        return 1
    if isinstance(outcome[0], Exception):
        raise outcome[0]
    print(_summary(outcome[0]))
    return 0 if outcome[0].counts or not outcome[0].skipped else 1


def _summary(played: Played) -> str:
    lines = [
        f'played {sum(played.counts.values())} messages of {played.recorded_s:.3f} s, '
        f'at most {played.latest_ms:.1f} ms late'
    ]
    for name, count in sorted(played.counts.items()):
        unheard = ', nobody listened at the start' if name in played.unheard else ''
        lines.append(f'  {name}  {count}{unheard}')
    lines.extend(f'  {name}  not played: {why}' for name, why in sorted(played.skipped.items()))
    return '\n'.join(lines)


def _profile(topic: Topic) -> QoSProfile:
    """Offer reliably whatever was recorded: that matches every subscriber."""
    offered = topic.offered or Offered(latched=topic.name in ALWAYS_LATCHED)
    return QoSProfile(
        depth=max(LEAST_DEPTH, offered.depth),
        reliability=ReliabilityPolicy.RELIABLE,
        durability=(
            DurabilityPolicy.TRANSIENT_LOCAL if offered.latched else DurabilityPolicy.VOLATILE
        ),
    )

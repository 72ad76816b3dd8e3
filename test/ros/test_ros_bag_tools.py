"""Playing recordings into a real graph, and recording from one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, ExitStack
import itertools
from pathlib import Path
import queue
import threading
import time
from typing import Any

import pytest
import rclpy
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.serialization import serialize_message
from rclpy.signals import SignalHandlerOptions
from rosgraph_msgs.msg import Clock
from seq_harness.bags.reading import Bag
from seq_harness.bags.recording import Recorder
from seq_harness.bags.records import Offered, Record, Topic
from seq_harness.ros.bag_player import BagPlayer, Played, PlaySettings
from seq_harness.ros.bag_recorder import BagRecorder
from std_msgs.msg import Float64, String
from std_srvs.srv import Trigger
from support.waiting import AT_ONCE_S, PATIENCE_S, wait_for

FLOAT = 'std_msgs/msg/Float64'
START_NS = 1_600_000_000_000_000_000
STEP_NS = 10_000_000
RELIABLE = QoSProfile(depth=1000, reliability=ReliabilityPolicy.RELIABLE)


def _records(count: int, topic: str = '/a', step_ns: int = STEP_NS) -> list[Record]:
    return [
        Record(topic, FLOAT, START_NS + n * step_ns, serialize_message(Float64(data=float(n))))
        for n in range(count)
    ]


class Graph:
    """A listener, spun on a thread of its own."""

    def __init__(self, stack: ExitStack) -> None:
        self.context = Context()
        options = SignalHandlerOptions.NO
        rclpy.init(context=self.context, signal_handler_options=options)
        stack.callback(self.context.try_shutdown)
        self._stack = stack
        self.executor = SingleThreadedExecutor(context=self.context)
        self.node = self.add(rclpy.create_node('listener', context=self.context))
        thread = threading.Thread(target=self.executor.spin)
        thread.start()
        stack.callback(thread.join)
        stack.callback(self.executor.shutdown)

    def add(self, node: Any) -> Any:
        """Spin one more node, until the end of the test."""
        self.executor.add_node(node)
        self._stack.callback(node.destroy_node)
        return node

    def listen(self, kind: type, topic: str, qos: Any = RELIABLE, raw: bool = False) -> Any:
        """Collect what comes on a topic from now on."""
        came: queue.Queue[Any] = queue.Queue()
        self.node.create_subscription(kind, topic, came.put, qos, raw=raw)
        return came

    def call(self, service: str) -> str:
        """Call a trigger, and return what it says."""
        client = self.node.create_client(Trigger, service)
        assert client.wait_for_service(PATIENCE_S)
        answered: queue.Queue[Any] = queue.Queue()
        client.call_async(Trigger.Request()).add_done_callback(answered.put)
        return str(answered.get(timeout=PATIENCE_S).result().message)

    @contextmanager
    def playing(
        self, records: Iterable[Record], topics: list[Topic], settings: PlaySettings
    ) -> Iterator[Callable[[], Played]]:
        """Play on a thread; give what waits for the end."""
        player = self.add(BagPlayer(topics, START_NS, settings, context=self.context))
        played: queue.Queue[Played] = queue.Queue()
        thread = threading.Thread(target=lambda: played.put(player.play(records)))
        thread.start()
        try:
            yield lambda: played.get(timeout=PATIENCE_S)
        finally:
            player.stop()
            thread.join()


@pytest.fixture
def graph() -> Iterator[Graph]:
    """Spin a listener."""
    with ExitStack() as stack:
        yield Graph(stack)


A = [Topic('/a', FLOAT)]


def _got(came: queue.Queue[Any], count: int) -> list[Any]:
    return [came.get(timeout=PATIENCE_S) for _ in range(count)]


def _times(clocks: list[Clock]) -> list[int]:
    return [message.clock.sec * 1_000_000_000 + message.clock.nanosec for message in clocks]


@pytest.mark.parametrize(
    ('step_s', 'rate', 'least_s'), [(0.01, 1.0, 0.49), (0.01, 0.5, 0.98), (20.0, 4000.0, 0.245)]
)
def test_messages_go_out_with_their_own_bytes_at_their_own_times(
    graph: Graph, step_s: float, rate: float, least_s: float
) -> None:
    came = graph.listen(Float64, '/a', raw=True)
    records = _records(50, step_ns=round(step_s * 1e9))
    began_s = time.monotonic()
    with graph.playing(records, A, PlaySettings(rate=rate)) as end:
        played = end()
    took_s = time.monotonic() - began_s
    assert [data[4:] for data in _got(came, 50)] == [record.data[4:] for record in records]
    assert (played.counts, played.unheard, played.skipped) == ({'/a': 50}, (), {})
    assert played.recorded_s == pytest.approx(49 * step_s)
    assert least_s <= took_s < least_s + AT_ONCE_S


def test_the_clock_runs_from_the_first_message_to_the_last(graph: Graph) -> None:
    graph.listen(Float64, '/a')
    clock = graph.listen(Clock, '/clock')
    with graph.playing(_records(100), A, PlaySettings()) as end:
        end()
    times: list[int] = []
    while not times or times[-1] < START_NS + 99 * STEP_NS:
        times.extend(_times(_got(clock, 1)))
    assert times == sorted(times)
    assert times[0] == START_NS
    moving = [t for t in times if START_NS < t < START_NS + 99 * STEP_NS]
    assert 0 < len(moving) < 220


def test_a_listener_in_simulated_time_sees_each_message_at_its_own_time(graph: Graph) -> None:
    node: Node = graph.add(
        rclpy.create_node(
            'simulated',
            context=graph.context,
            parameter_overrides=[Parameter('use_sim_time', value=True)],
        )
    )
    ages: queue.Queue[float] = queue.Queue()

    def take(message: Float64) -> None:
        due_ns = START_NS + round(message.data) * STEP_NS
        ages.put((node.get_clock().now().nanoseconds - due_ns) / 1e6)

    node.create_subscription(Float64, '/a', take, RELIABLE)
    with graph.playing(_records(50), A, PlaySettings()) as end:
        end()
    sorted_ages = sorted(_got(ages, 50))
    assert -60.0 < sorted_ages[25] < 200.0


def test_without_a_clock_none_is_published(graph: Graph) -> None:
    graph.listen(Float64, '/a')
    with graph.playing(_records(5), A, PlaySettings(clock_hz=0.0)) as end:
        assert end().counts == {'/a': 5}
    assert graph.node.count_publishers('/clock') == 0


def test_a_paused_start_waits_for_resume(graph: Graph) -> None:
    came = graph.listen(Float64, '/a')
    clock = graph.listen(Clock, '/clock')
    with graph.playing(_records(5), A, PlaySettings(start_paused=True)) as end:
        readings = [message.clock for message in _got(clock, 100)]
        assert {reading.sec * 1_000_000_000 + reading.nanosec for reading in readings} == {
            START_NS
        }
        assert came.empty()
        assert graph.call('bag_player/resume') == 'playing'
        assert [message.data for message in _got(came, 5)] == [0.0, 1.0, 2.0, 3.0, 4.0]
        end()


def test_a_pause_halts_messages_and_time(graph: Graph) -> None:
    came = graph.listen(Float64, '/a')
    with graph.playing(_records(200), A, PlaySettings()) as end:
        _got(came, 20)
        assert graph.call('bag_player/pause') == 'paused'
        clock = graph.listen(Clock, '/clock')
        assert len(set(_times(_got(clock, 60)))) == 1
        before = came.qsize()
        _got(clock, 60)
        assert came.qsize() == before
        graph.call('bag_player/resume')
        assert end().counts == {'/a': 200}


def test_it_waits_for_a_subscriber_that_comes_late(graph: Graph) -> None:
    clock = graph.listen(Clock, '/clock')
    with graph.playing(_records(5), A, PlaySettings(wait_s=PATIENCE_S)) as end:
        _got(clock, 50)
        came = graph.listen(Float64, '/a')
        assert [message.data for message in _got(came, 5)] == [0.0, 1.0, 2.0, 3.0, 4.0]
        assert end().unheard == ()


def test_it_does_not_wait_for_ever(graph: Graph) -> None:
    with graph.playing(_records(5), A, PlaySettings(wait_s=0.1)) as end:
        played = end()
    assert (played.counts, played.unheard) == ({'/a': 5}, ('/a',))


def test_a_remapped_topic_goes_out_under_its_new_name(graph: Graph) -> None:
    came = graph.listen(Float64, '/robot/b')
    with graph.playing(_records(3), A, PlaySettings(remaps={'/a': '/robot/b'})) as end:
        assert end().counts == {'/robot/b': 3}
    assert len(_got(came, 3)) == 3


def test_a_type_that_is_not_installed_is_left_out_and_named(graph: Graph) -> None:
    graph.listen(Float64, '/a')
    topics = [*A, Topic('/b', 'lab_msgs/msg/Reading')]
    records = [Record('/b', 'lab_msgs/msg/Reading', START_NS, b''), *_records(3)]
    with graph.playing(records, topics, PlaySettings()) as end:
        played = end()
    assert played.counts == {'/a': 3}
    assert 'lab_msgs/msg/Reading is not installed here' in played.skipped['/b']


def test_a_latched_topic_is_played_latched(graph: Graph) -> None:
    topics = [Topic('/a', FLOAT, offered=Offered(latched=True))]
    latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    with graph.playing(_records(1), topics, PlaySettings(wait_s=0.0)) as end:
        end()
        assert graph.listen(Float64, '/a', latched).get(timeout=PATIENCE_S).data == 0.0


def test_stopping_ends_a_replay_in_a_gap(graph: Graph) -> None:
    came = graph.listen(Float64, '/a')
    first, second = _records(2)
    far = Record(second.topic, second.type, START_NS + 3600 * 10**9, second.data)
    with graph.playing([first, far], A, PlaySettings()) as end:
        _got(came, 1)
        begun_s = time.monotonic()
    assert end().counts == {'/a': 1}
    assert time.monotonic() - begun_s < AT_ONCE_S


@pytest.mark.parametrize(
    ('profile', 'offered'),
    [
        (QoSProfile(depth=1000), Offered(reliable=True)),
        (
            QoSProfile(depth=1000, reliability=ReliabilityPolicy.BEST_EFFORT),
            Offered(reliable=False),
        ),
        (
            QoSProfile(depth=1000, durability=DurabilityPolicy.TRANSIENT_LOCAL),
            Offered(latched=True),
        ),
    ],
)
def test_a_topic_is_recorded_as_it_is_offered_and_from_when_it_appears(
    graph: Graph, tmp_path: Path, profile: QoSProfile, offered: Offered
) -> None:
    recorder = Recorder(tmp_path / 'bag')
    node = graph.add(BagRecorder(['/a'], recorder, pytest.fail, context=graph.context))
    assert node.awaited == {'/a'}
    publisher = graph.node.create_publisher(String, '/a', profile)
    publisher.publish(String(data='early'))
    wait_for(lambda: publisher.get_subscription_count() > 0, PATIENCE_S, 'the recorder')
    if offered.latched:
        wait_for(lambda: recorder.taken > 0, PATIENCE_S, 'what was kept for it')
    ticks: queue.Queue[None] = queue.Queue()
    graph.node.create_timer(0.01, lambda: ticks.put(None))
    for number in itertools.count():
        publisher.publish(String(data=f'{number}'))
        ticks.get(timeout=PATIENCE_S)
        if recorder.taken >= 5:
            break
        assert number < 5000
    recorder.close()
    with Bag(tmp_path / 'bag') as bag:
        (topic,) = bag.topics
        assert topic.offered is not None
        assert topic.offered.reliable is offered.reliable
        assert topic.offered.latched is offered.latched
        texts = [message.data for _, message in bag.messages()]
    assert (texts[0] == 'early') is offered.latched
    assert texts[-1] == str(number)

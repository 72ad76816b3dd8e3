"""Subscriptions and command topics on a real graph: QoS, losses, and who else commands."""

from __future__ import annotations

from collections.abc import Callable, Iterator
import time
from typing import Any

import numpy as np
import pytest
import rclpy
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.topic_endpoint_info import TopicEndpointInfo
from sensor_msgs.msg import JointState
from seq_harness.inputs import Inputs, Verdict
from seq_harness.playback.chunk import Chunk
from seq_harness.playback.uplink import Step
from seq_harness.ros.chunks import ChunkTopic, Origin
from seq_harness.ros.commanding import Commanding
from seq_harness.ros.meters import Meters
from seq_harness.ros.ownership import node_name
from seq_harness.ros.subscribing import InputSubscription, Losses
from std_msgs.msg import Float64MultiArray, String
from support.robots import MS, S, settings_of
from trajectory_msgs.msg import JointTrajectory

BEST_EFFORT = QoSProfile(depth=5, reliability=ReliabilityPolicy.BEST_EFFORT)
RELIABLE = QoSProfile(depth=5, reliability=ReliabilityPolicy.RELIABLE)
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


class Graph:
    """A harness's node and another one, in one executor."""

    def __init__(self, context: Any) -> None:
        self.node = Node('harness', context=context)
        self.other = Node('teleop', context=context)
        self._executor = SingleThreadedExecutor(context=context)
        for node in (self.node, self.other):
            self._executor.add_node(node)
        self.told: dict[str, tuple[str, Verdict]] = {}
        self.arrived: list[Any] = []

    def tell(self, name: str, reason: str, verdict: Verdict) -> None:
        self.told[name] = (reason, verdict)

    def subscribe(self, **changes: Any) -> InputSubscription:
        item = settings_of(**changes).inputs[0]
        take = lambda message, topic, sequence: self.arrived.append(message)  # noqa: E731
        return InputSubscription(self.node, item, item.topic, take, self.tell)

    def until(
        self, condition: Callable[[], bool], what: str, act: Callable[[], None] | None = None
    ) -> None:
        end = time.monotonic() + 10.0
        while not condition():
            if time.monotonic() > end:
                raise AssertionError(f'{what} did not come within 10 s')
            if act is not None:
                act()
            self._executor.spin_once(timeout_sec=0.02)

    def close(self) -> None:
        self._executor.shutdown()
        self.node.destroy_node()
        self.other.destroy_node()


@pytest.fixture
def graph() -> Iterator[Graph]:
    context = Context()
    rclpy.init(context=context)
    made = Graph(context)
    try:
        yield made
    finally:
        made.close()
        rclpy.shutdown(context=context)


@pytest.mark.parametrize('offered', [BEST_EFFORT, RELIABLE])
def test_g19_a_subscription_matches_whichever_publisher_comes_first(
    graph: Graph, offered: QoSProfile
) -> None:
    graph.subscribe()
    publisher = graph.other.create_publisher(JointState, 'joint_states', offered)
    graph.until(lambda: bool(graph.arrived), 'a message', lambda: publisher.publish(JointState()))


def test_g19_a_subscription_that_asked_for_more_takes_less_when_less_is_offered(
    graph: Graph,
) -> None:
    first = graph.other.create_publisher(JointState, 'joint_states', RELIABLE)
    graph.until(lambda: graph.node.count_publishers('joint_states') == 1, 'the publisher')
    graph.subscribe()
    graph.other.destroy_publisher(first)
    second = graph.other.create_publisher(JointState, 'joint_states', BEST_EFFORT)
    graph.until(lambda: bool(graph.arrived), 'a message', lambda: second.publish(JointState()))


def test_g19_a_policy_that_no_publisher_offers_is_told_with_its_topic(graph: Graph) -> None:
    graph.subscribe(inputs__state__reliability='reliable', inputs__state__durability='volatile')
    graph.other.create_publisher(JointState, 'joint_states', BEST_EFFORT)
    graph.until(lambda: 'state (QoS)' in graph.told, 'the event')
    reason, verdict = graph.told['state (QoS)']
    assert verdict is Verdict.INCOMPATIBLE
    assert 'joint_states offers another RELIABILITY' in reason


def test_a_text_that_was_said_before_is_heard_where_it_is_kept(graph: Graph) -> None:
    graph.other.create_publisher(String, 'scene', LATCHED).publish(String(data='kitchen'))
    graph.until(lambda: graph.node.count_publishers('scene') == 1, 'the publisher')
    item = settings_of(
        input_names=['state', 'scene'],
        inputs__scene__topic='scene',
        inputs__scene__type='string',
    ).inputs[1]
    take = lambda message, topic, sequence: graph.arrived.append(message.data)  # noqa: E731
    InputSubscription(graph.node, item, item.topic, take, graph.tell)
    graph.until(lambda: graph.arrived == ['kitchen'], 'the text')


def commanding(graph: Graph, policy: str) -> tuple[Commanding, list[str]]:
    settings = settings_of(on_other_publisher=policy)
    made = Commanding(graph.node, settings, 100 * MS, graph.tell, lambda: 0)
    stopped: list[str] = []
    made.watch(stopped.append)
    return made, stopped


def test_g45_another_publisher_has_a_start_refused_by_name(graph: Graph) -> None:
    graph.other.create_publisher(Float64MultiArray, 'commands', 1)
    made, _ = commanding(graph, 'refuse')
    graph.until(lambda: bool(made.ownership.refusal()), 'the other publisher')
    assert 'commands /commands, by /teleop: stop it' in made.ownership.refusal()


@pytest.mark.parametrize('unknown', ['_NODE_NAME_UNKNOWN_', '', '_CREATED_BY_BARE_DDS_APP_'])
def test_g45_a_publisher_without_a_known_node_is_called_by_what_is_known(unknown: str) -> None:
    info = TopicEndpointInfo(
        node_name=unknown, topic_type='std_msgs/msg/Float64', endpoint_gid=[1, 15] + [0] * 14
    )
    assert 'UNKNOWN' not in node_name(info)
    assert 'std_msgs/msg/Float64, id 010f00' in node_name(info)


def test_g45_another_publisher_that_comes_during_a_run_ends_it(graph: Graph) -> None:
    made, stopped = commanding(graph, 'stop')
    graph.until(lambda: graph.told.get('commands', ('x',))[0] == '', 'a first look')
    assert not stopped
    assert made.ownership.refusal() == ''
    graph.other.create_publisher(Float64MultiArray, 'commands', 1)
    graph.until(lambda: bool(stopped), 'the stop')
    assert stopped[0].startswith('other_publisher: another publisher commands /commands')


def test_g45_another_publisher_is_only_told_where_that_is_wanted(graph: Graph) -> None:
    made, stopped = commanding(graph, 'warn')
    graph.other.create_publisher(Float64MultiArray, 'commands', 1)
    graph.until(lambda: graph.told.get('commands', ('',))[0] != '', 'the warning')
    assert not stopped
    assert made.ownership.refusal() == ''


def test_a_subscription_that_asks_for_more_than_setpoints_have_is_told(graph: Graph) -> None:
    made, _ = commanding(graph, 'warn')
    graph.other.create_subscription(Float64MultiArray, 'commands', print, LATCHED)
    graph.until(lambda: 'arm (QoS)' in graph.told, 'the event')
    assert 'commands asks for another DURABILITY' in graph.told['arm (QoS)'][0]
    made.close()


@pytest.mark.parametrize('request_id', ['', 'r-1a2b3c4d'])
def test_every_chunk_is_shown_with_what_asked_for_it(graph: Graph, request_id: str) -> None:
    shown: list[Any] = []
    topic = ChunkTopic(graph.node, settings_of().channels, lambda: request_id)
    graph.other.create_subscription(JointTrajectory, 'harness/chunk', shown.append, 1)
    chunk = Chunk.at_rate([{'arm': np.array([0.1, 0.2])}, {'arm': np.array([0.3, 0.4])}], 10)
    step = Step(12, 0, {})
    graph.until(lambda: bool(shown), 'the chunk', lambda: topic.publish(step, chunk))
    message = shown[0]
    assert message.header.frame_id == ('step-12/r-1a2b3c4d' if request_id else 'step-12')
    assert Origin.read(message.header.frame_id) == Origin(12, request_id)
    assert list(message.joint_names) == ['j1', 'j2']
    assert [list(point.positions) for point in message.points] == [[0.1, 0.2], [0.3, 0.4]]
    assert message.points[1].time_from_start.nanosec == 100 * MS


def losses(**changes: Any) -> Losses:
    return Losses(settings_of(**changes).inputs[0])


def test_lost_frames_are_counted_by_their_publishers_numbers_and_told_with_a_remedy() -> None:
    counted = losses()
    said = [counted.note(2 * at, 921_600, S + at * 50 * MS) for at in range(41)]
    assert said[:40] == [None] * 40
    assert 'of 80 messages on joint_states did not arrive within 2.0 s' in str(said[40])
    assert 'shared-memory segment' in str(said[40])


def test_a_window_without_losses_is_well_again() -> None:
    counted = losses()
    assert [counted.note(at, 100, S + at * 50 * MS) for at in range(41)][40] == ''
    assert (counted.lost, counted.share) == (0, 0.0)


def test_what_each_input_lost_is_told_as_numbers_over_all_of_its_topics() -> None:
    inputs, meters = Inputs(settings_of().inputs), Meters(['state'])
    first, second = losses(), losses()
    for counted in (first, second):
        meters.follow('state', counted)
    figures = meters.figures(inputs, S)['state']
    assert (figures['lost'], figures['lost_share']) == (0, None), 'no window is over yet'
    for at in range(81):
        first.note(2 * at, 100, S + at * 50 * MS)
        second.note(at, 100, S + at * 50 * MS)
    figures = meters.figures(inputs, S)['state']
    assert figures['lost'] == first.lost
    assert 70 <= first.lost <= 80
    assert figures['lost_share'] == pytest.approx(0.5, abs=0.02)


def test_fewer_messages_than_expected_are_told_where_none_are_numbered() -> None:
    counted = losses(inputs__state__expected_hz=100.0)
    said = [counted.note(None, 100, S + at * 50 * MS) for at in range(41)][40]
    assert '160 of 200 messages on joint_states did not arrive' in str(said)
    assert 'check the network' in str(said)


def test_two_publishers_by_turns_are_no_losses() -> None:
    counted = losses()
    numbers = [900 + at // 2 if at % 2 else at // 2 for at in range(41)]
    said = [counted.note(number, 100, S + at * 50 * MS) for at, number in enumerate(numbers)]
    assert said[40] == ''

"""Live topics and a recording of them are one: what a policy sees is the same, to the bit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
import threading
from typing import Any

import numpy as np
import pytest
from seq_harness.bags.observing import observations_at
from seq_harness.bags.reading import Bag
from seq_harness.bags.records import Record
from seq_harness.client.embedded import EmbeddedPolicy
from seq_harness.inputs import Inputs, Snapshot
from seq_harness.observation import SampledObservation
from seq_harness.pipeline import Pipeline
from seq_harness.playback.uplink import PolicyScope, Queued, Step
from seq_harness.settings import parse, Settings
from support.recordings import (
    Follow,
    frame,
    joint_state,
    Message,
    MS,
    parameters,
    S,
    START_NS,
    write,
)
from support.waiting import PATIENCE_S, wait_for

rclpy = pytest.importorskip('rclpy')

SECONDS = 8.2
TICK_NS, LOGGED_NS, FIRST_STATE_NS = 10 * MS, 3 * MS, 3 * S + 8 * MS
"""
How far /clock goes at once, when messages are logged after each full 10 ms, and the first state.

That one starts the episode, and with it the grid of steps. /clock says 8 ms after each full 10 ms
too: so a step lies 5 ms from any message, and its instant is the same in the replay.
"""
PERIOD_NS = 50 * MS


def _messages() -> list[Message]:
    states = [joint_state(START_NS + FIRST_STATE_NS)]
    later = range(FIRST_STATE_NS // TICK_NS + 1, int(SECONDS * S) // TICK_NS)
    states += [joint_state(START_NS + i * TICK_NS + LOGGED_NS) for i in later]
    frames = [frame(START_NS + i * S // 25 + LOGGED_NS, i % 256) for i in range(int(SECONDS * 25))]
    return sorted(states + frames, key=lambda message: message[2])


@dataclass(frozen=True)
class Arrived:
    """One message as a subscription gave it to the inputs."""

    name: str
    message: Any
    now_ns: int
    ros_now_ns: int
    topic: str


class Seen:
    """What a node took and what its policy's episode was handed, in order."""

    def __init__(self) -> None:
        self.arrivals: list[Arrived] = []
        self.steps: list[Step] = []
        self._more = threading.Condition()

    def arrived(self, arrival: Arrived) -> None:
        with self._more:
            self.arrivals.append(arrival)
            self._more.notify_all()

    def stepped(self, step: Step) -> None:
        with self._more:
            self.steps.append(step)
            self._more.notify_all()

    def wait(self, until: Callable[[], bool], within_s: float) -> bool:
        with self._more:
            return self._more.wait_for(until, within_s)

    @property
    def next_step_ns(self) -> int:
        """When the next step is due at the latest; 0 before the first."""
        return max((step.t_ns for step in self.steps), default=-PERIOD_NS) + PERIOD_NS


class Watched:
    """A policy's client that keeps every step of its episodes."""

    def __init__(self, policy: EmbeddedPolicy, seen: Seen) -> None:
        self._policy = policy
        self._seen = seen
        self.connect = policy.connect
        self.warm_up = policy.warm_up
        self.figures = policy.figures
        self.close = policy.close

    @property
    def connected(self) -> bool:
        return self._policy.connected

    def open_episode(self, clock_ns: Callable[[], int]) -> PolicyScope:
        return WatchedScope(self._policy.open_episode(clock_ns), self._seen)


class WatchedScope:
    """Keeps the steps that it hands on."""

    def __init__(self, scope: PolicyScope, seen: Seen) -> None:
        self._scope = scope
        self._seen = seen
        self.skip = scope.skip
        self.expect = scope.expect
        self.retire = scope.retire
        self.close = scope.close

    def infer(self, step: Step, plan: Any = None) -> Any:
        self._seen.stepped(step)
        return self._scope.infer(step, plan)

    def observe(self, step: Step) -> Queued:
        self._seen.stepped(step)
        return self._scope.observe(step)


class Player:
    """
    Plays a recording on real topics and /clock, which waits for whoever listens.

    A message goes out once the step before it is seen, and /clock goes on once the message has
    come: so what a step sees does not depend on how fast this machine is just now.
    """

    def __init__(self, seen: Seen) -> None:
        from rclpy.context import Context
        from rclpy.node import Node
        from rosgraph_msgs.msg import Clock
        from sensor_msgs.msg import CompressedImage, JointState

        self._seen = seen
        self._context = Context()
        rclpy.init(context=self._context)
        self.node = Node('player', context=self._context)
        self._clock = self.node.create_publisher(Clock, '/clock', 10)
        self._publishers = {
            topic: self.node.create_publisher(kind, topic, 10)
            for topic, kind in (
                ('/joint_states', JointState),
                ('/front/compressed', CompressedImage),
            )
        }

    def close(self) -> None:
        self.node.destroy_node()  # type: ignore[no-untyped-call]
        rclpy.shutdown(context=self._context)

    @property
    def heard(self) -> bool:
        return all(each.get_subscription_count() for each in self._publishers.values())

    def tick(self, at_ns: int) -> None:
        from rosgraph_msgs.msg import Clock

        clock = Clock()
        clock.clock.sec, clock.clock.nanosec = divmod(at_ns, S)
        self._clock.publish(clock)

    def play(self, bag: Bag) -> None:
        now_ns = bag.start_ns - LOGGED_NS - 2 * MS
        for number, record in enumerate(bag.records(), 1):
            while now_ns + TICK_NS <= record.log_ns:
                now_ns += TICK_NS
                self._tick_and_wait(now_ns)
            self._publishers[record.topic].publish(record.data)
            self._wait_for_message(number)
            if record.log_ns == now_ns:
                self._wait(lambda: bool(self._seen.steps), 'the first step')

    def _tick_and_wait(self, now_ns: int) -> None:
        step_due = bool(self._seen.steps) and now_ns >= self._seen.next_step_ns
        self.tick(now_ns)
        if step_due:
            self._wait(lambda: self._seen.next_step_ns > now_ns, f'the step of {now_ns}')

    def _wait_for_message(self, number: int) -> None:
        self._wait(lambda: len(self._seen.arrivals) >= number, f'message {number}')

    def _wait(self, until: Callable[[], bool], what: str) -> None:
        assert self._seen.wait(until, PATIENCE_S), f'{what} did not come'


@contextmanager
def _playing(seen: Seen) -> Iterator[Player]:
    player = Player(seen)
    try:
        yield player
    finally:
        player.close()


@contextmanager
def _node(seen: Seen, player: Player, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Run a harness node on /clock, on a thread, and keep what it takes."""
    from rclpy.context import Context
    from rclpy.executors import SingleThreadedExecutor
    from rclpy.parameter import Parameter
    from seq_harness.ros.node import HarnessNode

    put = Inputs.put

    def noted(self: Inputs, name: str, message: Any, **at: Any) -> Any:
        arrival = put(self, name, message, **at)
        topic = at.get('topic', '')
        seen.arrived(Arrived(name, message, at['now_ns'], at['ros_now_ns'], topic))
        return arrival

    monkeypatch.setattr(Inputs, 'put', noted)
    client = Watched(EmbeddedPolicy(Follow()), seen)
    monkeypatch.setattr('seq_harness.ros.connecting.open_policy', lambda *_: client)
    # A measured lead may ask between two steps of the grid, as one message comes or the next.
    values = parameters(camera=True, preview=True, lead_s=0.2, rt_priority=0)
    values |= {f'inputs.{name}.reliability': 'reliable' for name in ('state', 'front')}
    values['use_sim_time'] = True
    overrides = [
        Parameter(name, value=value)  # type: ignore[no-untyped-call]
        for name, value in values.items()
    ]
    context = Context()
    rclpy.init(context=context)
    node = HarnessNode(context=context, parameter_overrides=overrides)
    executor = SingleThreadedExecutor(context=context)
    executor.add_node(node)
    wait_for(lambda: _begun(node, executor, player), PATIENCE_S, 'the time')
    node.configure_soon(lambda: None)
    spinning = threading.Thread(target=executor.spin, daemon=True)
    spinning.start()
    try:
        yield
    finally:
        executor.shutdown()
        spinning.join(PATIENCE_S)
        node.close()
        node.destroy_node()
        rclpy.shutdown(context=context)


def _begun(node: Any, executor: Any, player: Player) -> bool:
    player.tick(START_NS)
    executor.spin_once(timeout_sec=0.01)
    return bool(node.get_clock().now().nanoseconds)


@pytest.fixture(scope='module')
def bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp('bag') / 'motion', _messages())


@pytest.fixture(scope='module')
def settings() -> Settings:
    return parse(parameters(camera=True))


@pytest.fixture(scope='module')
def seen(bag: Path, ros_domain_id: int) -> Seen:
    """Play the recording on real topics to a real node."""
    from seq_harness.ros.watcher import Watcher

    seen = Seen()
    with (
        Bag(bag) as opened,
        pytest.MonkeyPatch.context() as monkeypatch,
        _playing(seen) as player,
        _node(seen, player, monkeypatch),
        Watcher() as watcher,
    ):
        watcher.wait(
            lambda: watcher.ready and player.heard, PATIENCE_S, 'a ready harness', lambda: None
        )
        assert watcher.call('start') == ''
        player.play(opened)
    return seen


def _stamps(snapshot: Snapshot) -> dict[str, int]:
    return {name: sample.stamp_ns for name, sample in snapshot.items()}


def _same(one: Any, other: Any) -> bool:
    return all(np.array_equal(one[key], other[key]) for key in ('state', 'front'))


def _spec(settings: Settings) -> Any:
    policy = EmbeddedPolicy(Follow())
    try:
        return Pipeline(settings, policy.connect()).spec
    finally:
        policy.close()


def _sampled(step: Step) -> SampledObservation:
    assert isinstance(step.observation, SampledObservation)
    return step.observation


def test_every_message_and_every_step_came_over_real_topics(seen: Seen) -> None:
    assert len(seen.arrivals) == len(_messages())
    assert [step.number for step in seen.steps] == list(range(len(seen.steps)))
    played_ns = int(SECONDS * S) - FIRST_STATE_NS
    assert len(seen.steps) >= played_ns // PERIOD_NS


def test_a_replay_sees_what_the_topics_gave(seen: Seen, bag: Path, settings: Settings) -> None:
    """Stamps are equal on at least 99 % of the steps; wherever they are, all is, to the bit."""
    live = [_sampled(step) for step in seen.steps]
    with Bag(bag) as opened:
        spec = _spec(settings)
        pairs = list(
            zip(live, observations_at(opened, settings, spec, [x.t_ns for x in live]), strict=True)
        )
        equal = [pair for pair in pairs if _stamps(pair[0].snapshot) == _stamps(pair[1].snapshot)]
        assert all(_same(*pair) for pair in equal)
    assert len(equal) >= 0.99 * len(pairs)


def test_what_arrived_replayed_in_its_own_order_gives_the_same_observations(
    seen: Seen, bag: Path, settings: Settings
) -> None:
    """Each step's observation is that of one point in the order of arrivals, bit for bit."""
    from rclpy.serialization import serialize_message

    spec, inputs = _spec(settings), Inputs(settings.inputs)
    arrivals = iter(seen.arrivals)
    with Bag(bag) as opened:
        for step in seen.steps:
            live = _sampled(step)
            while _born(inputs.snapshot()) != _born(live.snapshot):
                each = next(arrivals)
                kind = 'CompressedImage' if each.name == 'front' else 'JointState'
                data = bytes(serialize_message(each.message))
                record = Record(each.topic, f'sensor_msgs/msg/{kind}', each.now_ns, data)
                inputs.put(
                    each.name,
                    opened.decode(record),
                    now_ns=each.now_ns,
                    ros_now_ns=each.ros_now_ns,
                )
            assert _same(live, spec.observe(inputs.snapshot(), live.t_ns, ''))


def _born(snapshot: Snapshot) -> dict[str, tuple[int, int]]:
    return {name: (sample.stamp_ns, sample.born_ns) for name, sample in snapshot.items()}

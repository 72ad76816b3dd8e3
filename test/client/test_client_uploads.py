"""Observations on their way: beside the acts, in batches, and never in the robot's way."""

from __future__ import annotations

from collections.abc import Callable
import threading
import time
from typing import Any

from client.robot import Robot, Waited
from client.scripted_worker import Drop, error, Held, ScriptedWorker
from seq_harness.client.posts import StreamLimits, WhenBehind
from seq_harness.client.registry import Policy
from seq_harness.client.runtime import Runtime
from seq_harness.contract import wire
from seq_harness.contract.errors import ErrorCode
from seq_harness.playback.uplink import PolicyScope, Queued, Step
from support.waiting import AT_ONCE_S, PATIENCE_S, wait_for

EVERY = {'observations': {'every': 1}}
WINDOW = {'observations': {'streams': {'cam': {'at': [-2, 0]}, 'state': {}}}}

Workers = Callable[..., ScriptedWorker]
Robots = Callable[..., Robot]


def seqs(body: dict[str, Any]) -> list[int]:
    return [frame['seq'] for frame in body['frames']]


def test_observations_travel_on_a_connection_of_their_own_while_an_act_runs(
    workers: Workers, robots: Robots, runtime: Runtime
) -> None:
    worker = workers(EVERY)
    robot = robots(worker)
    robot.act()
    go = threading.Event()
    worker.script(wire.ACT, Held(go))
    acting = Waited(runtime, robot.act)
    act = worker.next(wire.ACT)
    act = worker.next(wire.ACT)
    robot.observe()
    post = worker.next(wire.OBSERVE)
    assert seqs(post.body) == [2]
    assert post.connection != act.connection
    go.set()
    assert acting.result() == {'seq': 1}


def test_what_accumulates_while_a_post_is_under_way_goes_in_the_next(
    workers: Workers, robots: Robots
) -> None:
    worker = workers(EVERY)
    robot = robots(worker)
    robot.act()
    go = threading.Event()
    worker.script(wire.OBSERVE, Held(go))
    robot.observe()
    assert seqs(worker.next(wire.OBSERVE).body) == [1]
    for _ in range(3):
        robot.observe()
    packed = threading.Event()
    robot.observe({'cam': _Telling(packed)})
    assert packed.wait(PATIENCE_S)
    go.set()
    later: list[int] = []
    while len(later) < 4:
        later += seqs(worker.next(wire.OBSERVE).body)
    assert later[:3] == [2, 3, 4]


class _Telling(dict[str, int]):
    """A value that tells when it is packed."""

    def __init__(self, packed: threading.Event) -> None:
        super().__init__(x=1)
        self._packed = packed

    def items(self) -> Any:
        self._packed.set()
        return super().items()


def test_handing_over_never_waits_for_a_worker_that_does_not_answer(
    workers: Workers, robots: Robots
) -> None:
    worker = workers(EVERY)
    robot = robots(worker)
    robot.act()
    go = threading.Event()
    worker.script(wire.OBSERVE, Held(go))
    big = bytes(300_000)
    began = time.monotonic()
    for _ in range(100):
        assert robot.observe({'cam': big}) is Queued.ACCEPTED
        robot.scope.expect(robot.number + 1)
    assert time.monotonic() - began < AT_ONCE_S
    go.set()


def test_a_post_that_fails_is_made_again_and_said_once(workers: Workers, robots: Robots) -> None:
    worker = workers(EVERY)
    said: list[str] = []
    robot = robots(worker, on_state=said.append)
    robot.act()
    worker.script(wire.OBSERVE, Drop(), error(ErrorCode.UNAVAILABLE), Drop())
    robot.observe({'cam': 'kept'})
    frames = [worker.next(wire.OBSERVE).body['frames'] for _ in range(4)]
    assert frames == [[{'seq': 1, 'inputs': {'cam': 'kept'}}]] * 4
    assert robot.scope.figures().stream.failures == 3
    assert sum('do not get through' in text for text in said) <= 3


def test_refused_observations_are_said_once_and_declared_skipped(
    workers: Workers, robots: Robots
) -> None:
    worker = workers(EVERY)
    said: list[str] = []
    robot = robots(worker, on_state=said.append)
    robot.act()
    over = error(ErrorCode.PAYLOAD_TOO_LARGE, 'full', details={'reason': wire.FRAMES_OVER_LIMIT})
    worker.script(wire.OBSERVE, over)
    robot.observe()
    assert seqs(worker.next(wire.OBSERVE).body) == [1]
    told = worker.next(wire.OBSERVE).body
    assert (seqs(told), told['skipped']) == ([], [1])
    assert [text for text in said if 'refused' in text] == [
        'the worker refused observations: payload_too_large: full'
    ]


def test_an_observation_that_cannot_be_sent_is_said_and_skipped(
    workers: Workers, robots: Robots
) -> None:
    worker = workers(EVERY)
    said: list[str] = []
    robot = robots(worker, on_state=said.append)
    robot.act()
    robot.observe({'cam': object()})
    wait_for(lambda: any('cannot be sent' in text for text in said), PATIENCE_S, 'a word of it')
    robot.act()
    assert worker.next(wire.OBSERVE).body['skipped'] == [1]
    assert sum('cannot be sent' in text for text in said) == 1


def test_only_what_the_next_ask_reads_is_sent_and_the_rest_is_declared(
    workers: Workers, robots: Robots
) -> None:
    worker = workers(WINDOW)
    robot = robots(worker)
    robot.act({'cam': 0, 'state': 0})
    robot.scope.expect(6)
    for number in range(1, 6):
        robot.observe({'cam': number, 'state': number})
    sent: list[Any] = []
    while len(sent) < 2:
        sent += worker.next(wire.OBSERVE).body['frames']
    assert sent == [{'seq': n, 'inputs': {'cam': n}} for n in (4, 5)]
    robot.act({'cam': 6, 'state': 6})
    assert worker.next(wire.OBSERVE).body['skipped'] == [1, 2, 3]


def test_a_policy_that_reads_no_other_observation_is_sent_none(
    workers: Workers, robots: Robots
) -> None:
    worker = workers()
    robot = robots(worker)
    robot.act()
    for _ in range(3):
        robot.observe()
    robot.act()
    told = worker.next(wire.OBSERVE).body
    assert (told['frames'], told['skipped']) == ([], [1, 2, 3])


def test_a_full_stream_takes_nothing_until_there_is_room(workers: Workers, robots: Robots) -> None:
    worker = workers(EVERY)
    robot = robots(worker, limits=StreamLimits(unsent_frames=2))
    robot.act()
    go = threading.Event()
    worker.script(wire.OBSERVE, Held(go))
    outcomes = [robot.observe() for _ in range(3)]
    assert outcomes == [Queued.ACCEPTED, Queued.ACCEPTED, Queued.FULL]
    go.set()
    sent: list[int] = []
    while len(sent) < 2:
        sent += seqs(worker.next(wire.OBSERVE).body)
    robot.act()
    assert sent == [1, 2]
    assert robot.scope.figures().stream.full == 1


def test_the_robot_may_drop_where_the_policy_would_wait(workers: Workers, robots: Robots) -> None:
    worker = workers(EVERY)
    robot = robots(
        worker, limits=StreamLimits(unsent_frames=2), when_behind=WhenBehind.DROP_OLDEST
    )
    robot.act()
    go = threading.Event()
    worker.script(wire.OBSERVE, Held(go))
    assert [robot.observe() for _ in range(6)] == [Queued.ACCEPTED] * 6
    go.set()
    sent: list[int] = []
    skipped: list[int] = []
    while 6 not in sent:
        body = worker.next(wire.OBSERVE).body
        sent += seqs(body)
        skipped += body['skipped']
    assert sorted(sent + skipped) == [1, 2, 3, 4, 5, 6]
    assert skipped


def test_a_stream_that_waits_lets_the_robot_ask_once_the_worker_is_lost(
    workers: Workers, robots: Robots
) -> None:
    worker = workers(EVERY)
    robot = robots(worker, limits=StreamLimits(unsent_frames=1), reconnect_s=0.2)
    robot.act()
    worker.stop()
    assert robot.observe() is Queued.ACCEPTED
    assert robot.observe() is Queued.FULL
    deadline = time.monotonic() + PATIENCE_S
    pause = threading.Event()
    while robot.observe() is Queued.FULL:
        assert time.monotonic() < deadline
        pause.wait(0.01)


def test_an_episode_that_the_worker_never_heard_of_is_not_ended_there(
    workers: Workers, robots: Robots
) -> None:
    worker = workers()
    robot = robots(worker)
    robot.scope.close()
    robot.scope.join(time.monotonic() + PATIENCE_S)
    assert worker.pending(wire.EPISODE_END) == []


def test_every_episode_has_an_id_of_its_own_and_counts_from_0(
    workers: Workers, robots: Robots
) -> None:
    worker = workers(EVERY)
    robot = robots(worker)
    robot.act()
    first = worker.next(wire.ACT).body['episode_id']
    robot.scope.close()
    again = robot.policy.open_episode(lambda: 0)
    assert again.infer(Step(0, 0, {'cam': 0})) == {'seq': 0}
    assert worker.next(wire.ACT).body['episode_id'] != first


def test_posts_wait_for_the_act_that_opens_the_episode(
    workers: Workers, robots: Robots, runtime: Runtime
) -> None:
    worker = workers(EVERY)
    robot = robots(worker)
    go = threading.Event()
    worker.script(wire.ACT, Held(go))
    acting = Waited(runtime, robot.act)
    worker.next(wire.ACT)
    packed = threading.Event()
    robot.scope.observe(Step(1, 0, {'cam': _Telling(packed)}))
    assert packed.wait(PATIENCE_S)
    assert worker.pending(wire.OBSERVE) == []
    go.set()
    acting.result()
    assert seqs(worker.next(wire.OBSERVE).body) == [1]


def test_closing_does_not_wait_for_a_post_that_is_not_answered(
    workers: Workers, robots: Robots
) -> None:
    worker = workers(EVERY)
    robot = robots(worker)
    robot.act()
    go = threading.Event()
    worker.script(wire.OBSERVE, Held(go))
    robot.observe()
    worker.next(wire.OBSERVE)
    robot.scope.close()
    began = time.monotonic()
    worker.next(wire.EPISODE_END)
    assert time.monotonic() - began < AT_ONCE_S
    go.set()


def test_a_policy_and_its_episode_are_what_the_harness_asks_for(
    workers: Workers, robots: Robots
) -> None:
    robot = robots(workers())
    policy: Policy = robot.policy
    scope: PolicyScope = policy.open_episode(lambda: 0)
    assert scope.infer(Step(0, 0, {})) == {'seq': 0}
    scope.close()

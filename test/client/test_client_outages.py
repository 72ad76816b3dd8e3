"""Workers that go away, come back or are left: what becomes of the acts meanwhile."""

from __future__ import annotations

from collections.abc import Callable
import socket
import threading
import time
from typing import Any

from client.robot import Robot, Waited
from client.scripted_worker import error, Held, ScriptedWorker
import pytest
from seq_harness.client.runtime import Runtime
from seq_harness.contract import wire
from seq_harness.contract.errors import ErrorCode
from seq_harness.playback.uplink import (
    ActAbandoned,
    Retired,
    StateLost,
    Step,
    WorkerLost,
)
from support.waiting import AT_ONCE_S, PATIENCE_S

EVERY = {'observations': {'every': 1}}
WINDOW = {'observations': {'streams': {'cam': {'at': [-3, 0]}}}}
Workers = Callable[..., ScriptedWorker]
Robots = Callable[..., Robot]


def test_a_worker_that_stays_away_is_lost_after_the_time_to_reconnect(
    workers: Workers, robots: Robots
) -> None:
    worker = workers()
    robot = robots(worker, reconnect_s=0.4)
    robot.act()
    worker.stop()
    began = time.monotonic()
    with pytest.raises(WorkerLost, match=r'could not be reached for 0\.4 s'):
        robot.act()
    assert 0.4 <= time.monotonic() - began < AT_ONCE_S


def test_g33_a_worker_that_is_frozen_is_lost_in_time(workers: Workers, robots: Robots) -> None:
    worker = workers()
    robot = robots(worker, reconnect_s=0.4)
    robot.act()
    worker.stop()
    with socket.create_server(('127.0.0.1', worker.port)):  # the system takes connections for it
        began = time.monotonic()
        with pytest.raises(WorkerLost, match='did not answer'):
            robot.act()
    assert time.monotonic() - began < AT_ONCE_S


def test_an_outage_counts_over_the_acts_that_are_given_up_in_it(
    workers: Workers, robots: Robots
) -> None:
    worker = workers()
    robot = robots(worker, reconnect_s=2.0, max_request_age_s=0.1)
    scope = robot.policy.open_episode(time.monotonic_ns)
    worker.stop()
    began_ns = time.monotonic_ns()
    outcomes: list[type[Exception]] = []
    while WorkerLost not in outcomes:
        step = Step(len(outcomes), time.monotonic_ns(), {})
        with pytest.raises((ActAbandoned, WorkerLost)) as ended:
            scope.infer(step)
        outcomes.append(ended.type)
    assert outcomes.count(ActAbandoned) >= 2
    assert (time.monotonic_ns() - began_ns) / 1e9 < AT_ONCE_S


def test_g35_a_lost_worker_that_comes_back_goes_on_and_both_are_said_once(
    workers: Workers, robots: Robots, runtime: Runtime
) -> None:
    worker = workers()
    said: list[str] = []
    away = threading.Event()

    def listen(text: str) -> None:
        said.append(text)
        if 'away' in text:
            away.set()

    robot = robots(worker, on_state=listen)
    robot.act()
    worker.stop()
    acting = Waited(runtime, robot.act)
    assert away.wait(PATIENCE_S)
    worker.start()
    assert acting.result() == {'seq': 1}
    assert sum('the worker is back after' in text for text in said) == 1
    assert len(said) <= 4


def test_a_worker_that_warms_again_is_waited_for_within_the_time_to_reconnect(
    workers: Workers, robots: Robots
) -> None:
    worker = workers()
    robot = robots(worker, reconnect_s=1.0)
    warming = error(ErrorCode.WARMING, 'loading', retry_after_s=0.01)
    worker.script(wire.ACT, warming, warming)
    assert robot.act() == {'seq': 0}
    worker.script(wire.ACT, *[warming] * 1000)
    with pytest.raises(WorkerLost, match='warming: loading'):
        robot.act()


def test_a_draining_worker_is_left_and_connected_to_again(
    workers: Workers, robots: Robots
) -> None:
    worker = workers()
    robot = robots(worker)
    worker.script(wire.ACT, error(ErrorCode.UNAVAILABLE, details={'reason': wire.DRAINING}))
    assert robot.act() == {'seq': 0}
    assert len({one.connection for one in worker.pending(wire.ACT)}) == 2


def test_retiring_ends_the_act_at_once_and_the_next_one_works(
    workers: Workers, robots: Robots, runtime: Runtime
) -> None:
    worker = workers()
    robot = robots(worker)
    go = threading.Event()
    worker.script(wire.ACT, Held(go))
    hung = Waited(runtime, robot.act)
    worker.next(wire.ACT)
    robot.scope.retire()
    with pytest.raises(Retired):
        hung.result()
    assert robot.act() == {'seq': 1}
    go.set()


@pytest.mark.parametrize('waits', [False, True], ids=['at once', 'once it is made again'])
def test_an_act_that_was_given_up_tells_nothing_of_the_worker(
    waits: bool, workers: Workers, robots: Robots, runtime: Runtime
) -> None:
    worker = workers()
    said: list[str] = []
    robot = robots(worker, on_state=said.append)
    worker.next(wire.CONNECT)
    go = threading.Event()
    worker.script(wire.ACT, Held(go))
    hung = Waited(runtime, robot.act)
    worker.next(wire.ACT)
    robot.scope.close()
    assert robot.policy.connected
    with pytest.raises(Retired):
        hung.result()
    go.set()
    assert robot.policy.connected
    if waits:
        worker.next(wire.CONNECT)
    assert 'seq' in robot.policy.open_episode(lambda: 0).infer(Step(0, 0, {}))
    assert robot.policy.connected
    assert [text for text in said if 'back' in text or 'away' in text] == []


def test_a_worker_that_goes_after_an_act_was_given_up_is_lost(
    workers: Workers, robots: Robots, runtime: Runtime
) -> None:
    worker = workers()
    away, back = threading.Event(), threading.Event()

    def heard(text: str) -> None:
        for word, event in (('away', away), ('back', back)):
            if word in text:
                event.set()

    robot = robots(worker, on_state=heard)
    go = threading.Event()
    worker.script(wire.ACT, Held(go))
    hung = Waited(runtime, robot.act)
    worker.next(wire.ACT)
    robot.scope.close()
    with pytest.raises(Retired):
        hung.result()
    go.set()
    worker.stop()
    assert away.wait(PATIENCE_S)
    assert not robot.policy.connected
    worker.start()
    assert back.wait(PATIENCE_S)
    assert robot.policy.connected


def test_retiring_ends_a_wait_for_a_worker_that_is_away(
    workers: Workers, robots: Robots, runtime: Runtime
) -> None:
    worker = workers()
    away = threading.Event()
    robot = robots(
        worker,
        reconnect_s=PATIENCE_S,
        on_state=lambda text: away.set() if 'away' in text else None,
    )
    worker.stop()
    waiting = Waited(runtime, robot.act)
    assert away.wait(PATIENCE_S)
    robot.scope.retire()
    with pytest.raises(Retired):
        waiting.result()


def test_closing_an_episode_ends_its_act_and_tells_the_worker(
    workers: Workers, robots: Robots, runtime: Runtime
) -> None:
    worker = workers()
    robot = robots(worker)
    go = threading.Event()
    robot.act()
    episode = worker.next(wire.ACT).body['episode_id']
    worker.script(wire.ACT, Held(go))
    hung = Waited(runtime, robot.act)
    worker.next(wire.ACT)
    began = time.monotonic()
    robot.scope.close()
    assert time.monotonic() - began < AT_ONCE_S
    with pytest.raises(Retired):
        hung.result()
    assert worker.next(wire.EPISODE_END).body == {'episode_id': episode}
    with pytest.raises(Retired):
        robot.act()
    go.set()


def test_retiring_nothing_is_harmless(workers: Workers, robots: Robots) -> None:
    robot = robots(workers())
    robot.scope.retire()
    assert robot.act() == {'seq': 0}


def restarted(worker: ScriptedWorker, instance: str) -> None:
    """Kill a worker and start another process in its place."""
    worker.stop()
    worker.pending(wire.ACT)  # nobody looks at what the one before was asked
    worker.instance = instance
    worker.start()


def test_a_restarted_worker_is_refilled_and_counts_from_0(
    workers: Workers, robots: Robots
) -> None:
    worker = workers(WINDOW)
    robot = robots(worker)
    robot.act()
    first = worker.next(wire.ACT).body
    for _ in range(5):
        robot.observe()
    robot.act()
    robot.observe()
    restarted(worker, 'worker-b')
    assert robot.act() == {'seq': 4}  # step 8, counted from step 4
    refill: dict[int, Any] = {}
    while True:
        asked = worker.asked.get(timeout=PATIENCE_S)
        if asked.method == wire.OBSERVE:
            assert asked.body['episode_id'] != first['episode_id']
            refill |= {f['seq']: f['inputs']['cam'] for f in asked.body['frames']}
        if asked.method == wire.ACT:
            break
    assert refill[0] == 4
    assert robot.scope.figures().stream.restarts == 1


def test_a_restart_loses_the_state_of_a_policy_that_keeps_it_once(
    workers: Workers, robots: Robots
) -> None:
    worker = workers({'keeps_state': True})
    robot = robots(worker)
    robot.act()
    restarted(worker, 'worker-b')
    with pytest.raises(StateLost, match='what it remembered is lost'):
        robot.act()
    assert 'seq' in robot.act()


def test_no_state_is_lost_that_was_never_there(workers: Workers, robots: Robots) -> None:
    worker = workers({'keeps_state': True})
    robot = robots(worker)
    restarted(worker, 'worker-b')
    assert robot.act() == {'seq': 0}


def test_a_worker_that_forgot_the_episode_begins_it_anew(workers: Workers, robots: Robots) -> None:
    worker = workers(EVERY)
    robot = robots(worker)
    robot.act()
    worker.script(wire.ACT, error(ErrorCode.CONFLICT, details={'reason': wire.EPISODE_LOST}))
    assert robot.act() == {'seq': 0}
    ids = {one.body['episode_id'] for one in worker.pending(wire.ACT)}
    assert len(ids) == 2


def test_a_worker_that_comes_back_with_another_policy_is_lost(
    workers: Workers, robots: Robots
) -> None:
    worker = workers()
    robot = robots(worker)
    robot.act()
    worker.declaration = {**worker.declaration, 'columns': ['another']}
    restarted(worker, 'worker-b')
    with pytest.raises(WorkerLost, match='another policy'):
        robot.act()

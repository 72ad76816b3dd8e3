"""A worker that answers nothing for a while, as one that compiles or computes, and goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
import signal

from client.robot import Robot, Waited
from client.worker_process import observation, WorkerProcess
import pytest
from seq_harness.client.runtime import Runtime
from seq_harness.client.sequence import SequencePolicy
from seq_harness.playback.uplink import Standing, StateLost
from support.waiting import PATIENCE_S, wait_for

BLOCKED_S = 2.0


@pytest.fixture
def process() -> Iterator[WorkerProcess]:
    made = WorkerProcess('Every')
    yield made
    made.send(signal.SIGCONT)
    made.kill()


def test_g33_an_act_survives_a_worker_that_answers_nothing_meanwhile(
    process: WorkerProcess, policies: Callable[..., SequencePolicy], runtime: Runtime
) -> None:
    robot = Robot(policies(process.url, act_timeout_s=PATIENCE_S))
    process.send(signal.SIGSTOP)
    first = Waited(runtime, lambda: robot.act(observation(0)))
    with pytest.raises(AssertionError):
        first.result(BLOCKED_S)
    process.send(signal.SIGCONT)
    assert first.result()['numbers'] == [0]
    assert robot.act(observation(1))['numbers'] == [1]
    assert robot.policy.connected


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ping soon, and wait no longer for a pong than for a process that is scheduled."""
    for module in ('plain_websocket', 'http'):
        monkeypatch.setattr(f'seq_harness.client.{module}.PING_S', 0.05)
    for module in ('pulse', 'http'):
        monkeypatch.setattr(f'seq_harness.client.{module}.PONG_S', 1.0)


def over(url: str, scheme: str) -> str:
    """Return the address of a worker's other binding."""
    return url if scheme == 'ws' else url.replace('ws://', 'http://').removesuffix('/v1/ws')


@pytest.mark.usefixtures('quick')
@pytest.mark.parametrize('scheme', ['ws', 'http'])
def test_a_frozen_worker_answers_no_ping_and_is_told_from_one_that_goes_on(
    scheme: str,
    process: WorkerProcess,
    policies: Callable[..., SequencePolicy],
    runtime: Runtime,
) -> None:
    robot = Robot(policies(over(process.url, scheme), act_timeout_s=PATIENCE_S))
    assert robot.scope.standing() is Standing.THERE
    process.send(signal.SIGSTOP)
    first = Waited(runtime, lambda: robot.act(observation(0)))
    wait_for(lambda: robot.scope.standing() is Standing.SILENT, PATIENCE_S, 'the silence')
    process.send(signal.SIGCONT)
    assert first.result(PATIENCE_S)['numbers'] == [0]
    assert robot.scope.standing() is Standing.THERE


@pytest.mark.usefixtures('quick')
@pytest.mark.parametrize('scheme', ['ws', 'http'])
def test_a_worker_that_infers_answers_its_pings(
    scheme: str, policies: Callable[..., SequencePolicy], runtime: Runtime
) -> None:
    process = WorkerProcess('Slow')
    try:
        robot = Robot(policies(over(process.url, scheme), act_timeout_s=PATIENCE_S))
        seen: list[Standing] = []
        answer = runtime.start(lambda: robot.act(observation(0)))

        def answered() -> bool:
            seen.append(robot.scope.standing())
            return answer.done()

        wait_for(answered, PATIENCE_S, 'the answer')
        assert set(seen) == {Standing.THERE}
    finally:
        process.kill()


def test_a_worker_that_is_gone_is_away_while_it_is_looked_for(
    process: WorkerProcess, policies: Callable[..., SequencePolicy], runtime: Runtime
) -> None:
    robot = Robot(policies(process.url, reconnect_s=PATIENCE_S))
    assert robot.act(observation(0))['numbers'] == [0]
    process.kill()
    answer = Waited(runtime, lambda: robot.act(observation(1)))
    wait_for(lambda: robot.scope.standing() is Standing.AWAY, PATIENCE_S, 'the outage')
    process.start()
    with pytest.raises(StateLost):
        answer.result(PATIENCE_S)


def test_the_first_answer_of_another_process_is_known_until_a_warm_up(
    policies: Callable[..., SequencePolicy],
) -> None:
    process = WorkerProcess('Window')
    try:
        policy = policies(process.url, reconnect_s=PATIENCE_S)
        policy.connect()
        policy.warm_up(observation(0))
        robot = Robot(policy)
        robot.act(observation(0))
        assert not robot.scope.answered_anew
        first = policy.process
        process.kill()
        process.start()
        robot.act(observation(1))
        assert robot.scope.answered_anew
        assert policy.process != first
        robot.act(observation(2))
        assert not robot.scope.answered_anew
        robot.scope.close()
        policy.warm_up(observation(0))
        again = Robot(policy)
        again.act(observation(0))
        assert not again.scope.answered_anew
    finally:
        process.kill()

"""A worker that answers nothing for a while, as one that compiles or computes, and goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
import signal

from client.robot import Robot, Waited
from client.worker_process import observation, WorkerProcess
import pytest
from seq_harness.client.runtime import Runtime
from seq_harness.client.sequence import SequencePolicy
from support.waiting import PATIENCE_S

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

"""What becomes of an episode when the connection to openpi's own server is lost."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
import os
import signal
import time

import pytest
from seq_harness.client import keeper
from seq_harness.playback.uplink import ActAbandoned, StateLost, WorkerLost
from servers.openpi_robot import count, FORGETFUL, read, Robot, robot_at, SCRIPT, step
from support.ports import free_port
from support.servers import needs_servers, OURS, served, ServerProcess
from support.waiting import AT_ONCE_S, PATIENCE_S, wait_for

pytestmark = needs_servers

Start = Callable[..., tuple[ServerProcess, Robot]]


@pytest.fixture
def start(stack: ExitStack) -> Start:
    """Start a server and make a robot for it; both end with the test."""
    return partial(robot_at, stack)


def test_openpi_answer_that_comes_too_late_is_never_taken_for_the_next(start: Start) -> None:
    _, robot = start('--slow-at', '1', '--slow-s', '5', act_timeout_s=2.0, server=FORGETFUL)
    robot.policy.connect()
    scope = robot.scope()
    assert count(scope.infer(step())) == 0
    with pytest.raises(ActAbandoned, match='no answer came within'):
        scope.infer(step(1))
    answers = []

    def answered() -> bool:
        try:
            answers.append(count(scope.infer(step(2))))
        except ActAbandoned:
            return False
        return True

    wait_for(answered, PATIENCE_S, 'an answer')
    assert answers[0] >= 2, 'inference 1 is that of the step that was given up'


def test_openpi_policy_that_remembers_nothing_is_asked_over_another_connection(
    stack: ExitStack,
) -> None:
    port = free_port()
    robot = Robot(port, server=FORGETFUL)
    stack.callback(robot.policy.close)
    with served(SCRIPT, '--die-at', '1', port=port, variables=OURS):
        robot.policy.connect()
        scope = robot.scope()
        assert count(scope.infer(step())) == 0
        with pytest.raises(ActAbandoned, match='connection was lost'):
            scope.infer(step(1))
    with served(SCRIPT, port=port, variables=OURS):
        assert count(scope.infer(step(2))) == 0
    assert robot.heard('is back')


def test_openpi_connection_that_is_lost_after_an_answer_takes_the_episode_along(
    stack: ExitStack,
) -> None:
    port = free_port()
    robot = Robot(port)
    stack.callback(robot.policy.close)
    with served(SCRIPT, port=port, variables=OURS) as (server, _):
        assert robot.policy.connect().keeps_state
        before = robot.scope()
        server.kill()
    with served(SCRIPT, port=port, variables=OURS) as (server, _):
        assert count(before.infer(step())) == 0, 'nothing was lost before the first answer'
        server.kill()
    with served(SCRIPT, port=port, variables=OURS) as (server, _):
        with pytest.raises(StateLost, match=r'what the policy knew.*server_keeps_state'):
            before.infer(step(1))
        assert read(server) == [], 'the next question went to nobody'
        assert count(robot.scope().infer(step())) == 0, 'another episode begins afresh'


def test_openpi_connection_that_is_lost_over_a_question_ends_the_episode_at_once(
    start: Start,
) -> None:
    _, robot = start('--die-at', '1', reconnect_s=PATIENCE_S)
    robot.policy.connect()
    scope = robot.scope()
    scope.infer(step())
    began_s = time.monotonic()
    with pytest.raises(StateLost, match='lost after an answer'):
        scope.infer(step(1))
    assert time.monotonic() - began_s < AT_ONCE_S, 'nobody waited for another connection'


def test_openpi_answer_that_takes_too_long_in_an_episode_ends_it(start: Start) -> None:
    _, robot = start('--slow-at', '1', '--slow-s', '5', act_timeout_s=2.0)
    robot.policy.connect()
    scope = robot.scope()
    scope.infer(step())
    with pytest.raises(StateLost, match='no answer came within'):
        scope.infer(step(1))
    assert scope.figures().reconnects == 0


def test_openpi_server_that_stays_away_is_lost_after_the_reconnect_time(start: Start) -> None:
    server, robot = start(reconnect_s=0.5, server=FORGETFUL)
    robot.policy.connect()
    scope = robot.scope()
    scope.infer(step())
    server.kill()
    with pytest.raises(WorkerLost, match=r'could not be reached for 0\.5 s'):
        scope.infer(step(1))
    assert not robot.policy.connected


def test_openpi_server_that_announces_something_else_is_another_one(stack: ExitStack) -> None:
    port = free_port()
    robot = Robot(port)
    stack.callback(robot.policy.close)
    with served(SCRIPT, '--metadata', '{"model": "a"}', port=port, variables=OURS):
        robot.policy.connect()
    scope = robot.scope()
    with (
        served(SCRIPT, '--metadata', '{"model": "b"}', port=port, variables=OURS),
        pytest.raises(WorkerLost, match=r'another server.*configure'),
    ):
        scope.infer(step())


def test_openpi_idle_robot_finds_a_server_again_that_was_restarted(
    stack: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeper, 'LOOK_S', 0.1)
    port = free_port()
    robot = Robot(port)
    stack.callback(robot.policy.close)
    with served(SCRIPT, port=port, variables=OURS):
        robot.policy.connect()
    wait_for(lambda: not robot.policy.connected, PATIENCE_S, 'the loss')
    with served(SCRIPT, port=port, variables=OURS):
        wait_for(lambda: robot.policy.connected, PATIENCE_S, 'the server')
        assert robot.heard('is back')


def test_openpi_frozen_server_is_given_up_within_the_time_of_a_question(start: Start) -> None:
    server, robot = start(act_timeout_s=2.0, server=FORGETFUL)
    robot.policy.connect()
    scope = robot.scope()
    scope.infer(step())
    os.kill(server.pid, signal.SIGSTOP)
    with pytest.raises(ActAbandoned, match='no answer came within'):
        scope.infer(step(1))

"""Policies behind the real positronic-model-server, in a process of its own."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
import json
from pathlib import Path
import threading
import time
from typing import Any

import numpy as np
import pytest
from seq_harness.client import positronic_opening, positronic_sessions
from seq_harness.client.positronic import PositronicPolicy
from seq_harness.client.transport import HandshakeRefused
from seq_harness.contract.connect import WorkerDeclaration
from seq_harness.playback.uplink import (
    ActAbandoned,
    PolicyError,
    Retired,
    StateLost,
    Step,
    WorkerLost,
)
from support.ports import free_port
from support.servers import needs_servers, OURS, served, ServerProcess
from support.waiting import AT_ONCE_S, PATIENCE_S, wait_for

pytestmark = needs_servers

SCRIPT = Path(__file__).parent / 'serve_positronic.py'


class Robot:
    """A policy of a server, and what the user was told."""

    def __init__(self, port: int, **options: Any) -> None:
        self.told: list[str] = []
        self.policy = PositronicPolicy(
            f'positronic+ws://127.0.0.1:{port}',
            on_state=self.told.append,
            **{'connect_timeout_s': PATIENCE_S, 'reconnect_s': 3.0, **options},
        )

    def heard(self, text: str) -> bool:
        """Tell whether the user was told of something."""
        return any(text in said for said in self.told)

    def connected(self) -> WorkerDeclaration:
        return self.policy.connect()

    def scope(self) -> Any:
        return self.policy.open_episode(time.monotonic_ns)


def step(number: int = 0) -> Step:
    return Step(number, time.monotonic_ns(), {'state': np.zeros(6, np.float32), 'task': 'reach'})


def ids(outputs: Any) -> tuple[int, int]:
    """Return which session answered, and which of its inferences."""
    session, count = outputs['actions'][0][:2]
    return int(session), int(count)


def said(server: ServerProcess, what: str) -> list[Any]:
    """Return what the server told of one kind of event."""
    lines = [line for line in server.output().splitlines() if line.startswith('{')]
    return [value for line in lines for key, value in json.loads(line).items() if key == what]


@pytest.fixture
def start(stack: ExitStack) -> Callable[..., tuple[ServerProcess, Robot]]:
    """Start a server and make a robot for it; both end with the test."""

    def started(*arguments: str, **options: Any) -> tuple[ServerProcess, Robot]:
        server, port = stack.enter_context(served(SCRIPT, *arguments, variables=OURS))
        robot = Robot(port, **options)
        stack.callback(robot.policy.close)
        return server, robot

    return started


Start = Callable[..., tuple[ServerProcess, Robot]]


def test_it_declares_its_rate_and_every_episode_has_a_session_of_its_own(start: Start) -> None:
    server, robot = start()
    declared = robot.connected()
    assert declared.actions is not None
    assert (declared.actions.key, declared.actions.hz) == ('actions', 20.0)
    assert 'tests' in str(declared.io)
    for episode in (1, 2):
        scope = robot.scope()
        assert [ids(scope.infer(step(number))) for number in range(3)] == [
            (episode, count) for count in range(3)
        ]
        scope.close()
        wait_for(lambda: episode in said(server, 'released'), PATIENCE_S, 'the end')  # noqa: B023
    assert said(server, 'infer')[0] == {'state': ['float32', [6]], 'task': 'reach'}


def test_a_warm_up_leaves_nothing_in_the_first_episode(start: Start) -> None:
    _, robot = start()
    robot.connected()
    robot.policy.warm_up(step().observation)
    assert ids(robot.scope().infer(step())) == (2, 0)


@pytest.mark.parametrize('form', ['array', 'list', 'actions', 'commands'])
def test_every_form_of_rows_is_played(start: Start, form: str) -> None:
    _, robot = start(params={'form': form})
    robot.connected()
    outputs = robot.scope().infer(step())
    assert list(outputs) == ['actions']
    assert outputs['actions'].shape == (4, 6)
    np.testing.assert_allclose(outputs['actions'][0], [1, 0, 0.01, 0.01, 0.01, 0.01], rtol=1e-6)


def test_rows_that_the_server_pads_are_cut_to_the_named_columns(start: Start) -> None:
    cut = {'server_width': 8, 'server_columns': [f'joint_{i}' for i in range(1, 7)]}
    _, robot = start(params={'width': 8}, server=cut)
    robot.connected()
    assert robot.scope().infer(step())['actions'].shape == (4, 6)


def test_a_native_answer_may_end_the_episode_or_hold_nothing_new(start: Start) -> None:
    _, robot = start(params={'form': 'mapping'})
    robot.connected()
    assert robot.scope().infer(step())['end'] == 'done'


def test_no_result_is_nothing_new(start: Start) -> None:
    _, robot = start(params={'form': 'nothing'})
    robot.connected()
    assert robot.scope().infer(step()) is None


@pytest.mark.parametrize(('form', 'told'), [('text', "str 'left a bit'"), ('mode', 'control law')])
def test_what_no_channel_plays_is_refused_by_name(start: Start, form: str, told: str) -> None:
    _, robot = start(params={'form': form})
    robot.connected()
    with pytest.raises(PolicyError, match=told):
        robot.scope().infer(step())


def test_stamps_off_the_declared_rate_are_refused_with_both_sides(start: Start) -> None:
    _, robot = start(params={'form': 'actions', 'fps': 10})
    robot.connected()
    with pytest.raises(PolicyError, match=r'stamped 0\.05 s, and the server declares 10 rows/s'):
        robot.scope().infer(step())


def test_it_waits_while_the_server_prepares_and_tells_of_it(start: Start) -> None:
    _, robot = start(params={'prepare_s': 0.3})
    robot.connected()
    assert robot.heard('prepares a session: waiting')


def test_a_server_that_is_not_ready_in_time_is_named(start: Start) -> None:
    _, robot = start(params={'prepare_s': 30.0}, connect_timeout_s=1.0)
    with pytest.raises(WorkerLost, match='still waiting'):
        robot.connected()


def test_closing_interrupts_a_connect_that_waits(start: Start) -> None:
    server, robot = start(params={'prepare_s': 30.0})
    failed: list[Exception] = []

    def connect() -> None:
        try:
            robot.connected()
        except WorkerLost as error:
            failed.append(error)

    thread = threading.Thread(target=connect)
    thread.start()
    wait_for(lambda: bool(said(server, 'prepare')), PATIENCE_S, 'the preparation')
    robot.policy.close()
    thread.join(PATIENCE_S)
    assert failed


def test_unknown_session_parameters_are_refused_at_once_by_name(start: Start) -> None:
    _, robot = start(params={'gripper': 'soft'})
    with pytest.raises(HandshakeRefused, match=r"Unknown session parameters: \['gripper'\]"):
        robot.connected()


def test_a_text_that_reads_as_a_number_stays_a_text(start: Start) -> None:
    server, robot = start(params={'stack': None, 'fps': 25})
    robot.connected()
    assert said(server, 'prepare')[0]['fps'] == 25
    _, other = start(params={'form': '20'})
    other.connected()
    with pytest.raises(PolicyError, match="'20'"):
        other.scope().infer(step())


def test_a_wrong_token_is_refused_after_three_attempts(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(positronic_opening, 'FIRST_WAIT_S', 0.1)
    server, robot = start('--token', 'right', token='wrong')
    with pytest.raises(HandshakeRefused, match='refused the token'):
        robot.connected()
    assert server.output().count(' 403') == 3


def test_the_right_token_opens(start: Start) -> None:
    _, robot = start('--token', 'right', token='right')
    robot.connected()
    assert ids(robot.scope().infer(step())) == (1, 0)


def test_a_server_that_starts_late_is_waited_for(stack: ExitStack) -> None:
    port = free_port()
    robot = Robot(port)
    stack.callback(robot.policy.close)
    connected = threading.Thread(target=robot.connected)
    connected.start()
    wait_for(lambda: robot.heard('waiting for the server'), PATIENCE_S, 'a word')
    stack.enter_context(served(SCRIPT, port=port, variables=OURS))
    connected.join(PATIENCE_S)
    assert robot.policy.connected


def test_a_failed_inference_is_named_and_the_next_episode_has_a_fresh_session(
    start: Start,
) -> None:
    _, robot = start(params={'fail_at': 1})
    robot.connected()
    scope = robot.scope()
    scope.infer(step())
    with pytest.raises(PolicyError, match='the gripper model has no weights'):
        scope.infer(step(1))
    scope.close()
    assert ids(robot.scope().infer(step())) == (2, 0)


def test_g34_a_late_answer_is_never_taken_for_another(start: Start) -> None:
    """The first answer took too long: the next question is asked in another session."""
    slow = {'slow_at': 0, 'slow_s': 5.0, 'slow_session': 1}
    _, robot = start(params=slow, act_timeout_s=2.0)
    robot.connected()
    scope = robot.scope()
    with pytest.raises(ActAbandoned, match='no answer came within'):
        scope.infer(step())
    assert [ids(scope.infer(step(number))) for number in (1, 2)] == [(2, 0), (2, 1)]
    assert robot.policy.figures()['reconnects'] == 1


def test_two_first_answers_too_late_end_the_episode(start: Start) -> None:
    _, robot = start(params={'slow_at': 0, 'slow_s': 5.0}, act_timeout_s=2.0)
    robot.connected()
    scope = robot.scope()
    with pytest.raises(ActAbandoned):
        scope.infer(step())
    with pytest.raises(WorkerLost, match='lost again'):
        scope.infer(step(1))


def test_an_answer_too_late_in_an_episode_ends_it(start: Start) -> None:
    _, robot = start(params={'slow_at': 1, 'slow_s': 5.0}, act_timeout_s=2.0)
    robot.connected()
    scope = robot.scope()
    scope.infer(step())
    with pytest.raises(StateLost, match='with it what the policy remembered'):
        scope.infer(step(1))
    scope.close()
    assert ids(robot.scope().infer(step()))[0] > 1


def test_a_policy_that_remembers_nothing_is_asked_in_another_session(start: Start) -> None:
    slow = {'slow_at': 1, 'slow_s': 5.0, 'slow_session': 1}
    _, robot = start(params=slow, act_timeout_s=2.0, server={'server_keeps_state': False})
    robot.connected()
    scope = robot.scope()
    scope.infer(step())
    with pytest.raises(ActAbandoned, match='no answer came'):
        scope.infer(step(1))
    assert [ids(scope.infer(step(number))) for number in (2, 3)] == [(2, 0), (2, 1)]


def test_a_retired_act_ends_at_once(start: Start) -> None:
    server, robot = start(params={'slow_at': 0, 'slow_s': 30.0})
    robot.connected()
    scope = robot.scope()
    ended: list[Exception] = []

    def ask() -> None:
        try:
            scope.infer(step())
        except Retired as error:
            ended.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    wait_for(lambda: bool(said(server, 'infer')), PATIENCE_S, 'the inference')
    began_s = time.monotonic()
    scope.close()
    asking.join(PATIENCE_S)
    assert ended
    assert time.monotonic() - began_s < AT_ONCE_S


def test_the_times_of_the_network_and_of_the_inference_are_told_apart(start: Start) -> None:
    _, robot = start(params={'slow_at': 0, 'slow_s': 0.3})
    robot.connected()
    robot.scope().infer(step())
    figures = robot.policy.figures()
    acts = figures['acts']
    assert acts['handler_ms']['p50'] > 300
    assert acts['network_ms']['p50'] < 2500
    assert figures['server']['infer_ms']['p50'] > 300
    assert {'decode_ms', 'queued_ms', 'model_ms', 'served_ms'} <= set(figures['server'])


class Restarting:
    """A server that is killed and started again on its port."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._port = free_port()
        self._server: ServerProcess | None = None
        self.start()
        self.robot = Robot(self._port)
        stack.callback(self.robot.policy.close)
        self.robot.connected()

    def start(self, *arguments: str) -> None:
        """Start it, however it was before."""
        serving = served(SCRIPT, *arguments, port=self._port, variables=OURS)
        self._server, _ = self._stack.enter_context(serving)

    def kill(self) -> None:
        """Kill it, as nothing can be prepared for."""
        assert self._server is not None
        self._server.kill()


def test_g35_a_session_lost_before_its_first_answer_is_opened_anew(stack: ExitStack) -> None:
    server = Restarting(stack)
    scope = server.robot.scope()
    server.kill()
    server.start()
    assert ids(scope.infer(step()))[1] == 0
    assert [ids(scope.infer(step(number)))[1] for number in (1, 2)] == [1, 2]


def test_a_session_lost_after_its_first_answer_ends_the_episode(stack: ExitStack) -> None:
    server = Restarting(stack)
    scope = server.robot.scope()
    scope.infer(step())
    server.kill()
    server.start()
    with pytest.raises(StateLost, match='with it what the policy remembered'):
        scope.infer(step(1))
    scope.close()
    assert ids(server.robot.scope().infer(step()))[1] == 0


def test_a_server_that_stays_away_is_lost_after_the_time_to_reconnect(stack: ExitStack) -> None:
    server = Restarting(stack)
    scope = server.robot.scope()
    server.kill()
    with pytest.raises(WorkerLost, match='within 3 s'):
        scope.infer(step())


def test_a_server_that_declares_otherwise_by_now_is_refused(stack: ExitStack) -> None:
    server = Restarting(stack)
    scope = server.robot.scope()
    server.kill()
    server.start('--metadata', '{"action_fps": 20, "action_horizon_sec": 0.1}')
    with pytest.raises(WorkerLost, match='configure anew'):
        scope.infer(step())


def test_between_episodes_a_lost_server_is_missed_and_found_again(
    stack: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(positronic_sessions, 'LOOK_S', 0.1)
    monkeypatch.setattr(positronic_sessions, 'FIRST_WAIT_S', 0.2)
    server = Restarting(stack)
    robot = server.robot
    server.kill()
    wait_for(lambda: not robot.policy.connected, PATIENCE_S, 'a word of the loss')
    assert robot.heard('the server is away')
    server.start()
    wait_for(lambda: robot.policy.connected, PATIENCE_S, 'the server')
    assert robot.heard('the server is back')
    assert ids(robot.scope().infer(step())) == (1, 0)

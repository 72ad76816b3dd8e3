"""Starts that wait for a worker, and requests that keep nobody waiting."""

from __future__ import annotations

from collections.abc import Iterator
import os
from pathlib import Path
import signal
from typing import Any

from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState, GetState
import pytest
from seq_harness.cli.children import Children
from seq_harness.harness import RequestAnswer
from seq_harness.ros.starting import Obstacle, Starting
from support.composing import Caller, Composition, composition, HOLD
from support.ports import free_port
from support.sources import ROOT
from support.waiting import PATIENCE_S

CONFIGURE, ACTIVATE = Transition.TRANSITION_CONFIGURE, Transition.TRANSITION_ACTIVATE
DEACTIVATE, CLEANUP = Transition.TRANSITION_DEACTIVATE, Transition.TRANSITION_CLEANUP
SHUTDOWN = Transition.TRANSITION_UNCONFIGURED_SHUTDOWN
FOREVER: dict[str, Any] = {'connect_timeout_s': 300.0, 'inputs_timeout_s': 300.0}


class Bench:
    """A keeper of starts on a clock that the test holds."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.obstacle: Obstacle | None = Obstacle('worker_missing', 'no worker is connected')
        self.answer = RequestAnswer(True, 'accepted')
        self.begun = 0
        self.ended: list[str] = []
        self.starting = Starting(
            5.0, lambda: self.obstacle, self._begin, self.ended.append, lambda: self.now_s
        )

    def _begin(self) -> RequestAnswer:
        self.begun += 1
        return self.answer


def test_a_start_begins_at_once_where_nothing_stands_in_its_way() -> None:
    bench = Bench()
    bench.obstacle = None
    assert bench.starting.ask().accepted
    assert (bench.begun, bench.starting.pending) == (1, False)


def test_a_start_waits_and_begins_once() -> None:
    bench = Bench()
    answer = bench.starting.ask()
    assert answer == RequestAnswer(True, 'accepted, and waits up to 5 s: no worker is connected')
    assert not bench.starting.ask().accepted, 'a second one is refused'
    bench.starting.look()
    bench.obstacle = None
    bench.now_s += 60.0
    bench.starting.look()
    bench.starting.look()
    assert (bench.begun, bench.ended, bench.starting.pending) == (1, [], False)


def test_a_start_that_waited_in_vain_ends_by_name_once() -> None:
    bench = Bench()
    bench.starting.ask()
    bench.now_s += 4.9
    bench.starting.look()
    assert bench.ended == []
    bench.now_s += 0.1
    bench.starting.look()
    bench.starting.look()
    assert bench.ended == ['worker_missing: no worker is connected, for 5 s']
    assert bench.starting.end('stop') is False


def test_a_start_that_is_refused_after_its_wait_ends_by_that_reason() -> None:
    bench = Bench()
    bench.starting.ask()
    bench.obstacle, bench.answer = None, RequestAnswer(False, 'another commands the arm')
    bench.starting.look()
    assert bench.ended == ['another commands the arm']


@pytest.fixture
def children(tmp_path: Path) -> Iterator[Children]:
    with Children(tmp_path) as made:
        yield made


@pytest.fixture
def composed(children: Children) -> Iterator[Composition]:
    with composition(children) as made:
        yield made


def pending(caller: Caller, kind: Any, name: str, request: Any) -> Any:
    """Send a request; return what will hold its answer."""
    client = caller.node.create_client(kind, name)
    caller.until(client.service_is_ready, f'the service {name}')
    return client.call_async(request)


def change(caller: Caller, transition: int) -> Any:
    request = ChangeState.Request()
    request.transition.id = transition
    return pending(caller, ChangeState, '/harness/change_state', request)


def late_worker(children: Children, port: int, form: str = '') -> None:
    policy = ['support.forms:Form', '--set', f'form={form}'] if form else [HOLD]
    children.start('late', ['worker', *policy, '--port', str(port)])


def test_a_manager_that_configures_keeps_nobody_waiting_and_a_start_waits(
    children: Children, composed: Composition, caller: Caller
) -> None:
    arm, port = composed.arm(), free_port()
    composed.harness(worker_url=f'ws://127.0.0.1:{port}', **FOREVER)
    composed.spin()
    configured = change(caller, CONFIGURE)
    caller.until(lambda: not caller.trigger('/harness/pause').success, 'another answer')
    state = caller.ask(GetState, '/harness/get_state', GetState.Request())
    assert state.current_state.label == 'unconfigured'
    answer = caller.trigger('/harness/start')
    assert (answer.success, 'still connects to' in answer.message) == (True, True)
    caller.until(lambda: arm.episode.get('state') == 'waiting', 'the wait')
    assert not configured.done()
    late_worker(children, port)
    caller.until(configured.done, 'the configuration', PATIENCE_S)
    assert configured.result().success
    assert arm.commands == []
    assert caller.change('/harness', ACTIVATE)
    caller.until(lambda: len(arm.commands) > 3, 'setpoints')


def test_a_start_that_waits_for_a_worker_in_vain_ends_by_name(
    composed: Composition, caller: Caller
) -> None:
    arm, url = composed.arm(), f'ws://127.0.0.1:{free_port()}'
    composed.harness(worker_url=url, connect_timeout_s=300.0, inputs_timeout_s=0.3)
    composed.spin()
    change(caller, CONFIGURE)
    caller.until(lambda: caller.trigger('/harness/start').success, 'a start that is taken')
    caller.until(lambda: bool(arm.episode.get('reason')), 'its end')
    said = f'worker_missing: the node still connects to {url}, for 0.3 s'
    assert (arm.episode['reason'], arm.episode['episode']) == (said, 1)
    assert arm.episode['state'] == 'idle'


def test_a_configuration_that_fails_is_answered_and_ends_the_start_that_waited(
    composed: Composition, caller: Caller
) -> None:
    arm = composed.arm()
    composed.harness(
        worker_url=f'ws://127.0.0.1:{free_port()}', connect_timeout_s=2.0, inputs_timeout_s=300.0
    )
    composed.spin()
    configured = change(caller, CONFIGURE)
    caller.until(lambda: caller.trigger('/harness/start').success, 'a start that is taken')
    caller.until(configured.done, 'the answer', PATIENCE_S)
    assert not configured.result().success
    caller.until(lambda: bool(arm.episode.get('reason')), 'its end')
    assert arm.episode['reason'].startswith('worker_missing: configuring failed: no worker served')
    assert 'not active' in caller.trigger('/harness/start').message


def test_a_shutdown_ends_a_connect_that_waits(composed: Composition, caller: Caller) -> None:
    composed.harness(worker_url=f'ws://127.0.0.1:{free_port()}', **FOREVER)
    composed.spin()
    configured = change(caller, CONFIGURE)
    caller.until(lambda: caller.trigger('/harness/start').success, 'a start that is taken')
    ended = change(caller, SHUTDOWN)
    caller.until(ended.done, 'the shutdown', PATIENCE_S)
    assert ended.result().success
    caller.until(configured.done, 'the end of the connect', PATIENCE_S)
    assert not configured.result().success
    assert composed.failure == []


def test_a_cleanup_while_an_act_hangs_keeps_nobody_waiting(
    composed: Composition, caller: Caller
) -> None:
    arm = composed.arm()
    composed.harness(worker_url='embedded:support.forms:Hanging', inputs_timeout_s=300.0)
    composed.spin()
    assert caller.change('/harness', CONFIGURE)
    assert caller.change('/harness', ACTIVATE)
    assert caller.trigger('/harness/start').success
    caller.until(lambda: arm.episode.get('state') == 'running', 'an act that hangs')
    assert caller.change('/harness', DEACTIVATE)
    cleaned = change(caller, CLEANUP)
    for _ in range(2):
        # The first may have come before the cleanup began.
        assert caller.trigger('/harness/stop').success
    assert not cleaned.done()
    caller.until(cleaned.done, 'the cleanup', PATIENCE_S)
    assert cleaned.result().success


def test_another_worker_process_is_warmed_up_between_episodes_before_one_begins(
    children: Children,
    composed: Composition,
    caller: Caller,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv('PYTHONPATH', f'{ROOT}:{ROOT / "test"}:{os.environ.get("PYTHONPATH", "")}')
    arm, port = composed.arm(), free_port()
    late_worker(children, port, 'plain')
    composed.harness(worker_url=f'ws://127.0.0.1:{port}', **FOREVER)
    composed.spin()
    assert caller.change('/harness', CONFIGURE)
    assert caller.change('/harness', ACTIVATE)

    def replace_worker(form: str) -> None:
        os.kill(children.pid('late'), signal.SIGKILL)
        caller.until(lambda: not arm.episode['policy']['connected'], 'the loss', PATIENCE_S)
        answer = caller.trigger('/harness/start')
        assert (answer.success, 'no worker is connected' in answer.message) == (True, True)
        late_worker(children, port, form)

    replace_worker('nan')
    caller.until(lambda: bool(arm.episode['reason']), 'the end of the start', PATIENCE_S)
    said = "the policy's answer to the warm-up would be refused of any act: row 0"
    assert arm.episode['reason'].startswith(said)
    assert arm.commands == []
    replace_worker('plain')
    caller.until(lambda: len(arm.commands) > 3, 'setpoints', PATIENCE_S)

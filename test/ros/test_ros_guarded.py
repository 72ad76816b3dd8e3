"""What the node refuses over the graph: silence, changes of parameters, and a start too early."""

from __future__ import annotations

from pathlib import Path
import re
from typing import Any

from lifecycle_msgs.msg import State, Transition
from lifecycle_msgs.srv import GetState
import pytest
from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
from rcl_interfaces.srv import DescribeParameters, SetParameters, SetParametersAtomically
from seq_harness.cli.children import Children
from seq_harness.ros.watcher import Watcher
from std_msgs.msg import Bool
from support.composing import Caller, Composition, HOLD
from support.driving import DEMO
from support.waiting import PATIENCE_S, wait_for

CONFIGURE, ACTIVATE = Transition.TRANSITION_CONFIGURE, Transition.TRANSITION_ACTIVATE


def bring_up(caller: Caller) -> None:
    for transition in (CONFIGURE, ACTIVATE):
        assert caller.change('/harness', transition)


@pytest.mark.parametrize(
    ('topic', 'changes', 'says', 'reason'),
    [
        ('stop', {'require_heartbeat': True, 'stop_timeout_s': 2.0}, False, 'stop_input: stop '),
        ('deadman', {'deadman_timeout_s': 2.0}, True, 'deadman: deadman fell silent'),
    ],
)  # fmt: skip
def test_silence_of_a_stop_input_that_must_beat_and_of_a_deadman_ends_the_episode(
    composed: Composition,
    caller: Caller,
    topic: str,
    changes: dict[str, Any],
    says: bool,
    reason: str,
) -> None:
    arm = composed.arm()
    composed.harness(**{f'{topic}_topic': topic}, **changes)
    composed.spin()
    beats = caller.node.create_publisher(Bool, f'/{topic}', 10)
    beating = caller.node.create_timer(0.05, lambda: beats.publish(Bool(data=says)))
    bring_up(caller)
    caller.until(lambda: caller.trigger('/harness/start').success, 'a start while it beats')
    caller.until(lambda: len(arm.commands) > 60, 'setpoints for longer than the time-out')
    caller.node.destroy_timer(beating)
    caller.until(lambda: str(arm.episode.get('reason')).startswith(reason), 'the end')
    refused = caller.trigger('/harness/start')
    assert (refused.success, 'silent' in refused.message) == (False, True)


def test_a_start_waits_for_the_first_beat_of_a_stop_input(
    composed: Composition, caller: Caller
) -> None:
    composed.arm()
    composed.harness(stop_topic='stop', require_heartbeat=True)
    composed.spin()
    bring_up(caller)
    refused = caller.trigger('/harness/start')
    assert (refused.success, 'has said nothing yet' in refused.message) == (False, True)


def text(value: str) -> ParameterValue:
    return ParameterValue(type=ParameterType.PARAMETER_STRING, string_value=value)


CHANGES = (
    Parameter(name='worker_url', value=text('ws://10.0.0.1:1')),
    Parameter(name='worker_token_file', value=text('another_token')),
    Parameter(name='channels.arm.topic', value=text('elsewhere')),
    Parameter(
        name='channels.arm.upper',
        value=ParameterValue(
            type=ParameterType.PARAMETER_DOUBLE_ARRAY, double_array_value=[9.0] * 6
        ),
    ),
    Parameter(
        name='preview', value=ParameterValue(type=ParameterType.PARAMETER_BOOL, bool_value=False)
    ),
)


def test_url_outputs_limits_and_token_cannot_be_changed_and_say_so(
    composed: Composition, caller: Caller
) -> None:
    composed.arm()
    harness = composed.harness()
    composed.spin()
    bring_up(caller)
    before = {change.name: harness.get_parameter(change.name).value for change in CHANGES}
    request = SetParameters.Request(parameters=list(CHANGES))
    results = caller.ask(SetParameters, '/harness/set_parameters', request).results
    assert [result.successful for result in results] == [False] * len(CHANGES)
    assert all('read-only' in result.reason for result in results)
    atomically = SetParametersAtomically.Request(parameters=[CHANGES[0]])
    name = '/harness/set_parameters_atomically'
    assert not caller.ask(SetParametersAtomically, name, atomically).result.successful
    assert {name: harness.get_parameter(name).value for name in before} == before


def test_every_parameter_says_what_it_is_and_that_it_is_read_only(
    composed: Composition, caller: Caller
) -> None:
    harness = composed.harness()
    composed.spin()
    names = [name for name in harness.list_parameters([], 0).names if name != 'use_sim_time']
    names = [name for name in names if not name.startswith(('qos_overrides', 'start_type'))]
    request = DescribeParameters.Request(names=names)
    told = caller.ask(DescribeParameters, '/harness/describe_parameters', request).descriptors
    assert len(told) > 60
    for descriptor in told:
        assert descriptor.description.endswith('.'), descriptor.name
        assert descriptor.read_only, descriptor.name


def test_autostart_that_is_off_leaves_the_node_to_a_manager(tmp_path: Path) -> None:
    with Children(tmp_path) as children, Watcher() as watcher:
        children.start('worker', ['worker', HOLD, '--port', '0'])
        log, pattern = children.log('worker'), re.compile(r'serving \S+ on (ws://\S+)')
        wait_for(lambda: bool(pattern.search(log.read_text())), PATIENCE_S, 'the worker')
        found = pattern.search(log.read_text())
        words = ['-p', 'autostart:=false', '-p', f'worker_url:={found[1] if found else ""}']
        command = ['harness', '--ros-args', '--params-file', str(DEMO), *words]
        children.start('harness', command)
        client = watcher.node.create_client(GetState, '/harness/get_state')
        watcher.wait(client.service_is_ready, PATIENCE_S, 'the node', children.check)
        assert 'not active' in watcher.call('start')
        future = client.call_async(GetState.Request())
        watcher.wait(future.done, PATIENCE_S, 'its state', children.check)
        response = future.result()
        assert response is not None
        assert response.current_state.id == State.PRIMARY_STATE_UNCONFIGURED

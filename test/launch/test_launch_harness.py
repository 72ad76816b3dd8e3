"""The harness as launch starts it: its arguments, and what each reaches."""

from __future__ import annotations

from collections.abc import Iterator, Set
from functools import partial
import os
from pathlib import Path
import signal
from typing import Any

import pytest
from rcl_interfaces.srv import GetParameters
from seq_harness.ros.watcher import Watcher
from support.sources import ROOT
from support.waiting import PATIENCE_S
import yaml

try:
    import launch_pytest
    import launch_ros  # noqa: F401
except ModuleNotFoundError as missing:
    pytest.skip(f'needs launch and launch_ros: {missing}', allow_module_level=True)
else:
    from launch import LaunchContext
    from support.launching import Launched, source


def _parameters_of_the_demo(path: Path, **changes: Any) -> str:
    """Write the parameters of the demo with some changed."""
    parameters = yaml.safe_load((ROOT / 'config' / 'demo.yaml').read_text())
    parameters['/**']['ros__parameters'].update(changes)
    path.write_text(yaml.safe_dump(parameters))
    return str(path)


@pytest.fixture
def launched(tmp_path: Path, request: pytest.FixtureRequest) -> Launched:
    changes, arguments = request.param
    file = _parameters_of_the_demo(tmp_path / 'parameters.yaml', **changes)
    return Launched('harness.launch.py', {'params_file': file, **arguments})


@launch_pytest.fixture
def harness(launched: Launched) -> Any:
    return launched.description()


def test_the_arguments_are_those_that_the_documents_name() -> None:
    description = source('harness.launch.py').get_launch_description(LaunchContext())
    names = {argument.name for argument in description.get_launch_arguments()}
    assert names == {
        'params_file',
        'worker_url',
        'namespace',
        'use_sim_time',
        'watchdog',
        'record',
        'log_level',
    }


ARGUMENTS = {
    'worker_url': 'ws://127.0.0.1:9',
    'namespace': 'left',
    'use_sim_time': 'true',
    'record': '12',
    'log_level': 'debug',
}


@pytest.mark.launch(fixture=harness)
@pytest.mark.parametrize('launched', [({'autostart': False}, ARGUMENTS)], indirect=True)
def test_what_is_given_stands_above_the_file(launched: Launched) -> None:
    names = ('worker_url', 'use_sim_time', 'record', 'rate_hz')
    values = _values_of('/left/harness', launched, *names)
    assert values == ['ws://127.0.0.1:9', True, '12', 20.0]
    assert '--log-level debug' in ' '.join(launched.commands['harness'])


@pytest.mark.launch(fixture=harness)
@pytest.mark.parametrize(
    'launched',
    [({'autostart': False, 'worker_url': 'ws://127.0.0.1:7', 'use_sim_time': True}, {})],
    indirect=True,
)
def test_what_is_not_given_is_left_to_the_file(launched: Launched) -> None:
    values = _values_of('/harness', launched, 'worker_url', 'use_sim_time')
    assert values == ['ws://127.0.0.1:7', True]


@pytest.mark.launch(fixture=harness)
@pytest.mark.parametrize('launched', [({'rate_hz': -1.0}, {})], indirect=True)
def test_a_wrong_parameter_ends_the_process_with_2(launched: Launched) -> Iterator[None]:
    with Watcher() as watcher:
        watcher.wait(lambda: bool(launched.statuses), PATIENCE_S, 'the end', lambda: None)
    yield
    assert launched.statuses == {'harness': 2}


@pytest.mark.launch(fixture=harness)
@pytest.mark.parametrize(
    'launched',
    [
        ({'autostart': False, 'require_watchdog': True}, {}),
        ({'autostart': False}, {'watchdog': 'true'}),
    ],
    indirect=True,
)
def test_a_watchdog_that_is_wanted_stands_beside_the_node_and_comes_back(
    launched: Launched,
) -> Iterator[None]:
    with Watcher() as watcher:
        wait = partial(watcher.wait, within_s=PATIENCE_S, each=lambda: None)
        wait(lambda: 'watchdog' in launched.commands, what='the watchdog')
        wait(lambda: _nodes(watcher).count('watchdog') == 1, what='its node')
        os.kill(launched.pids['watchdog'], signal.SIGKILL)
        first = launched.pids['watchdog']
        wait(lambda: launched.pids['watchdog'] != first, what='another watchdog')
        wait(lambda: 'harness' in launched.commands, what='the harness')
        assert _values_of('/harness', launched, 'require_watchdog', ended={'watchdog'}) == [True]
    yield
    assert launched.statuses == {'watchdog': 0, 'harness': 0}


@pytest.mark.launch(fixture=harness)
@pytest.mark.parametrize(
    'launched',
    [
        ({'autostart': False}, {}),
        ({'autostart': False, 'require_watchdog': True}, {'watchdog': 'false'}),
    ],
    indirect=True,
)
def test_a_watchdog_that_nobody_wants_is_not_started(launched: Launched) -> None:
    assert len(_values_of('/harness', launched, 'rate_hz')) == 1
    assert set(launched.commands) == {'harness'}


def _nodes(watcher: Watcher) -> list[str]:
    return [str(name) for name in watcher.node.get_node_names()]


def _values_of(
    node: str, launched: Launched, *names: str, ended: Set[str] = frozenset()
) -> list[Any]:
    """Ask a running node for its parameters, while none but `ended` has ended."""

    def each() -> None:
        assert set(launched.statuses) <= ended

    with Watcher() as watcher:
        client = watcher.node.create_client(GetParameters, f'{node}/get_parameters')
        watcher.wait(client.service_is_ready, PATIENCE_S, 'the parameter service', each)
        answer = client.call_async(GetParameters.Request(names=names))
        watcher.wait(answer.done, PATIENCE_S, 'the parameters', each)
        values = answer.result().values
    fields = {1: 'bool_value', 3: 'double_value', 4: 'string_value'}
    return [getattr(value, fields[value.type]) for value in values]

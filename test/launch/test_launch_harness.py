"""The harness as launch starts it: its arguments, and what each reaches."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rcl_interfaces.srv import GetParameters
from seq_harness.ros.watcher import Watcher
from support.sources import ROOT
import yaml

try:
    import launch_pytest
    import launch_ros  # noqa: F401
except ModuleNotFoundError as missing:
    pytest.skip(f'needs launch and launch_ros: {missing}', allow_module_level=True)
else:
    from launch import LaunchContext
    from support.launching import Launched, source

WITHIN_S = 30.0


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
    assert names == {'params_file', 'worker_url', 'namespace', 'use_sim_time', 'log_level'}


ARGUMENTS = {
    'worker_url': 'ws://127.0.0.1:9',
    'namespace': 'left',
    'use_sim_time': 'true',
    'log_level': 'debug',
}


@pytest.mark.launch(fixture=harness)
@pytest.mark.parametrize('launched', [({'autostart': False}, ARGUMENTS)], indirect=True)
def test_what_is_given_stands_above_the_file(launched: Launched) -> None:
    assert _values_of('/left/harness', launched, 'worker_url', 'use_sim_time', 'rate_hz') == [
        'ws://127.0.0.1:9',
        True,
        20.0,
    ]
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
        watcher.wait(lambda: bool(launched.statuses), WITHIN_S, 'the end', lambda: None)
    yield
    assert launched.statuses == {'harness': 2}


def _values_of(node: str, launched: Launched, *names: str) -> list[Any]:
    """Ask a running node for its parameters."""

    def each() -> None:
        assert not launched.statuses

    with Watcher() as watcher:
        client = watcher.node.create_client(GetParameters, f'{node}/get_parameters')
        watcher.wait(client.service_is_ready, WITHIN_S, 'the parameter service', each)
        answer = client.call_async(GetParameters.Request(names=names))
        watcher.wait(answer.done, WITHIN_S, 'the parameters', each)
        values = answer.result().values
    fields = {1: 'bool_value', 3: 'double_value', 4: 'string_value'}
    return [getattr(value, fields[value.type]) for value in values]

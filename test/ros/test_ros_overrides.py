"""Values that ROS does not take over without a word: refused by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
import math
from pathlib import Path
import subprocess
import sys
from typing import Any

import pytest
import rclpy
from rclpy.context import Context
from rclpy.node import Node
from seq_harness.ros.overrides import read_given, refuse_lost_files, refuse_lost_values
from seq_harness.settings import SettingsError
from support.sources import ROOT
from support.waiting import PATIENCE_S
import yaml


@pytest.fixture
def context() -> Iterator[Context]:
    made = Context()
    rclpy.init(context=made)
    yield made
    rclpy.shutdown(context=made)


NAMES = ('rate_hz', 'name', 'preview', 'lower', 'upper')


def checked(
    context: Context,
    *arguments: str,
    namespace: str = '',
    check: Callable[[Node, Sequence[str]], object] = refuse_lost_values,
) -> dict[str, Any]:
    """Make a node with arguments, check it, and return what it has."""
    given = ['--ros-args', *arguments]
    node = Node(
        'harness',
        context=context,
        namespace=namespace,
        cli_args=given,
        allow_undeclared_parameters=True,
        automatically_declare_parameters_from_overrides=True,
    )
    try:
        check(node, given)
        return {name: node.get_parameter(name).value for name in NAMES if node.has_parameter(name)}
    finally:
        node.destroy_node()


def file(folder: Path, name: str, node: str = '/**', **values: Any) -> list[str]:
    return written(folder / name, {node: {'ros__parameters': values}})


def written(path: Path, content: Any) -> list[str]:
    path.write_text(yaml.safe_dump(content))
    return ['--params-file', str(path)]


@pytest.mark.parametrize(
    ('first', 'then'),
    [
        ({'rate_hz': 20}, ['-p', 'rate_hz:=30.5']),
        ({'preview': True}, ['-p', 'preview:=0']),
        ({'rate_hz': 20.0}, ['-p', 'rate_hz:=fast']),
        ({'lower': [1, 2]}, ['-p', 'lower:=[1.5, 2.5]']),
        ({'preview': 'false'}, ['-p', 'preview:=false']),
        ({'preview': 'false'}, ['-p', 'preview:=true']),
        ({'rate_hz': 'fast'}, ['-p', 'rate_hz:=20.0']),
        ({'rate_hz': '20'}, ['-p', 'rate_hz:=20.0']),
        ({'preview': False}, ['-p', 'preview:="false"']),
    ],
)
def test_g22_a_value_of_another_type_that_ros_drops_is_refused_by_name(
    context: Context, tmp_path: Path, first: dict[str, Any], then: list[str]
) -> None:
    (name,) = first
    with pytest.raises(SettingsError, match=f"parameter '{name}' is given as .* and ROS keeps"):
        checked(context, *file(tmp_path, 'a.yaml', **first), *then)


def test_g22_so_is_one_of_a_later_file(context: Context, tmp_path: Path) -> None:
    both = [*file(tmp_path, 'a.yaml', rate_hz=20), *file(tmp_path, 'b.yaml', rate_hz=30.5)]
    with pytest.raises(SettingsError, match=r'20 \(int\) of another place'):
        checked(context, *both)


def test_g22_and_one_that_a_file_gives_to_this_node_by_name(
    context: Context, tmp_path: Path
) -> None:
    named = file(tmp_path, 'b.yaml', 'harness', rate_hz=25.0)
    with pytest.raises(SettingsError, match='and for the same node'):
        checked(context, *file(tmp_path, 'a.yaml', rate_hz=20.0), *named, '-p', 'rate_hz:=30.0')


@pytest.mark.parametrize(
    ('then', 'kept'),
    [
        (['-p', 'rate_hz:=30.0'], 30.0),
        (['-p', 'rate_hz:=30'], 30),
        (['-p', 'rate_hz:=1e2'], 100.0),
        (['-p', 'rate_hz:=1e2', '-p', 'rate_hz:=30.0'], 30.0),
        (['-p', 'rate_hz:=20.0', '-p', 'name:=12:30'], 20.0),
        (['-p', 'other:rate_hz:=30.5'], 20.0),
        (['--param', 'harness:rate_hz:=30'], 30),
        (['--', '-p', 'rate_hz:=30.5'], 20.0),
    ],
)
def test_what_ros_takes_over_is_no_fault(
    context: Context, tmp_path: Path, then: list[str], kept: float
) -> None:
    assert checked(context, *file(tmp_path, 'a.yaml', rate_hz=20.0), *then)['rate_hz'] == kept


def test_what_is_not_a_number_is_no_value_that_ros_dropped(
    context: Context, tmp_path: Path
) -> None:
    """It is left to the parameter itself, which refuses it for what it is."""
    files = file(tmp_path, 'a.yaml', rate_hz=20.0)
    kept = checked(context, *files, '-p', 'rate_hz:=.nan', '-p', 'upper:=[1.0, .nan]')
    assert math.isnan(kept['rate_hz'])
    assert math.isnan(kept['upper'][1])


def refused(context: Context, *arguments: str, namespace: str = '') -> str:
    """Return why what was given is refused; empty where it is not."""
    try:
        checked(context, *arguments, namespace=namespace, check=refuse_lost_files)
    except SettingsError as error:
        return str(error)
    return ''


@pytest.mark.parametrize(
    ('key', 'namespace'),
    [
        ('seq_harness', ''),
        ('/lab/harness', ''),
        ('harness', 'lab'),
        ('/*', 'lab'),
        ('/other/**', 'lab'),
    ],
)
def test_g50_a_file_of_which_no_section_is_for_this_node_is_refused(
    context: Context, tmp_path: Path, key: str, namespace: str
) -> None:
    given = file(tmp_path, 'lab.yaml', key, preview=True, use_sim_time=False)
    fqn = f'/{namespace}/harness'.replace('//', '/')
    assert refused(context, *given, namespace=namespace).startswith(
        f'{tmp_path}/lab.yaml says nothing to {fqn}: it has sections for {key}. It holds '
        f'preview, which are parameters of a harness: call the section {fqn} or /**'
    )


@pytest.mark.parametrize('namespace', ['', 'lab', 'lab/left'])
@pytest.mark.parametrize(
    'content',
    [
        {key: {'ros__parameters': {'preview': True}}}
        for key in (
            *('/**', '**', '/*', '*', 'harness', '/harness', 'lab/harness', '/lab/*', '/lab/**'),
            *('/**/harness', '**/harness', '/*/harness', '/*/*', '/lab/*/harness', '/**/*', 'lab'),
        )
    ]
    + [
        {'lab': {'harness': {'ros__parameters': {'preview': True}}}},
        {'lab': {'left': {'harness': {'ros__parameters': {'preview': True}}}}},
        {'/lab': {'*': {'ros__parameters': {'preview': True}}}},
        {'/**': {'harness': {'ros__parameters': {'preview': True}}}},
    ],
    ids=lambda content: str(content)[1:40],
)
def test_g50_what_is_refused_is_what_ros_does_not_read(
    context: Context, tmp_path: Path, content: Any, namespace: str
) -> None:
    given = written(tmp_path / 'a.yaml', content)
    read = checked(context, *given, namespace=namespace, check=lambda node, given: None)
    assert (refused(context, *given, namespace=namespace) == '') is ('preview' in read)


def test_g50_one_section_that_matches_is_enough(context: Context, tmp_path: Path) -> None:
    content = {
        name: {'ros__parameters': {'preview': True}} for name in ('other', '/**', 'lab/harness')
    }
    assert refused(context, *written(tmp_path / 'a.yaml', content)) == ''


@pytest.mark.parametrize('content', [{'arm': {'ros__parameters': {'joints': 6}}}, {}, None])
def test_g50_a_file_without_our_parameters_is_only_warned_of(
    context: Context, tmp_path: Path, content: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / 'a.yaml'
    path.write_text('' if content is None else yaml.safe_dump(content))
    assert refused(context, '--params-file', str(path)) == ''
    assert f'{path} says nothing to /harness: it has ' in capfd.readouterr().err


def test_g50_an_argument_for_another_node_is_warned_of(
    context: Context, capfd: pytest.CaptureFixture[str]
) -> None:
    assert refused(context, '-p', 'seq_harness:preview:=true', '-p', 'other:speed:=1') == ''
    said = capfd.readouterr().err
    assert '-p seq_harness:preview:=true is for seq_harness, and this node is /harness' in said
    assert 'speed' not in said


def test_g50_the_missing_first_parameter_names_the_files_that_said_nothing(
    context: Context, tmp_path: Path
) -> None:
    given = file(tmp_path, 'a.yaml', 'arm', joints=6)
    with pytest.raises(SettingsError) as raised:
        checked(context, *given, check=read_given)
    assert "parameter 'input_names' is missing" in str(raised.value)
    assert f'({tmp_path}/a.yaml says nothing to /harness: it has sections for arm.)' in str(
        raised.value
    )
    with pytest.raises(SettingsError, match=r'\(no parameter file was given to /harness\)$'):
        checked(context, '-p', 'rate_hz:=20.0', check=read_given)


def test_g50_the_node_and_preflight_refuse_such_a_file(tmp_path: Path) -> None:
    base = ['--params-file', str(ROOT / 'config' / 'demo.yaml')]
    lab = file(tmp_path, 'lab.yaml', 'seq_harness', preview=True)
    seq_harness = [sys.executable, '-m', 'seq_harness.cli.main']
    for command in (['harness', '--ros-args', *base, *lab], ['preflight', *base, '--', *lab]):
        done = subprocess.run(
            [*seq_harness, *command],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert done.returncode == 2
        said = ' '.join((done.stdout + done.stderr).split())
        assert 'lab.yaml says nothing to /harness: it has sections for seq_harness.' in said


@pytest.mark.parametrize('command', ['harness', 'preflight'])
def test_a_file_that_is_nested_without_end_is_refused_before_ros_reads_it(
    tmp_path: Path, command: str
) -> None:
    path = tmp_path / 'deep.yaml'
    path.write_text('/**: {ros__parameters: {input_names: ' + '[' * 100_000)
    words = ['--ros-args'] if command == 'harness' else []
    done = subprocess.run(
        [sys.executable, '-m', 'seq_harness.cli.main', command, *words, '--params-file', path],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    said = (done.stdout + done.stderr).strip()
    assert done.returncode == 2
    assert f'{path} cannot be read: more than 50 collections lie within each other' in said
    assert 'rcl' not in said
    assert command == 'preflight' or len(said.splitlines()) == 1


def test_g22_the_node_ends_with_what_ros_dropped_and_so_does_preflight(tmp_path: Path) -> None:
    params = tmp_path / 'a.yaml'
    params.write_text((ROOT / 'config' / 'demo.yaml').read_text().replace('20.0', '20'))
    seq_harness = [sys.executable, '-m', 'seq_harness.cli.main']
    given = ['--params-file', str(params)]
    more = ['-p', 'rate_hz:=30.5']
    for command in (['harness', '--ros-args', *given, *more], ['preflight', *given, '--', *more]):
        done = subprocess.run(
            [*seq_harness, *command],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert done.returncode == 2
        assert "parameter 'rate_hz' is given as 30.5" in done.stdout + done.stderr

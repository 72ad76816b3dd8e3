"""Values that ROS does not take over without a word: refused by name."""

from __future__ import annotations

from collections.abc import Iterator
import math
from pathlib import Path
import subprocess
import sys
from typing import Any

import pytest
import rclpy
from rclpy.context import Context
from rclpy.node import Node
from seq_harness.ros.overrides import refuse_lost_values
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


def checked(context: Context, *arguments: str) -> dict[str, Any]:
    """Make a node with arguments, check it, and return what it has."""
    given = ['--ros-args', *arguments]
    node = Node(
        'harness',
        context=context,
        cli_args=given,
        allow_undeclared_parameters=True,
        automatically_declare_parameters_from_overrides=True,
    )
    try:
        refuse_lost_values(node, given)
        names = ('rate_hz', 'name', 'preview', 'lower', 'upper')
        return {name: node.get_parameter(name).value for name in names if node.has_parameter(name)}
    finally:
        node.destroy_node()


def file(folder: Path, name: str, node: str = '/**', **values: Any) -> list[str]:
    path = folder / name
    path.write_text(yaml.safe_dump({node: {'ros__parameters': values}}))
    return ['--params-file', str(path)]


@pytest.mark.parametrize(
    ('first', 'then'),
    [
        ({'rate_hz': 20}, ['-p', 'rate_hz:=30.5']),
        ({'preview': True}, ['-p', 'preview:=0']),
        ({'rate_hz': 20.0}, ['-p', 'rate_hz:=fast']),
        ({'lower': [1, 2]}, ['-p', 'lower:=[1.5, 2.5]']),
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
    with pytest.raises(SettingsError, match=r'20 \(int\) of an earlier place'):
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


def test_a_file_for_other_nodes_is_no_fault(context: Context, tmp_path: Path) -> None:
    files = [*file(tmp_path, 'a.yaml', rate_hz=20), *file(tmp_path, 'b.yaml', 'arm', rate_hz=1.5)]
    assert checked(context, *files) == {'rate_hz': 20}


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

"""The parameter files for real robots are read by ROS itself, which knows another YAML."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import rclpy
from rclpy.context import Context
from rclpy.node import Node
from seq_harness.bags.params import read_file
from seq_harness.ros.parameters import read_settings
from seq_harness.settings import parse
from support.sources import ROOT

FILES = [*sorted((ROOT / 'config' / 'robots').glob('*.yaml')), ROOT / 'config' / 'demo.yaml']


@pytest.fixture
def context() -> Iterator[Context]:
    made = Context()
    rclpy.init(context=made)
    yield made
    rclpy.shutdown(context=made)


@pytest.mark.parametrize('path', FILES, ids=lambda path: path.stem)
def test_ros_reads_of_each_file_what_a_replay_reads(context: Context, path: Path) -> None:
    node = Node(
        'harness',
        context=context,
        cli_args=['--ros-args', '--params-file', str(path)],
        allow_undeclared_parameters=True,
        automatically_declare_parameters_from_overrides=True,
    )
    try:
        assert read_settings(node) == parse(read_file(path, 'harness'))
    finally:
        node.destroy_node()

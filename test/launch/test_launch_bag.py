"""A recording played on real topics to a node that launch starts, as docs/replay.md shows it."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
import shutil
import sys
from typing import Any

import pytest
from seq_harness.ros.watcher import Watcher
from support.recordings import motion, parameters, write
from support.sources import ROOT
from support.waiting import PATIENCE_S
import yaml

try:
    import launch_pytest
    from launch_ros.actions import Node
except ModuleNotFoundError as missing:
    pytest.skip(f'needs launch and launch_ros: {missing}', allow_module_level=True)
else:
    from launch import LaunchDescription
    from launch.actions import ExecuteProcess
    from launch_pytest.actions import ReadyToTest

SECONDS, EPISODE_S = 12.0, 2.0
POLICY = 'embedded:seq_harness.worker.policies.hold:Hold?joints=0'
ON_BAG = {
    'use_sim_time': True,
    'preview': True,
    'episode_s': EPISODE_S,
    'worker_url': POLICY,
    'inputs_timeout_s': SECONDS,
}


def _player(bag: Path) -> list[str]:
    if shutil.which('ros2') and find_spec('ros2bag'):
        return ['ros2', 'bag', 'play', str(bag), '--clock', '200', '--delay', '5']
    return [sys.executable, '-m', 'seq_harness.cli.main', 'play-bag', str(bag), '--clock', '200']


@launch_pytest.fixture
def bag_on_topics(tmp_path: Path) -> Any:
    values = {'/**': {'ros__parameters': parameters()}}
    (tmp_path / 'robot.yaml').write_text(yaml.safe_dump(values))
    harness = Node(
        package='seq_harness',
        executable='harness',
        name='harness',
        parameters=[str(tmp_path / 'robot.yaml'), ON_BAG],
    )
    bag = ExecuteProcess(cmd=_player(write(tmp_path / 'bag', motion(SECONDS))))
    return LaunchDescription([harness, bag, ReadyToTest()])


@pytest.mark.launch(fixture=bag_on_topics)
def test_the_bag_is_played() -> None:
    with Watcher() as watcher:
        watcher.wait(lambda: watcher.ready, PATIENCE_S, 'a ready harness', lambda: None)
        assert watcher.call('start') == ''
        watcher.wait(lambda: bool(watcher.reason), PATIENCE_S, 'the end', lambda: None)
        assert watcher.reason == 'deadline'
        assert watcher.figures['rows']['emitted'] > 0


def test_the_document_shows_this_example() -> None:
    shown = (ROOT / 'docs' / 'replay.md').read_text()
    own = Path(__file__).read_text()
    played = own[own.index('    with Watcher() as watcher') : own.index('def test_the_document')]
    assert played.rstrip() in shown

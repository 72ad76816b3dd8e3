"""The launch file for robots: which controllers it starts, and with which parameters."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.sources import ROOT

try:
    from launch.actions import OpaqueFunction
    from launch.utilities import perform_substitutions
    from launch_ros.actions import Node
except ModuleNotFoundError as missing:
    pytest.skip(f'needs launch and launch_ros: {missing}', allow_module_level=True)
else:
    from launch import LaunchContext
    from support.launching import source

PRESETS = sorted(path.stem for path in (ROOT / 'config' / 'robots').glob('*.yaml'))


def spawned(**given: str) -> list[list[str]]:
    """Return the arguments of each spawner, as launch would start them."""
    context = LaunchContext()
    context.launch_configurations.update(given)
    description = source('robot.launch.py').get_launch_description(context)
    for argument in description.get_launch_arguments():
        argument.execute(context)
    (function,) = [item for item in description.entities if isinstance(item, OpaqueFunction)]
    spawners = [item for item in function.execute(context) or [] if isinstance(item, Node)]
    return [
        [perform_substitutions(context, list(words)) for words in item.cmd[1:4]]
        for item in spawners
    ]


def test_the_controllers_are_those_that_the_channels_name() -> None:
    assert spawned(robot='franka_effort_jtc') == [
        ['joint_state_broadcaster', '--controller-manager', 'controller_manager'],
        ['fr3_arm_controller', '--controller-manager', 'controller_manager'],
    ]


def test_each_arm_of_two_has_a_controller_manager_of_its_own() -> None:
    found = spawned(robot='aloha_two_arms')
    assert ['arm_controller', '--controller-manager', 'follower_left/controller_manager'] in found
    assert [
        'gripper_controller', '--controller-manager', 'follower_right/controller_manager',
    ] in found  # fmt: skip
    assert len(found) == 6


def test_given_controllers_and_managers_are_taken_as_they_are() -> None:
    found = spawned(robot='xarm7_servo', controllers='a left/b', controller_manager='manager')
    assert [words[0] for words in found] == ['a', 'b']
    assert [words[2] for words in found] == ['manager', 'left/manager']
    (words,) = spawned(controllers='left/b', controller_manager='/controller_manager')
    assert words[2] == '/controller_manager'


@pytest.mark.parametrize('preset', PRESETS)
def test_every_preset_can_be_started(preset: str) -> None:
    names = [words[0] for words in spawned(robot=preset)]
    assert len(names) == len(set(map(tuple, spawned(robot=preset))))


def test_a_file_of_ones_own_takes_the_place_of_the_preset(tmp_path: Path) -> None:
    file = tmp_path / 'mine.yaml'
    file.write_text('harness: {ros__parameters: {channels: {arm: {topic: jtc/joint_trajectory}}}}')
    assert ['jtc', '--controller-manager', 'controller_manager'] in spawned(params_file=str(file))

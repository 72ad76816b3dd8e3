"""The parameter files for real robots: each is read whole, and none moves anything by itself."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from seq_harness.contract import Actions, WorkerDeclaration
from seq_harness.inputs import Inputs
from seq_harness.pipeline import Pipeline
from seq_harness.pipeline.joint_map import JointMap
from seq_harness.pipeline.moving import unwatched
from seq_harness.settings import parse, Settings
from seq_harness.settings.input_types import CAMERAS
from support.sources import ROOT
import yaml

PRESETS = sorted((ROOT / 'config' / 'robots').glob('*.yaml'))
DEMO = ROOT / 'config' / 'demo.yaml'
FACTS = yaml.safe_load((Path(__file__).parent / 'driver_facts.yaml').read_text())


def flat(values: dict[str, Any], prefix: str = '') -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, dict):
            found.update(flat(value, f'{prefix}{name}.'))
        else:
            found[f'{prefix}{name}'] = value
    return found


def settings_in(path: Path) -> Settings:
    return parse(flat(yaml.safe_load(path.read_text())['/**']['ros__parameters']))


def test_there_is_one_for_each_kind_of_robot() -> None:
    assert {path.stem for path in PRESETS} == {
        'franka_effort_jtc', 'franka_compliant_pose', 'ur5e_scaled_jtc', 'so101', 'so101_degrees',
        'aloha_two_arms', 'aloha_2_two_arms', 'xarm7_servo', 'tiago_arm', 'kinova_gen3',
    }  # fmt: skip


@pytest.mark.parametrize('path', [DEMO, *PRESETS], ids=lambda path: path.stem)
def test_something_watches_over_every_arm_that_is_commanded(path: Path) -> None:
    """Joints by their distance from the command, poses and rates by what the robot says."""
    settings = settings_in(path)
    assert unwatched(settings) == []
    if any(channel.kind in ('pose', 'velocity', 'effort') for channel in settings.channels):
        assert any(item.is_status for item in settings.inputs)


@pytest.mark.parametrize('path', PRESETS, ids=lambda path: path.stem)
def test_g58_a_preset_says_for_which_driver_and_policies_it_is(path: Path) -> None:
    head = path.read_text().partition('/**:')[0]
    for word in ('# Driver: ', '# Policies: ', '# A preview: '):
        assert word in head


@pytest.mark.parametrize('path', PRESETS, ids=lambda path: path.stem)
def test_g58_a_preset_commands_the_controllers_that_the_driver_has(path: Path) -> None:
    settings, facts = settings_in(path), FACTS[path.stem]
    assert {channel.topic for channel in settings.channels} == set(facts['commands'])
    for channel in settings.channels:
        controller = facts['commands'][channel.topic]
        assert channel.type == controller['type']
        assert list(channel.joints) == controller['joints']
        if 'frame' in controller:
            assert channel.frame == controller['frame']
            continue
        for value, limit in zip(channel.lower, controller['lower'], strict=True):
            assert value >= limit - 1e-4
        for value, limit in zip(channel.upper, controller['upper'], strict=True):
            assert value <= limit + 1e-4
        for value, limit in zip(channel.max_velocity, controller['velocity'], strict=True):
            assert value <= limit


@pytest.mark.parametrize('path', PRESETS, ids=lambda path: path.stem)
def test_g58_a_preset_reads_the_topics_that_the_driver_publishes(path: Path) -> None:
    settings, facts = settings_in(path), FACTS[path.stem]
    others = facts.get('others', {})
    for item in settings.inputs:
        if item.type in CAMERAS:
            assert item.topic in facts.get('cameras', [item.topic])
        elif item.topic in others:
            assert item.type == others[item.topic]
        else:
            assert set(item.joints) <= set(facts['states'][item.topic])
    assert set(others) <= {item.topic for item in settings.inputs}


@pytest.mark.parametrize(
    ('preset', 'joint', 'policy', 'ros'),
    [
        ('so101', 'gripper', 1.0, 1.0),
        ('so101_degrees', 'shoulder_pan', 90.0, 1.5708),
        ('so101_degrees', 'gripper', 100.0, 1.7453),
        ('aloha_two_arms', 'left_finger', 0.0, 0.0440),
        ('aloha_two_arms', 'left_finger', 0.5, 0.05095),
        ('aloha_two_arms', 'left_finger', 1.0, 0.057),
        ('franka_effort_jtc', 'fr3_finger_joint1', 0.0, 0.04),
        ('kinova_gen3', 'robotiq_85_left_knuckle_joint', 1.0, 0.8),
    ],
)
def test_g58_a_preset_counts_joints_as_the_policies_it_is_for(
    preset: str, joint: str, policy: float, ros: float
) -> None:
    settings = settings_in(ROOT / 'config' / 'robots' / f'{preset}.yaml')
    channel = next(item for item in settings.channels if joint in item.joints)
    row = np.zeros(len(channel.joints))
    row[channel.joints.index(joint)] = policy
    commanded = JointMap(settings).decode_row({channel.name: row})[channel.name]
    assert commanded[channel.joints.index(joint)] == pytest.approx(ros, abs=1e-4)


def test_g57_a_franka_is_commanded_by_plans_or_poses_alone() -> None:
    for path in PRESETS:
        if path.stem.startswith('franka'):
            kinds = {channel.type for channel in settings_in(path).channels}
            assert 'float64_multi_array' not in kinds


@pytest.mark.parametrize('name', ['franka_effort_jtc', 'franka_compliant_pose', 'kinova_gen3'])
def test_a_gripper_that_takes_goals_closes_with_a_force(name: str) -> None:
    settings = settings_in(ROOT / 'config' / 'robots' / f'{name}.yaml')
    [gripper] = [item for item in settings.channels if item.name == 'gripper']
    assert gripper.max_effort > 0


@pytest.mark.parametrize('path', PRESETS, ids=lambda path: path.stem)
def test_a_preset_is_read_and_plays_to_the_preview_alone(path: Path) -> None:
    settings = settings_in(path)
    assert settings['preview'] is True
    pipeline = Pipeline(settings, WorkerDeclaration(instance='one', actions=Actions(hz=20)))
    said = pipeline.describe()
    for channel in settings.channels:
        assert channel.topic in said


@pytest.mark.parametrize('path', PRESETS, ids=lambda path: path.stem)
def test_a_preset_uses_relative_topics_so_that_a_namespace_moves_them(path: Path) -> None:
    settings = settings_in(path)
    topics = [item.topic for item in settings.inputs]
    topics += [channel.topic for channel in settings.channels]
    topics += [channel.controller_state for channel in settings.channels]
    topics += [settings[name] for name in ('robot_description', 'stop_topic', 'deadman_topic')]
    assert [topic for topic in topics if topic.startswith('/')] == []


@pytest.mark.parametrize('path', PRESETS, ids=lambda path: path.stem)
def test_a_preset_plays_nothing_of_a_frozen_camera_or_of_an_old_observation(path: Path) -> None:
    settings = settings_in(path)
    cameras = [item for item in settings.inputs if item.type in CAMERAS]
    assert cameras
    assert all(0.0 < item.frozen_after_s <= 1.0 for item in cameras)
    assert 0.0 < settings['max_answer_age_s'] <= 2.0


@pytest.mark.parametrize(
    ('name', 'status', 'stopped', 'ready'),
    [
        ('ur5e_scaled_jtc', 'running', SimpleNamespace(data=False), SimpleNamespace(data=True)),
        ('ur5e_scaled_jtc', 'slider', SimpleNamespace(data=40.0), SimpleNamespace(data=99.9)),
        ('ur5e_scaled_jtc', 'slider', SimpleNamespace(data=0.0), SimpleNamespace(data=100.0)),
        (
            'franka_effort_jtc',
            'mode',
            SimpleNamespace(robot_mode=5),
            SimpleNamespace(robot_mode=2),
        ),
        (
            'franka_compliant_pose',
            'mode',
            SimpleNamespace(robot_mode=4),
            SimpleNamespace(robot_mode=2),
        ),
        ('xarm7_servo', 'servo', SimpleNamespace(code=5), SimpleNamespace(code=0)),
        ('xarm7_servo', 'servo', SimpleNamespace(code=-1), SimpleNamespace(code=4)),
        ('kinova_gen3', 'fault', SimpleNamespace(data=True), SimpleNamespace(data=False)),
    ],
)
def test_a_preset_plays_nothing_while_its_arm_says_that_it_is_stopped(
    name: str, status: str, stopped: Any, ready: Any
) -> None:
    settings = settings_in(ROOT / 'config' / 'robots' / f'{name}.yaml')
    inputs = Inputs([item for item in settings.inputs if item.name == status])
    for message, available in ((stopped, False), (ready, True)):
        inputs.put(status, message, now_ns=1, ros_now_ns=1)
        assert (inputs.unavailable(inputs.snapshot(), 1) is None) is available


def test_the_layouts_and_the_security_policy_can_be_read() -> None:
    config = ROOT / 'config'
    layout = json.loads((config / 'foxglove.json').read_text())
    assert 'DiagnosticSummary!all' in layout['configById']
    assert ElementTree.parse(config / 'plotjuggler.xml').find('.//plot') is not None
    policy = ElementTree.parse(config / 'sros2_policy.xml').getroot()
    assert policy.find('.//profile[@node="harness"]') is not None

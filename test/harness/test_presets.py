"""The parameter files for real robots: each is read whole, and none moves anything by itself."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest
from seq_harness.contract import Actions, WorkerDeclaration
from seq_harness.inputs import Inputs
from seq_harness.pipeline import Pipeline
from seq_harness.settings import parse, Settings
from seq_harness.settings.input_types import CAMERAS
from support.sources import ROOT
import yaml

PRESETS = sorted((ROOT / 'config' / 'robots').glob('*.yaml'))


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
    names = {path.stem for path in PRESETS}
    assert {'franka_forward', 'franka_compliant_pose', 'ur5e_scaled_jtc', 'so101'} <= names
    assert {'aloha_two_arms', 'xarm7_servo', 'tiago_arm'} <= names


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


@pytest.mark.parametrize('name', ['ur5e_scaled_jtc', 'franka_forward', 'franka_compliant_pose'])
def test_a_preset_plays_nothing_while_its_arm_says_that_it_is_stopped(name: str) -> None:
    settings = settings_in(ROOT / 'config' / 'robots' / f'{name}.yaml')
    [status] = [item for item in settings.inputs if item.is_status]
    inputs = Inputs(settings.inputs)
    for message, available in (
        (SimpleNamespace(data=False, robot_mode=5), False),
        (SimpleNamespace(data=True, robot_mode=2), True),
    ):
        inputs.put(status.name, message, now_ns=1, ros_now_ns=1)
        assert (inputs.unavailable(inputs.snapshot(), 1) is None) is available


def test_the_layouts_and_the_security_policy_can_be_read() -> None:
    config = ROOT / 'config'
    layout = json.loads((config / 'foxglove.json').read_text())
    assert 'DiagnosticSummary!all' in layout['configById']
    assert ElementTree.parse(config / 'plotjuggler.xml').find('.//plot') is not None
    policy = ElementTree.parse(config / 'sros2_policy.xml').getroot()
    assert policy.find('.//profile[@node="harness"]') is not None

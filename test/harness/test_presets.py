"""The parameter files for real robots: each is read whole, and none moves anything by itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from seq_harness.contract import Actions, WorkerDeclaration
from seq_harness.pipeline import Pipeline
from seq_harness.settings import parse, Settings
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


def test_the_layouts_and_the_security_policy_can_be_read() -> None:
    config = ROOT / 'config'
    layout = json.loads((config / 'foxglove.json').read_text())
    assert 'DiagnosticSummary!all' in layout['configById']
    assert ElementTree.parse(config / 'plotjuggler.xml').find('.//plot') is not None
    policy = ElementTree.parse(config / 'sros2_policy.xml').getroot()
    assert policy.find('.//profile[@node="harness"]') is not None

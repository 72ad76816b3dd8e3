"""What may be meant and may do harm: said at configure, in preflight, and in start's answer."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from seq_harness.contract import Actions, WorkerDeclaration
from seq_harness.pipeline import Pipeline
from seq_harness.playback.chunk import Chunk
from seq_harness.playback.uplink import Step
from seq_harness.settings.parameters import SettingsError
from support.robots import settings_of

STATUS: dict[str, Any] = {
    'input_names': ['state', 'mode'],
    'inputs__mode__topic': 'mode',
    'inputs__mode__type': 'bool',
    'inputs__mode__available': ['true'],
}
POSE: dict[str, Any] = {
    'input_names': ['state', 'pose'],
    'inputs__pose__topic': 'pose',
    'inputs__pose__type': 'pose_stamped',
    'channels__arm__type': 'pose_stamped',
    'channels__arm__kind': 'pose',
    'channels__arm__joints': ['x', 'y', 'z', 'qx', 'qy', 'qz', 'qw'],
    'channels__arm__state': 'pose',
    'channels__arm__lower': [-1.0, -1.0, -1.0],
    'channels__arm__upper': [1.0, 1.0, 1.0],
    'channels__arm__max_velocity': [1.0, 3.0],
    'channels__arm__max_tracking_error': 0.1,
}
FORM = json.dumps(
    [
        {'layer': 'player', 'version': 1},
        {
            'layer': 'pose_form',
            'version': 1,
            'args': {'channels': ['arm'], 'policy': 'rotvec', 'robot': 'quat_xyzw'},
        },
    ]
)
ROTVEC = ['x', 'y', 'z', 'rx', 'ry', 'rz']


def pipeline(**changes: Any) -> Pipeline:
    declaration = WorkerDeclaration(instance='one', actions=Actions(hz=10))
    return Pipeline(settings_of(**changes), declaration)


def test_a_channel_of_positions_that_nothing_watches_is_a_caution() -> None:
    (said,) = pipeline().cautions
    assert said.startswith('channels.arm has no max_tracking_error, and no input is a status')


@pytest.mark.parametrize(
    'changes',
    [
        {'preview': True},
        {'channels__arm__max_tracking_error': 0.2},
        STATUS,
        {'channels__arm__kind': 'velocity', 'channels__arm__controller_timeout_s': 0.2},
        {'channels__arm__kind': 'binary'},
        {'mapped_joints': ['j1', 'j2'], 'joints__j1__open_closed': [1.0, 0.0],
         'joints__j2__open_closed': [1.0, 0.0]},
    ],
    ids=lambda changes: next(iter(changes)),
)  # fmt: skip
def test_what_is_watched_or_may_be_held_is_none(changes: dict[str, Any]) -> None:
    assert pipeline(**changes).cautions == []


@pytest.mark.parametrize('names', [['rx', 'rz'], ['tool.rx', 'tool.ry'], ['rotvec_x', 'rotvec_y']])
def test_g59_columns_that_look_like_a_rotation_vector_get_a_hint(names: list[str]) -> None:
    changes = {'channels__arm__columns': names, 'channels__arm__max_tracking_error': 0.2}
    (said,) = pipeline(**changes).cautions
    assert f'{names} of channels.arm look like a rotation vector' in said
    assert 'pose_form' in said
    assert pipeline(**changes, preview=True).cautions == [said]


@pytest.mark.parametrize('names', [['j1', 'j2'], ['waist', 'rx'], ['arm_x', 'motor_y']])
def test_columns_of_joints_get_none(names: list[str]) -> None:
    changes = {'channels__arm__columns': names, 'channels__arm__max_tracking_error': 0.2}
    assert pipeline(**changes).cautions == []


@pytest.mark.parametrize(
    ('kind', 'effort', 'is_told'),
    [
        ('gripper_action', 0.0, True),
        ('gripper_command', 0.0, True),
        ('gripper_action', 20.0, False),
        ('parallel_gripper_action', 0.0, False),
    ],
)
def test_g56_an_effort_of_zero_is_told_of(kind: str, effort: float, is_told: bool) -> None:
    changes = {
        'channels__arm__type': kind,
        'channels__arm__joints': ['j1'],
        'channels__arm__lower': [0.0],
        'channels__arm__upper': [1.0],
        'channels__arm__max_velocity': [1.0],
        'channels__arm__max_effort': effort,
    }
    said = [caution.partition(',')[0] for caution in pipeline(**changes).cautions]
    assert said == ['channels.arm.max_effort is 0'] * is_told
    assert pipeline(**changes, preview=True).cautions == []


def test_g59_a_rotation_vector_is_played_as_the_pose_that_the_hint_tells_of() -> None:
    made = pipeline(**POSE, channels__arm__columns=ROTVEC, layers=FORM)
    assert made.cautions == []
    assert 'column 3 rx, column 4 ry, column 5 rz -> x, y, z, qx, qy, qz, qw' in made.describe()
    quarter = {'arm': np.array([0.1, 0.2, 0.3, 0.0, 0.0, math.pi / 2])}
    infer = made.layers.wrap_infer(lambda step, plan=None: Chunk.at_rate([quarter], 10))
    chunk = infer(Step(0, 0, {}))
    assert chunk is not None
    (row,) = chunk.rows
    assert row.commands['arm'] == pytest.approx([0.1, 0.2, 0.3, 0, 0, 0.5**0.5, 0.5**0.5])


def test_a_pose_of_six_columns_without_its_layer_is_refused_by_name() -> None:
    with pytest.raises(SettingsError, match=r'arm\.columns. must name 7 columns'):
        settings_of(**POSE, channels__arm__columns=ROTVEC)

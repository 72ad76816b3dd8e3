"""The robot-arm preset's models."""

from typing import Any

from pydantic import BaseModel, ValidationError
import pytest
from seq_harness.contract import (
    ActionChunk,
    ActionContract,
    ActionSpace,
    Embodiment,
    ImageFrame,
    Observation,
    ObservationContract,
    Proprioception,
)

ACTION = {
    'robot': 'arm',
    'action_space': 'joint_absolute',
    'action_dim': 2,
    'control_frequency_hz': 10,
}
IMAGE = {'view': 'front', 'data': 'aGk='}
CAMERA = {'width': 224, 'height': 224}
OBSERVED = {'images': [IMAGE], 'proprioception': {}, 'instruction': ''}


@pytest.mark.parametrize(
    ('model', 'given', 'held'),
    [
        (ImageFrame, IMAGE, {**IMAGE, 'timestamp_ms': None, 'kind': None}),
        (
            Proprioception,
            {},
            {
                'joint_positions': None,
                'joint_velocities': None,
                'end_effector_pose': None,
                'gripper': None,
            },
        ),
        (
            ObservationContract,
            {},
            {'cameras': {}, 'history': 1, 'proprio': {}, 'state': {}, 'instruction': True},
        ),
        (
            ActionContract,
            ACTION,
            {
                **ACTION,
                'action_space': ActionSpace.JOINT_ABSOLUTE,
                'bounds': None,
                'max_delta': None,
            },
        ),
    ],
)
def test_a_model_has_exactly_these_fields_and_defaults(
    model: type[BaseModel], given: dict[str, Any], held: dict[str, Any]
) -> None:
    assert model.model_validate(given).model_dump() == held
    with pytest.raises(ValidationError, match='Extra inputs'):
        model.model_validate({**given, 'unknown': 1})


@pytest.mark.parametrize(
    ('model', 'given'),
    [
        (ImageFrame, {**IMAGE, 'kind': 'infrared'}),
        (Proprioception, {'end_effector_pose': [0] * 6}),
        (Observation, {**OBSERVED, 'images': []}),
        (Observation, {**OBSERVED, 'images': [IMAGE] * 257}),
        (Observation, {**OBSERVED, 'instruction': None}),
        (ObservationContract, {'history': 0}),
        (ObservationContract, {'history': 65}),
        (ObservationContract, {'proprio': {'fingers': 1}}),
        (ObservationContract, {'proprio': {'gripper': 0}}),
        (ObservationContract, {'cameras': {'front': {**CAMERA, 'codec': 'raw'}}}),
        (ObservationContract, {'cameras': {'front': {**CAMERA, 'layout': 'chw_float'}}}),
        (
            ObservationContract,
            {'cameras': {'front': {**CAMERA, 'codec': 'jpeg', 'quality': 90}}},
        ),
        (ActionContract, {**ACTION, 'action_space': 'anything'}),
        (ActionContract, {**ACTION, 'bounds': [[0, 1]]}),
        (ActionContract, {**ACTION, 'bounds': [[0, 1], [1, 0]]}),
        (ActionContract, {**ACTION, 'bounds': [[0, 1, 2], [0, 1]]}),
        (ActionContract, {**ACTION, 'action_dim': 257, 'bounds': [[0, 1]] * 257}),
        (ActionContract, {**ACTION, 'max_delta': 0}),
        (ActionContract, {**ACTION, 'max_delta': [1]}),
        (ActionContract, {**ACTION, 'max_delta': [1, -1]}),
        (Embodiment, {}),
    ],
    ids=lambda value: f'{value!r:.60}' if isinstance(value, dict) else None,
)
def test_what_the_preset_does_not_allow_is_refused(
    model: type[BaseModel], given: dict[str, Any]
) -> None:
    with pytest.raises(ValidationError):
        model.model_validate(given)


@pytest.mark.parametrize(
    ('model', 'given'),
    [
        (Observation, {**OBSERVED, 'images': [IMAGE] * 256, 'state': {'force': [1.0]}}),
        (
            ObservationContract,
            {
                'cameras': {'front': {**CAMERA, 'resize': 'pad', 'filter': 'box', 'depth': True}},
                'proprio': {'end_effector_pose': 7},
                'history': 64,
            },
        ),
        (ActionContract, {**ACTION, 'bounds': [[0, 1], [1, 1]], 'max_delta': [1, 2]}),
        (ActionContract, {**ACTION, 'max_delta': 0.1}),
        (Embodiment, {'action': ACTION, 'meta': {'vendor': 'x'}}),
    ],
)
def test_what_the_preset_allows_is_taken(model: type[BaseModel], given: dict[str, Any]) -> None:
    model.model_validate(given)


def test_a_chunk_says_how_long_it_lasts() -> None:
    chunk = ActionChunk.model_validate(
        {**ACTION, 'steps': [{'index': 0, 'values': [0, 1]}], 'covers_seconds': 0.1}
    )
    assert chunk.steps[0].values == [0.0, 1.0]
    assert chunk.open_loop_horizon is None
    assert chunk.sustains_seconds is None


def test_a_contract_that_does_not_fit_says_both_sides() -> None:
    with pytest.raises(ValidationError, match='bounds holds 1 entries; action_dim=2'):
        ActionContract.model_validate({**ACTION, 'bounds': [[0, 1]]})

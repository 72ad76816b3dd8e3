"""Declarations of a policy's own inputs and outputs."""

from types import SimpleNamespace
from typing import Any

from pydantic import BaseModel, ValidationError
import pytest
from seq_harness.contract import (
    Actions,
    Camera,
    check_own_io,
    MAX_STREAMS,
    MAX_WINDOW,
    Observations,
    Stream,
    Tensors,
)

SIZE = {'width': 224, 'height': 224}


@pytest.mark.parametrize(
    ('model', 'given', 'held'),
    [
        (
            Observations,
            {},
            {'streams': None, 'every': None, 'unit': 'steps', 'pad': 'repeat_first',
             'when_behind': 'wait'},
        ),
        (Stream, {}, {'at': None, 'every': None, 'camera': None}),
        (
            Camera,
            SIZE,
            {**SIZE, 'depth': None, 'resize': None, 'filter': None, 'codec': None,
             'quality': None, 'layout': None},
        ),
        (Actions, {}, {'key': None, 'hz': None, 'open_loop_horizon': None}),
        (Tensors, {}, {'batch': True}),
    ],
)  # fmt: skip
def test_a_model_has_exactly_these_fields_and_defaults(
    model: type[BaseModel], given: dict[str, Any], held: dict[str, Any]
) -> None:
    assert model.model_validate(given).model_dump() == held
    with pytest.raises(ValidationError, match='Extra inputs'):
        model.model_validate({**given, 'unknown': 1})


@pytest.mark.parametrize(
    ('model', 'given'),
    [
        *[(Stream, {'every': every}) for every in (0, -1, True, '1', float('nan'), float('inf'))],
        *[(Observations, {'every': every}) for every in (0, True, '2', 1.0, 10**400)],
        *[(Stream, {'at': at}) for at in ([], [1], [-1, -1], [0, -0.0], ['-1'], [True], 'ab', -1)],
        *[(Stream, {'at': [offset]}) for offset in (float('nan'), float('-inf'), -(10**400))],
        (Stream, {'at': list(range(-MAX_WINDOW, 1))}),
        (Stream, {'at': [0], 'every': 1}),
        (Observations, {'streams': {str(i): {} for i in range(MAX_STREAMS + 1)}}),
        *[(Observations, {'streams': {key: {}}}) for key in ('', ' a', 'a ', 'a' * 129, 1)],
        (Observations, {'streams': {'a': None}}),
        (Observations, {'streams': {}, 'every': 1}),
        (Observations, {'streams': {'a': {'at': [-1.0]}}}),
        (Observations, {'unit': 'frames'}),
        *[(Camera, {**SIZE, side: size}) for side in SIZE for size in (0, 8193, 1.5, None)],
        *[(Camera, {**SIZE, 'codec': 'jpeg', 'quality': quality}) for quality in (0, 101)],
        (Camera, {**SIZE, 'quality': 90}),
        (Camera, {**SIZE, 'quality': 90, 'codec': 'png'}),
        (Camera, {**SIZE, 'filter': 'linear'}),
        (Camera, {**SIZE, 'resize': 'crop'}),
        *[(Actions, {'hz': hz}) for hz in (0, 1000.1, -1)],
        *[(Actions, {'open_loop_horizon': rows}) for rows in (0, 100_001)],
        *[(Actions, {'key': key}) for key in ('', 'a' * 129)],
    ],
    ids=lambda value: f'{value!r:.60}' if isinstance(value, dict) else None,
)
def test_what_a_declaration_does_not_allow_is_refused(
    model: type[BaseModel], given: dict[str, Any]
) -> None:
    with pytest.raises(ValidationError):
        model.model_validate(given)


@pytest.mark.parametrize(
    ('model', 'given'),
    [
        (Stream, {'at': list(range(1 - MAX_WINDOW, 1))}),
        (Stream, {'every': 0.1}),
        (Observations, {'streams': {str(i): {} for i in range(MAX_STREAMS)}}),
        (Observations, {'streams': {'a' * 128: {'every': 2}}}),
        (Observations, {'streams': {'a': {'at': [-0.5, 0]}}, 'unit': 'seconds'}),
        (Camera, {'width': 8192, 'height': 1, 'codec': 'jpeg', 'quality': 100}),
        (Camera, {**SIZE, 'resize': 'pad'}),
        (Actions, {'key': 'a' * 128, 'hz': 1000, 'open_loop_horizon': 100_000}),
    ],
)
def test_the_limits_themselves_are_allowed(model: type[BaseModel], given: dict[str, Any]) -> None:
    model.model_validate(given)


def test_offsets_are_kept_ascending_and_of_their_own_type() -> None:
    at = Stream(at=[0, -0.5, -2]).at
    assert at == [-2, -0.5, 0]
    assert [type(offset) for offset in at or []] == [int, float, int]


def test_keys_may_come_first_by_position() -> None:
    declared = Observations({'front': {'at': [-1, 0]}}, pad='drop')
    assert declared == Observations(streams={'front': Stream(at=[-1, 0])}, pad='drop')
    assert Observations(None).streams is None


def test_keys_given_twice_are_a_type_error() -> None:
    with pytest.raises(TypeError, match='twice'):
        Observations({'a': {}}, streams={})


def test_own_inputs_beside_the_arm_contract_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match='actions and action'):
        check_own_io(SimpleNamespace(actions=Actions(), action=object()))


@pytest.mark.parametrize(
    'spec',
    [
        SimpleNamespace(observations=Observations(), action=None, embodiments={}),
        SimpleNamespace(observations=None, actions=None, tensors=None, action=object()),
        SimpleNamespace(),
    ],
)
def test_one_way_of_saying_inputs_and_outputs_is_enough(spec: SimpleNamespace) -> None:
    check_own_io(spec)

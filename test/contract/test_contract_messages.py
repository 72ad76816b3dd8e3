"""The models of observing, acting and connecting: fields, defaults, limits."""

from typing import Any

from pydantic import BaseModel, ValidationError
import pytest
from seq_harness.contract import (
    ActRequest,
    ActResponse,
    ConnectRequest,
    ConnectResponse,
    Lease,
    ObserveFrame,
    ObserveRequest,
    ObserveResponse,
    WorkerDeclaration,
)

LEASE = {'ttl_s': 300, 'expires_at': '2026-11-29T11:31:57Z', 'epoch': 1}
COORDINATES = {
    'worker_url': 'https://192.0.2.1:8080',
    'cert_fingerprint': '0' * 64,
    'direct_secret': 's3cret',
    'lease': LEASE,
}


@pytest.mark.parametrize(
    ('model', 'given', 'held'),
    [
        (ObserveFrame, {'seq': 0, 'inputs': None}, {'seq': 0, 'inputs': None}),
        (ObserveRequest, {'episode_id': 'e'}, {'episode_id': 'e', 'frames': [], 'skipped': []}),
        (ObserveResponse, {'through': -1}, {'through': -1}),
        (
            ActRequest,
            {'inputs': 1},
            {
                'inputs': 1,
                'seed': None,
                'episode_id': None,
                'params': None,
                'embodiment': None,
                'plan': None,
                'seq': None,
            },
        ),
        (
            ActResponse,
            {'outputs': None},
            {
                'outputs': None,
                'perf': None,
                'usage': None,
                'warnings': [],
                'request_id': None,
                'action_chunk': None,
                'plan': None,
            },
        ),
        (ConnectRequest, {'model': 'm'}, {'model': 'm', 'embodiment': None}),
        (
            WorkerDeclaration,
            {'instance': 'i'},
            {
                'instance': 'i',
                'io': None,
                'observations': None,
                'actions': None,
                'action': None,
                'observation': None,
                'embodiment': None,
                'params': {},
                'columns': None,
                'rtc': False,
                'keeps_state': False,
                'max_message_bytes': 2**26,
                'max_stream_frames': 1024,
                'max_stream_bytes': 2**26,
                'formats': [],
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
        (ObserveFrame, {'seq': 0}),
        (ObserveFrame, {'seq': -1, 'inputs': {}}),
        (ObserveFrame, {'seq': 1.5, 'inputs': {}}),
        (ObserveFrame, {'seq': None, 'inputs': {}}),
        (ObserveRequest, {}),
        (ObserveRequest, {'episode_id': ''}),
        (ObserveRequest, {'episode_id': 'e' * 257}),
        (ObserveRequest, {'episode_id': 5}),
        (ObserveRequest, {'episode_id': 'e', 'frames': None}),
        (ObserveRequest, {'episode_id': 'e', 'skipped': ['x']}),
        (ObserveResponse, {'through': -2}),
        (ActRequest, {}),
        (ActRequest, {'inputs': 1, 'seq': -1}),
        (ActRequest, {'inputs': 1, 'params': []}),
        (ActResponse, {}),
        (ActResponse, {'outputs': 1, 'warnings': None}),
        (ConnectRequest, {}),
        (Lease, {**LEASE, 'expires_at': 'soon'}),
        (ConnectResponse, {**COORDINATES, 'lease': None}),
        (WorkerDeclaration, {}),
        (WorkerDeclaration, {'instance': 'i', 'io': 'x' * 4001}),
        (WorkerDeclaration, {'instance': 'i', 'max_message_bytes': 0}),
    ],
    ids=repr,
)
def test_what_a_model_does_not_allow_is_refused(
    model: type[BaseModel], given: dict[str, Any]
) -> None:
    with pytest.raises(ValidationError):
        model.model_validate(given)


@pytest.mark.parametrize('number', [1.0, '1', True])
def test_an_int_is_read_from_what_stands_for_one(number: Any) -> None:
    assert ObserveFrame(seq=number, inputs=None).seq == 1


def test_an_episode_id_has_256_characters_and_a_number_may_repeat() -> None:
    frame = {'seq': 1, 'inputs': 'x'}
    request = ObserveRequest.model_validate(
        {'episode_id': 'e' * 256, 'frames': [frame, frame], 'skipped': [1, -1]}
    )
    assert [held.seq for held in request.frames] == [1, 1]


def test_inputs_and_outputs_pass_untouched() -> None:
    inputs = {'x': object()}
    assert ObserveFrame(seq=0, inputs=inputs).inputs is inputs
    assert ActRequest(inputs=inputs).inputs is inputs
    assert ActResponse(outputs=inputs).outputs is inputs


def test_coordinates_come_with_what_the_policy_declares() -> None:
    response = ConnectResponse.model_validate(
        {**COORDINATES, 'observations': {'every': 1}, 'actions': {'hz': 20}, 'io': 'text'}
    )
    assert response.lease.expires_at.year == 2026
    assert response.observations is not None
    assert response.observations.every == 1
    assert response.action is None


def test_a_secret_is_not_shown() -> None:
    assert 's3cret' not in repr(ConnectResponse.model_validate(COORDINATES))


def test_a_declaration_survives_its_own_json() -> None:
    declared = WorkerDeclaration.model_validate(
        {
            'instance': 'i',
            'observations': {'streams': {'front': {'at': [0, -15], 'camera': {'width': 224,
                                                                              'height': 224}}}},
            'actions': {'key': 'actions', 'hz': 20.0, 'open_loop_horizon': 8},
            'params': {'steps': {'type': 'int', 'default': 10, 'min': 1}},
            'columns': ['joint_1', 'joint_2'],
        }
    )  # fmt: skip
    assert WorkerDeclaration.model_validate(declared.model_dump(mode='json')) == declared
    assert WorkerDeclaration.model_validate_json(declared.model_dump_json()) == declared

"""The robot-arm preset in the worker, over the wire."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import pytest
from seq_harness.contract.arm import (
    ActionChunk,
    ActionContract,
    ActionSpace,
    ActionStep,
    Embodiment,
    ObservationContract,
)
from seq_harness.contract.camera import Camera
from seq_harness.contract.frames import pack_frames
from seq_harness.contract.own_io import Actions
from seq_harness.worker.declaration import PolicyRefused
from seq_harness.worker.policy import Policy
from seq_harness.worker.running import served
from worker.test_worker_http import ask
from worker.worker_arm import ACTION, Arm, depth, frames, image, observation
from worker.worker_policies import serving
from worker.worker_wire import Answer, Client, client_of

FRAMES = 'application/x-seq-frames'


def answered(policy: Any, **fields: Any) -> Answer:
    with serving(policy) as client:
        return client.act(observation(), **fields)


@pytest.fixture(scope='module')
def arm() -> Iterator[Client]:
    with serving(Arm()) as client:
        yield client


def test_the_contract_is_declared_at_connect(arm: Client) -> None:
    declared = arm.connect().body
    assert ActionContract.model_validate(declared['action']) == Arm().action
    assert ObservationContract.model_validate(declared['observation']) == Arm().observation
    assert 'x-seq-frames/1' in declared['formats']


def test_a_policy_is_handed_the_observation_and_its_rows_become_a_chunk() -> None:
    policy = Arm()
    sent = observation()
    with serving(policy) as client:
        answer = client.act(sent)
    assert policy.reads == [sent]
    assert answer.outputs == {
        'steps': [{'index': 0, 'values': [0.1, 0.2]}, {'index': 1, 'values': [0.3, 0.4]}],
        'robot': 'two_link',
        'action_space': 'joint_absolute',
        'action_dim': 2,
        'control_frequency_hz': 20.0,
        'covers_seconds': 0.1,
    }
    assert answer.body['action_chunk'] == answer.outputs
    assert answer.body['warnings'] == []
    ActionChunk.model_validate(answer.outputs)


def test_arrays_of_joints_reach_the_policy_as_lists() -> None:
    policy = Arm()
    with serving(policy) as client:
        joints = {'joint_positions': np.array([0.0, 0.5])}
        assert client.act(observation(proprioception=joints)).status == 200
    assert policy.reads[0]['proprioception'] == {'joint_positions': [0.0, 0.5]}


@pytest.mark.parametrize(
    'answer',
    [
        np.array([[0.1, 0.2], [0.3, 0.4]]),
        ([0.1, 0.2], np.array([0.3, 0.4])),
        {'steps': [{'index': 1, 'values': [0.3, 0.4]}, {'index': 0, 'values': [0.1, 0.2]}]},
        ActionChunk(
            steps=[ActionStep(index=0, values=[0.1, 0.2]), ActionStep(index=1, values=[0.3, 0.4])],
            robot='two_link',
            action_space=ActionSpace.JOINT_ABSOLUTE,
            action_dim=2,
            control_frequency_hz=20,
            covers_seconds=0.1,
        ),
    ],
)
def test_rows_are_answered_in_any_form(answer: Any) -> None:
    chunk = answered(Arm(answer)).outputs
    assert [step['values'] for step in chunk['steps']] == [[0.1, 0.2], [0.3, 0.4]]
    assert chunk['covers_seconds'] == 0.1


def test_one_row_alone_is_a_chunk() -> None:
    chunk = answered(Arm([0.1, 0.2])).outputs
    assert chunk['steps'] == [{'index': 0, 'values': [0.1, 0.2]}]


def test_a_horizon_shortens_what_a_chunk_covers() -> None:
    chunk = answered(Arm({'steps': [[0, 0]] * 10, 'open_loop_horizon': 4})).outputs
    assert chunk['covers_seconds'] == 0.2
    assert len(chunk['steps']) == 10


def test_an_end_goes_out_beside_the_steps() -> None:
    assert answered(Arm({'steps': [], 'end': 'done'})).outputs['end'] == 'done'


def test_values_are_clipped_to_the_bounds_with_a_warning() -> None:
    answer = answered(Arm([[0, 0], [1.5, -3]]))
    assert answer.outputs['steps'][1]['values'] == [1.0, -2.0]
    assert answer.body['warnings'] == [
        'clipped 2 values to the bounds: the first is row 1 (from 0), dimension 0, 1.5 to 1'
    ]


def test_a_step_between_rows_is_clipped_to_max_delta() -> None:
    answer = answered(Arm([[0.5, 0], [0.8, 0], [0.85, 0]], max_delta=[0.1, 1]))
    values = [step['values'][0] for step in answer.outputs['steps']]
    np.testing.assert_allclose(values, [0.5, 0.6, 0.7])
    assert 'max_delta' in answer.body['warnings'][0]


def test_a_delta_itself_is_clipped_to_max_delta() -> None:
    answer = answered(Arm([[0.5, -0.5]], max_delta=0.1, action_space='joint_delta'))
    assert answer.outputs['steps'][0]['values'] == [0.1, -0.1]


@pytest.mark.parametrize(
    ('answer', 'said'),
    [
        ([[0.1, 0.2, 0.3]], 'action_dim=2'),
        ([[0.1, float('nan')]], 'dimension 1'),
        ([], 'no rows'),
        ('rows', 'rows of type str'),
        ([['a', 'b']], 'answered step'),
        ({'actions': [[0, 0]]}, 'steps was expected'),
        ({'steps': [[0, 0]], 'action_space': 'joint_delta'}, 'action_space'),
        ({'steps': [[0, 0]], 'control_frequency_hz': 10}, 'control_frequency_hz'),
        ({'steps': [[0, 0]], 'robot': 'other'}, 'robot'),
        ({'steps': [[0, 0]], 'colour': 1}, 'colour'),
        ({'steps': [[0, 0]], 'open_loop_horizon': -1}, 'open_loop_horizon'),
        ({'steps': [[0, 0]], 'open_loop_horizon': 'a'}, 'open_loop_horizon'),
        ({'steps': [[0, 0]], 'covers_seconds': float('inf')}, 'covers_seconds'),
        ({'steps': [{'index': 0, 'values': [0, 0]}, {'index': 2, 'values': [0, 0]}]}, '[0, 2]'),
    ],
)
def test_an_answer_that_breaks_the_contract_is_the_policys_error(answer: Any, said: str) -> None:
    told = answered(Arm(answer))
    assert (told.status, told.code) == (500, 'policy_error')
    assert said in told.body['detail']


@pytest.mark.parametrize(
    ('changed', 'said'),
    [
        ({'images': []}, 'images'),
        ({'images': frames(2)}, "view 'front' sent 2 rgb frames"),
        ({'images': frames(view='wrist')}, "view 'front' sent 0 rgb frames"),
        ({'images': [*frames(), *frames(view='wrist')]}, "view 'wrist' sent 1 rgb frames"),
        ({'images': frames(data='no base64!')}, 'base64'),
        ({'images': frames(data='aGk=')}, 'a PNG or a JPEG'),
        ({'images': frames(data='https://example.org/a.png')}, 'base64'),
        ({'images': frames(kind='depth')}, 'depth frame'),
        ({'images': frames(data=depth())}, '8 bits a channel'),
        ({'images': [*frames(), *frames(data=depth(), kind='depth')]}, '1 depth frames'),
        ({'images': frames(url='x')}, 'url'),
        ({'proprioception': {}}, 'proprioception.joint_positions is missing'),
        ({'proprioception': {'joint_positions': [1.0]}}, 'holds 1 numbers'),
        ({'proprioception': {'joint_positions': [1.0, float('nan')]}}, 'joint_positions[1]'),
        ({'proprioception': {'joint_positions': np.zeros((1, 2))}}, 'joint_positions'),
        ({'proprioception': {'joint_positions': [0, 0], 'speed': [1]}}, 'speed'),
        ({'state': {}}, 'state.force is missing'),
        ({'state': None}, 'state.force is missing'),
        ({'state': {'force': [1, 2, float('inf')]}}, 'state.force[2]'),
        ({'instruction': ' '}, 'instruction'),
        ({'instruction': None}, 'instruction'),
    ],
)
def test_an_observation_that_breaks_the_contract_is_refused(
    arm: Client, changed: dict[str, Any], said: str
) -> None:
    answer = arm.act(observation(**changed))
    assert (answer.status, answer.code) == (400, 'invalid_request')
    assert said in answer.body['detail']
    posted = arm.observe('e', {0: observation(**changed)})
    assert (posted.status, posted.code) == (400, 'invalid_request')


@pytest.mark.parametrize('kind', ['JPEG', 'PNG'])
def test_a_frame_of_another_size_is_refused_with_a_hint_how_to_fit_it(
    arm: Client, kind: str
) -> None:
    answer = arm.act(observation(images=frames(data=image(9, 6, kind))))
    assert answer.status == 400
    assert answer.body['details'] == {
        'view': 'front',
        'sizes': {'sent': [9, 6], 'declared': [8, 6]},
    }
    assert "resize='pad'" in answer.body['hint']


@pytest.mark.parametrize('inputs', [None, 'text', [1], b'bytes'])
def test_inputs_that_are_no_observation_are_refused(arm: Client, inputs: Any) -> None:
    assert arm.act(inputs).code == 'invalid_request'


def test_a_view_with_depth_and_history_sends_both_kinds() -> None:
    policy = Arm()
    policy.observation = ObservationContract(
        cameras={'front': Camera(width=8, height=6, depth=True)}, history=2, instruction=False
    )
    both = [*frames(2), *frames(2, data=depth(), kind='depth')]
    with serving(policy) as client:
        assert client.act(observation(images=both, instruction='')).status == 200
        short = client.act(observation(images=both[:3]))
        small = client.act(observation(images=[*both[:3], *frames(data=depth(4), kind='depth')]))
    assert '1 depth frames' in short.body['detail']
    assert short.body['details']['frames'] == {'sent': {'rgb': 2, 'depth': 1}, 'declared': 2}
    assert small.body['details']['sizes']['sent'] == [4, 6]


def test_a_contract_of_actions_alone_leaves_the_inputs_to_the_policy() -> None:
    policy = Arm()
    del policy.observation
    with serving(policy) as client:
        assert client.act({'anything': 1}).outputs['action_dim'] == 2
        old = client.ask('act', {'observation': {'anything': 1}})
    assert old.code == 'invalid_request'
    assert policy.reads == [{'anything': 1}]


def test_a_body_of_version_1_is_answered_under_its_own_name() -> None:
    with serving(Arm()) as client:
        answer = client.ask('act', {'observation': observation()})
    assert answer.body['action_chunk']['robot'] == 'two_link'


def test_binary_frames_reach_the_policy_as_the_json_they_stand_for() -> None:
    policy = Arm()
    with served(policy) as url:
        with client_of(url) as client:
            client.connect()
        packed = pack_frames({'inputs': observation()})
        answer = ask(url, 'POST', '/act', packed, FRAMES)
        broken = ask(url, 'POST', '/act', packed[:-1] if packed else b'', FRAMES)
    assert answer.body['outputs']['robot'] == 'two_link'
    assert 'x-seq-frames/1' in answer.headers['X-Seq-Act-Formats']
    assert policy.reads == [observation()]
    assert (broken.status, broken.body['code']) == (400, 'invalid_request')


def test_only_an_arms_policy_announces_binary_frames() -> None:
    class Plain:
        def infer(self, inputs: Any) -> Any:
            return inputs

    with serving(Plain()) as client:
        assert 'x-seq-frames/1' not in client.connect().body['formats']


def test_observations_that_were_posted_are_read_by_an_act_without_inputs() -> None:
    policy = Arm()
    with serving(policy) as client:
        assert client.observe('e', {0: observation()}).body['through'] == 0
        answer = client.ask('act', {'call': 'act', 'episode_id': 'e', 'seq': 1})
    assert answer.outputs['robot'] == 'two_link'
    assert policy.reads == [observation()]


class Two:
    """Drive either of two bodies."""

    embodiments: ClassVar[dict[str, Any]] = {
        'left': {'action': ACTION},
        'right': Embodiment(
            action=ActionContract.model_validate({**ACTION, 'action_dim': 1, 'bounds': None}),
            observation=Arm().observation,
        ),
    }

    def infer(self, inputs: Any, embodiment: str) -> Any:
        return [[0.0] * (2 if embodiment == 'left' else 1)]


def test_a_client_chooses_one_of_several_bodies() -> None:
    with served(Two()) as url, client_of(url) as client:
        while client.ask('connect', {'model': 'm', 'embodiment': 'left'}).code == 'warming':
            continue
        right = client.ask('connect', {'model': 'm', 'embodiment': 'right'}).body
        assert right['embodiment'] == 'right'
        assert right['action']['action_dim'] == 1
        left = client.act({'anything': 1}, embodiment='left')
        assert left.outputs['action_dim'] == 2
        assert client.act({'anything': 1}, embodiment='right').code == 'invalid_request'
        assert client.act(observation(), embodiment='right').outputs['action_dim'] == 1
        none = client.ask('connect', {'model': 'm'})
        told = ask(url, 'POST', '/v1/act/connect', {'model': 'm', 'embodiment': 'right'})
    assert (none.code, none.body['details']) == (
        'invalid_request',
        {'embodiments': ['left', 'right']},
    )
    assert told.body['embodiment'] == 'right'


@pytest.mark.parametrize(
    ('declared', 'said'),
    [
        ({'actions': Actions(hz=10)}, 'robot-arm contract'),
        ({'embodiments': Two.embodiments}, 'embodiments'),
        ({'action': {**ACTION, 'action_dim': 0, 'bounds': None}}, 'action_dim'),
        ({'action': {**ACTION, 'action_space': 'sideways'}}, 'ActionContract'),
        ({'embodiments': {'left': {}}, 'action': None, 'observation': None}, 'left'),
    ],
)
def test_a_contract_that_contradicts_itself_is_refused_at_load(
    declared: dict[str, Any], said: str
) -> None:
    policy = Arm()
    for name, value in declared.items():
        setattr(policy, name, value)
    with pytest.raises(PolicyRefused, match=said):
        Policy(policy).load()

"""A robot arm's contract on the robot's side: what it is sent, and how its chunks play."""

from __future__ import annotations

import base64
import io
from types import SimpleNamespace
from typing import Any

import numpy as np
from PIL import Image
import pytest
from seq_harness.contract import ActionContract, Observation, ObservationContract
from seq_harness.contract.connect import WorkerDeclaration
from seq_harness.inputs import Inputs
from seq_harness.pipeline import Pipeline
from seq_harness.pipeline.arm_actions import ContractRefused
from seq_harness.playback.channels import ColumnsRefused
from seq_harness.playback.chunk import ChunkRefused
from seq_harness.playback.uplink import Step
from support.robots import Bench, joint_state, settings_of
from worker.worker_arm import ACTION, Arm
from worker.worker_policies import serving

CHUNK: dict[str, Any] = {
    'robot': 'two_link',
    'action_space': 'joint_absolute',
    'action_dim': 2,
    'control_frequency_hz': 20,
    'steps': [{'index': 1, 'values': [0.03, 0.04]}, {'index': 0, 'values': [0.01, 0.02]}],
    'covers_seconds': 0.1,
}
CAMERA = {
    'input_names': ['state', 'front'],
    'inputs__front__topic': 'image',
    'inputs__front__type': 'image',
}
READS: dict[str, Any] = {
    'cameras': {'front': {'width': 8, 'height': 6, 'resize': 'pad', 'filter': 'bilinear'}},
    'proprio': {'joint_positions': 2},
}


def declared(
    observation: dict[str, Any] | None = None, columns: list[str] | None = None, **action: Any
) -> WorkerDeclaration:
    return WorkerDeclaration(
        instance='one',
        action=ActionContract.model_validate({**ACTION, 'bounds': None, **action}),
        observation=ObservationContract.model_validate(observation) if observation else None,
        columns=columns,
    )


def chunk_of(answer: Any, declaration: WorkerDeclaration | None = None) -> Any:
    """Return what the harness makes of an answer."""
    bench = Bench(declaration=declaration or declared())
    bench.scope.infer = lambda step, plan=None: answer  # type: ignore[method-assign]
    bench.begin()
    return bench.works[-1]()


def rows_of(chunk: Any) -> list[list[float]]:
    return [row.commands['arm'].tolist() for row in chunk.rows]


def test_the_steps_of_a_chunk_play_by_index_at_the_contracts_rate() -> None:
    chunk = chunk_of(CHUNK)
    assert rows_of(chunk) == [[0.01, 0.02], [0.03, 0.04]]
    assert [row.offset_ns for row in chunk.rows] == [0, 50_000_000]
    assert chunk.end_ns == 100_000_000


def test_a_chunk_is_cut_at_its_own_horizon_and_may_end_the_episode() -> None:
    chunk = chunk_of({**CHUNK, 'open_loop_horizon': 1, 'end': 'done'})
    assert rows_of(chunk) == [[0.01, 0.02]]
    assert chunk.end_reason == 'done'
    assert chunk_of({**CHUNK, 'steps': [], 'end': 'done'}).rows == ()
    assert chunk_of(None) is None


def test_the_reason_of_a_policy_to_end_is_one_line_of_200_characters() -> None:
    assert (
        chunk_of({**CHUNK, 'end': '\x1b[2Jdone\nand more'}).end_reason == r'\x1b[2Jdone\nand more'
    )
    assert len(chunk_of({**CHUNK, 'end': 'x' * 5000}).end_reason) == 200


@pytest.mark.parametrize(
    ('changed', 'said'),
    [
        ({'steps': [{'index': 0, 'values': [1.0]}]}, '2 columns'),
        ({'steps': [{'index': 2, 'values': [1.0, 1.0]}]}, r'indices \[2\]'),
        ({'steps': [{'index': 0, 'values': ['a', 1]}]}, 'ActionChunk'),
        ({'steps': None}, 'ActionChunk'),
        ({'action_space': 'joint_delta'}, 'action_space'),
        ({'control_frequency_hz': 10}, 'control_frequency_hz'),
        ({'robot': 'other'}, 'robot'),
        ({'action_dim': 3}, 'action_dim'),
        ({'open_loop_horizon': 0}, 'horizon'),
    ],
)
def test_a_chunk_that_breaks_the_contract_is_refused(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(ChunkRefused, match=said):
        chunk_of({**CHUNK, **changed})


@pytest.mark.parametrize('answer', [[[0.0, 0.0]], {'actions': [[0.0, 0.0]]}, 'rows'])
def test_rows_without_a_chunk_are_refused(answer: Any) -> None:
    with pytest.raises(ChunkRefused, match='ActionChunk'):
        chunk_of(answer)


def test_limits_are_the_stricter_of_the_contract_and_the_configuration() -> None:
    contract = declared(bounds=[(-0.5, 2.0), (-3.0, 0.25)], max_delta=[0.1, 1.0])
    text = Pipeline(settings_of(), contract).describe()
    assert 'j1 in [-0.5, 1]' in text
    assert 'j2 in [-1, 0.25]' in text
    bench = Bench(declaration=contract)
    bench.begin()
    observation = bench.pipeline.spec.observe(bench.inputs.snapshot(), bench.clock.now, '')
    hand = bench.pipeline.by_hand()
    hand.check({'arm': np.array([0.0, 0.0])}, observation, bench.clock.now)
    with pytest.raises(ValueError, match='j2'):
        hand.check({'arm': np.array([0.0, 0.3])}, observation, bench.clock.now + 1)


def test_columns_that_the_policy_names_are_found_by_name() -> None:
    contract = declared(columns=['j2', 'j1'], bounds=[(-0.25, 0.25), (-0.5, 0.5)])
    assert 'j1 in [-0.5, 0.5]' in Pipeline(settings_of(), contract).describe()
    assert rows_of(chunk_of(CHUNK, contract))[0] == [0.02, 0.01]
    with pytest.raises(ColumnsRefused, match='j1'):
        Pipeline(settings_of(), declared(columns=['j2', 'j3']))


@pytest.mark.parametrize(
    ('action', 'said'),
    [
        ({'action_dim': 3}, '3 dimensions'),
        ({'action_space': 'joint_delta'}, "joint_delta .* 'delta' .* 'position'"),
        ({'action_space': 'joint_velocity'}, "'velocity'"),
        ({'action_space': 'ee_absolute'}, 'ee_absolute .* no channel'),
        ({'action_space': 'ee_delta'}, 'ee_delta .* no channel'),
        ({'bounds': [(2, 3), (-1, 1)]}, 'no position of j1'),
    ],
)
def test_what_the_robot_does_not_play_is_refused_by_name(
    action: dict[str, Any], said: str
) -> None:
    with pytest.raises(ContractRefused, match=said):
        Pipeline(settings_of(), declared(**action))


def test_deltas_play_through_a_channel_of_deltas_alone() -> None:
    settings = settings_of(channels__arm__kind='delta', channels__arm__delta_of='previous')
    contract = declared(action_space='joint_delta', bounds=[(-0.01, 0.01)] * 2)
    assert 'j1 in [-1, 1]' in Pipeline(settings, contract).describe()
    with pytest.raises(ContractRefused, match="kind is 'delta'"):
        Pipeline(settings, declared())


def image(width: int = 16, height: int = 12) -> SimpleNamespace:
    """Return a message with the fields of a sensor_msgs/Image."""
    return SimpleNamespace(
        header=joint_state([]).header,
        encoding='rgb8',
        width=width,
        height=height,
        step=3 * width,
        is_bigendian=0,
        data=bytes([90, 120, 30]) * (width * height),
    )


def sent(pipeline: Pipeline, instruction: str = 'stack') -> dict[str, Any]:
    """Return what the policy is sent of one image and one joint state."""
    inputs = Inputs(settings_of(**CAMERA).inputs)
    inputs.put('front', image(), now_ns=0, ros_now_ns=0)
    inputs.put('state', joint_state([0.1, 0.2]), now_ns=0, ros_now_ns=0)
    observation = pipeline.spec.observe(inputs.snapshot(), 0, instruction)
    return dict(pipeline.layers.encode(Step(0, 0, observation).observation))


def test_an_observation_is_laid_out_as_the_preset_wants_it() -> None:
    told = Observation.model_validate(sent(Pipeline(settings_of(**CAMERA), declared(READS))))
    assert told.instruction == 'stack'
    assert told.proprioception.joint_positions == pytest.approx([0.1, 0.2])
    assert [(frame.view, frame.kind) for frame in told.images] == [('front', 'rgb')]
    with Image.open(io.BytesIO(base64.b64decode(told.images[0].data))) as frame:
        assert (frame.format, frame.size) == ('JPEG', (8, 6))


def test_a_field_of_the_state_is_the_key_of_the_same_name() -> None:
    settings = settings_of(
        **CAMERA,
        inputs__state__key='arm_state',
    )
    told = sent(Pipeline(settings, declared({**READS, 'state': {'arm_state': 2}})))
    assert told['state'] == {'arm_state': pytest.approx([0.1, 0.2])}


def test_a_warm_up_says_something_where_no_instruction_is_set() -> None:
    blank = dict(Pipeline(settings_of(**CAMERA), declared(READS)).blank(''))
    assert Observation.model_validate(blank).instruction
    assert blank['proprioception'] == {'joint_positions': [0.0, 0.0]}


@pytest.mark.parametrize(
    ('reads', 'said'),
    [
        ({'cameras': {'wrist': {'width': 8, 'height': 6}}}, "'wrist', which no input gives"),
        ({'proprio': {'gripper': 1}}, "'gripper', which no input gives"),
        ({'proprio': {'joint_velocities': 2}}, "'joint_velocities'"),
        ({'proprio': {'joint_positions': 3}}, '3 numbers of joint_positions'),
        ({'state': {'force': 3}}, "'force'"),
        ({'history': 2}, '2 frames of each view'),
        ({'cameras': {'front': {'width': 8, 'height': 6, 'depth': True}}}, 'depth'),
        ({'cameras': {}}, 'without cameras'),
    ],
)
def test_what_the_robot_does_not_observe_is_refused_by_name(
    reads: dict[str, Any], said: str
) -> None:
    with pytest.raises(ContractRefused, match=said):
        Pipeline(settings_of(**CAMERA), declared({**READS, **reads}))


def test_an_instruction_that_is_read_must_be_sent() -> None:
    settings = settings_of(**CAMERA, instruction_key='')
    with pytest.raises(ContractRefused, match='instruction_key'):
        Pipeline(settings, declared(READS))
    told = sent(Pipeline(settings, declared({**READS, 'instruction': False})))
    assert told['instruction'] == ''


def test_a_worker_takes_what_the_robot_sends_and_its_chunk_plays() -> None:
    policy = Arm([[0.01, 0.02], [5.0, 0.04]])
    policy.observation = ObservationContract.model_validate(READS)
    with serving(policy) as client:
        declaration = WorkerDeclaration.model_validate(client.connect().body)
        pipeline = Pipeline(settings_of(**CAMERA), declaration)
        answer = client.act(sent(pipeline))
    assert 'clipped' in answer.body['warnings'][0]
    assert rows_of(chunk_of(answer.outputs, declared())) == [
        [0.01, 0.02],
        [1.0, 0.04],
    ]

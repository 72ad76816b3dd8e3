"""What a positronic server answers, and what it wants done on the robot's side."""

from __future__ import annotations

from collections.abc import Iterator
import io
import time
from typing import Any

import numpy as np
from PIL import Image
import pytest
from seq_harness.client.positronic_stack import StackRefused
from seq_harness.playback.uplink import PolicyError
from servers.positronic_scripted import (
    asked,
    command,
    JOINTS,
    Meeting,
    meetings,
    META,
    SCHEDULE,
    step,
)

IMAGE = np.full((48, 64, 3), 100, np.uint8)


@pytest.fixture
def meeting() -> Iterator[Meeting]:
    with meetings() as met:
        yield met


def test_typed_commands_and_grips_become_rows_and_the_end_marker_none(meeting: Meeting) -> None:
    policy = meeting.serves([command(0), command(1), {'timestamp': 0.1}])
    outputs = asked(policy)
    np.testing.assert_allclose(outputs['actions'], [[*JOINTS, 0.5]] * 2)
    assert any('joint_pos, 7 columns' in told for told in meeting.told)


def test_two_arms_stand_in_the_order_of_their_names(meeting: Meeting) -> None:
    action = {
        f'{name}.{arm}': value
        for arm, joint in (('right', 2.0), ('left', 1.0))
        for name, value in (
            ('robot_command', {'type': 'joint_pos', 'positions': [joint]}),
            ('target_grip', joint / 10),
        )
    }
    np.testing.assert_allclose(asked(meeting.serves(action))['actions'], [[1, 0.1, 2, 0.2]])


@pytest.mark.parametrize('seed', range(8))
def test_a_pose_becomes_a_unit_quaternion(meeting: Meeting, seed: int) -> None:
    quaternion = np.random.default_rng(seed).normal(size=4)
    quaternion[seed % 4] += 3.0
    quaternion /= np.linalg.norm(quaternion)
    pose = np.concatenate([[0.1, 0.2, 0.3], matrix_of(quaternion).reshape(-1)])
    told = {'type': 'cartesian_pos', 'pose': pose.tolist()}
    row = asked(meeting.serves([{'robot_command': told}]))['actions'][0]
    np.testing.assert_allclose(row[:3], [0.1, 0.2, 0.3])
    np.testing.assert_allclose(row[3:] * np.sign(row[3:] @ quaternion), quaternion, atol=1e-6)


def matrix_of(quaternion: Any) -> Any:
    x, y, z, w = quaternion
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )


@pytest.mark.parametrize(
    ('result', 'told'),
    [
        ([{'robot_command': {'type': 'reset'}}], "'reset'; no channel plays it"),
        ([{'robot_command': {'type': 'cartesian_pos', 'pose': [1.0] * 12}}], 'no rotation'),
        ([{'robot_command': {'type': 'cartesian_pos', 'pose': [1.0] * 7}}], 'has 7 values'),
        ([{'move': 1}], r"this one has \['move'\]"),
        ([command(0), {'action': [1.0]}], 'one kind of command a chunk'),
        ([command(0), {**command(1), 'target_grip': None}], r'they have \[6, 7\] values'),
        ([command(0), command(3)], r'stamped 0\.15 s'),
        ({'left': [[1.0]]}, r"this one has \['left'\]"),
    ],
)
def test_what_is_not_told_into_rows_is_refused_by_name(
    meeting: Meeting, result: Any, told: str
) -> None:
    with pytest.raises(PolicyError, match=told):
        asked(meeting.serves(result))


def test_stamps_without_a_declared_rate_are_refused(meeting: Meeting) -> None:
    policy = meeting.serves([command(0), command(1)], meta={'local_stack': SCHEDULE})
    with pytest.raises(PolicyError, match='declares no rate'):
        asked(policy)


def test_commands_of_another_kind_than_before_are_refused(meeting: Meeting) -> None:
    policy = meeting.serves([command(0)], [command(0, type='joint_delta', velocities=JOINTS)])
    policy.connect()
    scope = policy.open_episode(time.monotonic_ns)
    scope.infer(step())
    with pytest.raises(PolicyError, match='joint_delta after joint_pos'):
        scope.infer(step())


def test_the_declared_horizon_and_layers_are_obeyed(meeting: Meeting) -> None:
    layers = [
        {'name': 'chunked_schedule', 'version': 3, 'args': {'fps': 20}},
        {
            'par': [
                {'name': 'restrict_image_size', 'args': {'width': 32, 'height': 32}},
                {'name': 'metadata', 'version': 'latest', 'args': {'values': {'a': 1}}},
            ]
        },
        {'name': 'action_horizon', 'args': {'horizon_sec': 0.51}},
    ]
    policy = meeting.serves([command(0)], meta={'local_stack': {'seq': layers}})
    declared = policy.connect().actions
    assert (declared.hz, declared.open_loop_horizon) == (20.0, 11)
    policy.open_episode(time.monotonic_ns).infer(step(front=IMAGE))
    assert meeting.server.next()['observation']['front'][b'shape'] == [24, 32, 3]
    assert 'the server wants chunked_schedule: the player' in meeting.told


def test_images_are_compressed_where_the_server_wants_it(meeting: Meeting) -> None:
    policy = meeting.serves([command(0)], meta={**META, 'compress_images': True})
    asked(policy, front=IMAGE)
    front = meeting.server.next()['observation']['front']
    assert (front[b'__jpeg__'], front[b'ndim']) == (True, 3)
    seen = np.asarray(Image.open(io.BytesIO(front[b'frames'][0])))
    assert np.abs(seen.astype(int) - IMAGE).max() < 4


def test_the_keys_of_the_server_hold_what_the_user_says(meeting: Meeting) -> None:
    keys = '{"robot_state.q": ["state"], "task": "prompt"}'
    policy = meeting.serves([command(0)], server={'server_keys': keys, 'server_columns': ['a']})
    assert policy.connect().columns == ['a']
    policy.open_episode(time.monotonic_ns).infer(step(prompt='fold', more=1))
    assert set(meeting.server.next()['observation']) == {'robot_state.q', 'task'}


def test_g32_an_observation_too_large_is_told_with_its_size_and_the_limit(
    meeting: Meeting,
) -> None:
    policy = meeting.serves()
    with pytest.raises(PolicyError, match=r'takes 18000[0-9]{3} bytes.* at most 16777216'):
        asked(policy, front=np.zeros((2000, 3000, 3), np.uint8))


@pytest.mark.parametrize(
    ('node', 'told'),
    [
        ({'name': 'temporal_stack', 'args': {'keys': ['a']}}, "wants the layer 'temporal_stack'"),
        ({'name': 'chunked_schedule', 'version': 4}, 'version 4 of chunked_schedule; known are 1'),
        ({'name': 'chunked_schedule', 'args': {'overlap': 2}}, 'overlap'),
        ({'name': 'chunked_schedule', 'args': {'fps': 10}}, '10 and 20 rows/s'),
        ({'name': 'chunked_schedule', 'args': {'fps': -1}}, 'above 0'),
        ({'seq': []}, 'a list of layers was expected'),
        ('chunked_schedule', 'must be a mapping'),
    ],
)
def test_a_layer_that_this_robot_lacks_is_refused_at_connect(
    meeting: Meeting, node: Any, told: str
) -> None:
    policy = meeting.serves(meta={**META, 'local_stack': node})
    with pytest.raises(StackRefused, match=told):
        policy.connect()

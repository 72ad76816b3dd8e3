"""The policies that come with the worker, over the wire."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from seq_harness.worker.policies.hold import Hold
from seq_harness.worker.policies.scripted import Scripted
from seq_harness.worker.policies.sine import Sine
from seq_harness.worker.running import served
from worker.worker_wire import Client, client_of

POSE = np.array([0.1, -0.5, 0.3, 0.0, 1.2, -2.0], np.float32)


def ask(client: Client, state: Any, seq: int = 0, episode: str = 'e') -> Any:
    inputs = {'state': state, 'prompt': 'stay'}
    return client.act(inputs, episode_id=episode, seq=seq).outputs['actions']


def test_hold_answers_the_joint_positions_it_reads() -> None:
    with served(Hold) as url, client_of(url) as client:
        declared = client.connect().body
        rows = ask(client, POSE)
    assert declared['columns'] == [f'joint_{i}' for i in range(1, 7)]
    assert declared['actions'] == {'key': 'actions', 'hz': 20.0, 'open_loop_horizon': 16}
    assert (rows.shape, rows.dtype) == ((16, 6), np.float32)
    assert (rows == POSE).all()


def test_hold_of_any_number_of_joints_names_no_columns() -> None:
    with served(Hold(joints=0)) as url, client_of(url) as client:
        assert 'columns' not in client.connect().body
        assert ask(client, POSE[:3]).shape == (16, 3)


def test_a_state_of_other_joints_than_declared_is_told() -> None:
    with served(Hold) as url, client_of(url) as client:
        client.connect()
        answer = client.act({'state': POSE[:5]})
    assert answer.code == 'policy_error'
    assert 'joints=' in answer.body['detail']


def test_sine_goes_on_from_step_to_step_about_the_first_pose() -> None:
    with served(Sine) as url, client_of(url) as client:
        client.connect()
        first = ask(client, POSE)
        second = ask(client, POSE + 1, seq=16)
    assert first.dtype == np.float32
    np.testing.assert_allclose(first[0], POSE, atol=1e-6)
    rows = np.concatenate([first, second])
    expected = 0.05 * np.sin(2 * math.pi * np.arange(32) / 80)
    np.testing.assert_allclose(rows - POSE, np.tile(expected[:, None], 6), atol=1e-6)


def test_scripted_answers_its_chunks_in_turn_in_every_episode() -> None:
    policy = Scripted([{'actions': [[0]]}, {'actions': [[1]], 'end': 'done'}])
    with served(policy) as url, client_of(url) as client:
        client.connect()
        for episode in ('a', 'b'):
            turns = [client.act(1, episode_id=episode, seq=n).outputs for n in range(3)]
            assert [turn['actions'] for turn in turns] == [[[0]], [[1]], [[1]]]
            assert turns[1]['end'] == 'done'
    assert policy.begun == ['a', 'b']


def test_scripted_fails_where_its_script_or_an_act_says_so() -> None:
    with served(Scripted(errors={1: 'as told'})) as url, client_of(url) as client:
        client.connect()
        statuses = [client.act(1, episode_id='e', seq=n).status for n in range(3)]
        asked = client.act(1, params={'error': 'now'})
    assert statuses == [200, 500, 200]
    assert asked.body['details']['exception'] == {'type': 'ScriptedFailure', 'message': 'now'}

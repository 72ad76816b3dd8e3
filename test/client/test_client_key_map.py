"""A robot's observation in a server's keys, and its answer as rows."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from seq_harness.client.key_map import KeyMap, KeyMapRefused
from seq_harness.client.key_reading import read_key_map
from seq_harness.playback.session import Observation
from seq_harness.playback.uplink import PolicyError

CAMERA = {'width': 4, 'height': 2, 'resize': 'pad', 'filter': 'bilinear'}

SEEN: Observation = {
    'front': np.arange(24, dtype=np.uint8).reshape(2, 4, 3),
    'arm': np.array([1, 2], np.float32),
    'hand': np.array([3], np.float64),
    'prompt': 'pour',
}


def of(keys: Any = None, **server: Any) -> KeyMap:
    said = {} if keys is None else {'server_keys': json.dumps(keys)}
    return read_key_map({**said, **server})


def streams(key_map: KeyMap) -> dict[str, Any]:
    observations = key_map.declaration().observations
    return dict((observations.streams if observations else None) or {})


def test_without_entries_the_observation_is_sent_as_it_is() -> None:
    assert of().request(SEEN) == dict(SEEN)


def test_a_key_holds_what_its_own_key_holds_and_nothing_else_is_sent() -> None:
    made = of({'observation/prompt': 'prompt'}).request(SEEN)
    assert made == {'observation/prompt': 'pour'}


def test_vectors_are_joined_in_the_order_that_is_given() -> None:
    made = of({'state': ['hand', 'arm']}).request(SEEN)['state']
    assert made.tolist() == [3, 1, 2]
    assert made.dtype == np.float32


def test_a_vector_has_the_type_that_is_asked_for() -> None:
    made = of({'state': {'from': 'arm', 'dtype': 'float64', 'length': 2}}).request(SEEN)
    assert made['state'].dtype == np.float64


def test_nested_keys_are_nested_and_frames_may_have_their_channels_first() -> None:
    keys = {'images': {'top': {'from': 'front', 'layout': 'chw'}, 'wide': 'front'}}
    images = of(keys).request(SEEN)['images']
    assert images['top'].shape == (3, 2, 4)
    assert images['top'].flags.c_contiguous
    assert np.array_equal(images['top'].transpose(1, 2, 0), images['wide'])


def test_own_keys_and_the_sizes_of_their_frames_are_declared() -> None:
    declared = streams(
        of({'image': {'from': 'front', 'camera': CAMERA}, 'state': ['arm', 'hand']})
    )
    assert set(declared) == {'front', 'arm', 'hand'}
    assert (declared['front'].camera.width, declared['front'].camera.height) == (4, 2)
    assert declared['arm'].camera is None


def test_one_camera_in_two_sizes_is_refused() -> None:
    wide = {**CAMERA, 'width': 8}
    keys = {'a': {'from': 'front', 'camera': CAMERA}, 'b': {'from': 'front', 'camera': wide}}
    with pytest.raises(KeyMapRefused, match="'front' is wanted in two sizes"):
        of(keys).declaration()


def test_keys_are_put_over_the_preset_and_null_leaves_one_out() -> None:
    keys = {'observation/wrist_image': None, 'observation/state': ['arm', 'hand']}
    made = of(keys, server_preset='libero')
    assert set(streams(made)) == {'front', 'arm', 'hand', 'prompt'}
    assert made.columns == ('x', 'y', 'z', 'rx', 'ry', 'rz', 'gripper')


def test_columns_that_are_set_are_those_of_the_rows() -> None:
    declaration = of(server_preset='libero', server_columns=['a', 'b']).declaration()
    assert declaration.columns == ['a', 'b']
    assert of().declaration().columns is None


@pytest.mark.parametrize('preset', ['droid', 'libero', 'aloha'])
def test_every_preset_declares_each_camera_as_openpi_reads_it(preset: str) -> None:
    made = of(server_preset=preset)
    cameras = [stream.camera for stream in streams(made).values() if stream.camera is not None]
    assert cameras
    assert {(camera.width, camera.height) for camera in cameras} == {(224, 224)}


@pytest.mark.parametrize(
    ('keys', 'said'),
    [
        ({'state': ['arm', 'gone']}, r"'state' is made of \['arm', 'gone'\]; the robot has"),
        ({'state': {'from': 'arm', 'length': 3}}, r"3 numbers .* 'arm' float32\[2\]"),
        ({'state': ['arm', 'prompt']}, 'numbers or a frame'),
        ({'state': ['arm', 'front']}, 'vectors were expected'),
        ({'image': {'from': 'arm', 'camera': CAMERA}}, 'one frame'),
        ({'image': ['front', 'arm']}, 'one frame'),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_the_robot_does_not_have_names_both_sides(keys: Any, said: str) -> None:
    with pytest.raises(KeyMapRefused, match=said):
        of(keys).request(SEEN)


@pytest.mark.parametrize(
    'text',
    [
        '[1]',
        '{',
        '{"a": 1}',
        '{"a": []}',
        '{"a": {"from": "b", "invented": 1}}',
        '{"a": {"from": "b", "camera": {"width": 0, "height": 2}}}',
        '{"a": {"from": "b", "layout": "wch"}}',
    ],
)
def test_a_map_that_is_none_is_refused_by_the_name_of_its_parameter(text: str) -> None:
    with pytest.raises(KeyMapRefused, match='server_keys'):
        read_key_map({'server_keys': text})


def test_an_unknown_preset_is_refused_naming_those_that_are_known() -> None:
    with pytest.raises(KeyMapRefused, match=r'aloha.*droid.*libero'):
        of(server_preset='bridge')


ROWS = np.zeros((2, 3), np.float32)


@pytest.mark.parametrize('answer', [ROWS, {'actions': ROWS}, {'action': ROWS, 'state': 1}])
def test_rows_are_found_in_every_form_that_servers_answer(answer: Any) -> None:
    assert np.array_equal(of().answer(answer)['actions'], ROWS)


def test_rows_under_a_key_of_their_own_are_found_there_alone() -> None:
    made = of(server_rows_key='chunk')
    assert np.array_equal(made.answer({'chunk': ROWS, 'actions': 0})['actions'], ROWS)
    with pytest.raises(PolicyError, match=r"'chunk'.*\['actions'\]"):
        made.answer({'actions': ROWS})
    with pytest.raises(PolicyError, match='ndarray'):
        made.answer(ROWS)


def test_an_answer_ends_the_episode_by_a_text_and_by_nothing_else() -> None:
    assert of().answer({'actions': ROWS, 'end': 'done'})['end'] == 'done'
    assert 'end' not in of().answer({'actions': ROWS, 'end': 0.5})


@pytest.mark.parametrize('answer', [None, 'text', {'state': ROWS}], ids=repr)
def test_an_answer_without_rows_names_what_came(answer: Any) -> None:
    with pytest.raises(PolicyError, match='rows were expected'):
        of().answer(answer)


def test_padded_rows_are_cut_to_the_columns_only_where_their_width_is_declared() -> None:
    wide = np.arange(64).reshape(2, 32)
    made = of(server_columns=['a', 'b', 'c'], server_width=32)
    assert made.answer({'actions': wide})['actions'].tolist() == [[0, 1, 2], [32, 33, 34]]
    assert made.answer(wide[:, :4])['actions'].shape == (2, 4), 'for the width check to refuse'
    assert of(server_columns=['a', 'b', 'c']).answer(wide)['actions'].shape == (2, 32)


@pytest.mark.parametrize('columns', [[], ['a', 'b', 'c']])
def test_padding_without_columns_to_cut_to_is_refused(columns: list[str]) -> None:
    with pytest.raises(KeyMapRefused, match='server_width'):
        of(server_columns=columns, server_width=3)

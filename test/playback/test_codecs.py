"""Codecs: each converts there and back, and refuses what it cannot convert."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from seq_harness.playback.chunk import Chunk, ChunkRefused, STAMP
from seq_harness.playback.codec_parts import CodecRefused
from seq_harness.playback.codecs import FrameChange, GripperMap, PoseForm, Scale, Units
from seq_harness.playback.layers import Codec, Layers, Misplaced
from seq_harness.playback.naming import Join, Rename, Select, Split
from seq_harness.playback.poses import FORMS, matrix_of, pose_of
from seq_harness.playback.scope import stepped
from seq_harness.playback.uplink import Step

UNREAD = dict.fromkeys(('front', 'grip', 'pose', 'state'))


def decoded(codec: Codec, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the robot is commanded of one row of the policy."""
    answer = codec.wrap_infer(stepped(lambda seen: row))(Step(0, 0, UNREAD))
    return {name: _plain(value) for name, value in answer.items()}


def seen(codec: Codec, observation: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the policy sees of an observation."""
    got: list[Any] = []
    infer = codec.wrap_infer(stepped(lambda observation: got.append(observation)))
    infer(Step(0, 0, observation))
    return {key: _plain(value) for key, value in got[0].items()}


def _plain(value: Any) -> Any:
    return np.round(value, 9).tolist() if isinstance(value, np.ndarray) else value


def test_select_keeps_the_named_channels_and_keys() -> None:
    codec = Select(['arm'], ['state'])
    assert decoded(codec, {'arm': 1, 'base': 2}) == {'arm': 1}
    assert seen(codec, {'state': 1, 'wrist': 2}) == {'state': 1}
    assert not codec.reversible
    assert decoded(Select(keys=['state']), {'arm': 1}) == {'arm': 1}


def test_rename_gives_each_side_its_own_names() -> None:
    codec = Rename({'action': 'arm'}, {'front': 'image_0'})
    assert decoded(codec, {'action': 1, 'grip': 2}) == {'arm': 1, 'grip': 2}
    assert seen(codec, {'front': 1, 'state': 2}) == {'image_0': 1, 'state': 2}
    assert codec.encode_row({'arm': 1, 'grip': 2}) == {'action': 1, 'grip': 2}


def test_rename_may_swap_but_never_overwrites() -> None:
    assert decoded(Rename({'a': 'b', 'b': 'a'}), {'a': 1, 'b': 2}) == {'b': 1, 'a': 2}
    with pytest.raises(ChunkRefused, match="makes 'b', which is there already"):
        decoded(Rename({'a': 'b'}), {'a': 1, 'b': 2})
    with pytest.raises(CodecRefused, match="makes 'b', which is there already"):
        seen(Rename(keys={'a': 'b'}), {'a': 1, 'b': 2})


def test_split_gives_columns_to_channels_and_back() -> None:
    codec = Split('actions', {'arm': [1, 0], 'grip': [2]})
    assert decoded(codec, {'actions': [1, 2, 3]}) == {'arm': [2, 1], 'grip': [3]}
    assert codec.reversible
    back = codec.encode_row({'arm': np.array([2.0, 1.0]), 'grip': np.array([3.0])})
    assert _plain(back['actions']) == [1, 2, 3]
    assert not Split('actions', {'arm': [0], 'grip': [2]}).reversible
    with pytest.raises(ChunkRefused, match="takes column 2 of 'actions', which has 2 columns"):
        decoded(codec, {'actions': [1, 2]})


def test_join_gives_the_policy_one_vector_of_several() -> None:
    codec = Join('state', ['arm', 'grip'])
    observation = {'arm': np.array([1.0, 2.0]), 'grip': 3.0, 'text': 'go'}
    assert seen(codec, observation) == {'text': 'go', 'state': [1, 2, 3]}


def test_scale_multiplies_shifts_and_turns_signs_there_and_back() -> None:
    codec = Scale(['arm'], ['state'], factor=[2, -1], offset=[0.5, 0])
    assert decoded(codec, {'arm': [1, 1]}) == {'arm': [2.5, -1]}
    assert seen(codec, {'state': np.array([2.5, -1])}) == {'state': [1, 1]}
    with pytest.raises(ChunkRefused, match=r"layer 'scale', channel 'arm':"):
        decoded(codec, {'arm': [1, 2, 3]})
    with pytest.raises(ChunkRefused, match='2 columns were expected, got 1'):
        decoded(codec, {'arm': [1]})


def test_units_convert_the_named_columns_both_ways_and_keep_the_type() -> None:
    codec = Units(['arm'], ['state'], policy='deg', robot='rad', columns=[0])
    assert decoded(codec, {'arm': [180, 180]}) == {'arm': [round(np.pi, 9), 180]}
    state = codec.encode({'state': np.array([np.pi, 1], np.float32)})['state']
    assert state.dtype == np.float32
    assert state.tolist() == [180, 1]


@pytest.mark.parametrize(
    ('policy', 'robot', 'value', 'wanted'),
    [('mm', 'm', 250, 0.25), ('turn', 'deg', 0.5, 180), ('percent', 'fraction', 40, 0.4)],
)
def test_units_know_their_ratio(policy: str, robot: str, value: float, wanted: float) -> None:
    assert decoded(Units(['c'], policy=policy, robot=robot), {'c': [value]}) == {'c': [wanted]}


QUARTER = [0.0, 0.0, np.sqrt(0.5), np.sqrt(0.5)]
"""A quarter turn about z as quat_xyzw."""


@pytest.mark.parametrize(
    ('form', 'rotation'),
    [
        ('quat_xyzw', QUARTER),
        ('quat_wxyz', [QUARTER[3], *QUARTER[:3]]),
        ('rotvec', [0, 0, np.pi / 2]),
        ('rpy', [0, 0, np.pi / 2]),
        ('rot6d', [0, 1, 0, -1, 0, 0]),
    ],
)
def test_every_form_writes_a_quarter_turn_as_it_is_known(form: str, rotation: Any) -> None:
    codec = PoseForm(['tool'], ['pose'], policy=form, robot='quat_xyzw')
    assert decoded(codec, {'tool': [1, 2, 3, *rotation]}) == {
        'tool': pytest.approx([1, 2, 3, *QUARTER])
    }
    assert seen(codec, {'pose': np.array([1, 2, 3, *QUARTER])}) == {
        'pose': pytest.approx([1, 2, 3, *rotation])
    }


def rotations() -> Iterator[Any]:
    """Yield rotations all over, those of every branch of the quaternion among them."""
    random = np.random.default_rng(4)
    for axis in ([1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0]):
        for angle in (0.0, 1e-12, 0.3, np.pi - 1e-9, np.pi):
            yield np.array(axis) / np.linalg.norm(axis) * angle
    for _ in range(50):
        yield random.uniform(-1.7, 1.7, 3)


@pytest.mark.parametrize('form', FORMS)
def test_every_form_comes_back_as_the_same_rotation(form: str) -> None:
    for rotation in rotations():
        matrix = matrix_of(np.array([1, 2, 3, *rotation]), 'rotvec')
        again = matrix_of(pose_of(matrix, form), form)
        assert np.allclose(again, matrix, atol=1e-7), rotation


def test_quaternions_are_written_with_the_real_part_from_zero() -> None:
    for rotation in rotations():
        matrix = matrix_of(np.array([0, 0, 0, *rotation]), 'rotvec')
        assert pose_of(matrix, 'quat_xyzw')[6] >= 0
        assert pose_of(matrix, 'quat_wxyz')[3] >= 0
    turned = PoseForm(['tool'], policy='quat_xyzw', robot='quat_xyzw')
    assert decoded(turned, {'tool': [0, 0, 0, 0, 0, -0.6, -0.8]})['tool'][3:] == pytest.approx(
        [0, 0, 0.6, 0.8]
    )


def test_rpy_straight_up_is_the_same_rotation() -> None:
    for pitch in (np.pi / 2, -np.pi / 2):
        matrix = matrix_of(np.array([0, 0, 0, 0.4, pitch, 0.9]), 'rpy')
        assert np.allclose(matrix_of(pose_of(matrix, 'rpy'), 'rpy'), matrix, atol=1e-7)


def test_a_pose_without_direction_or_of_another_size_is_refused() -> None:
    codec = PoseForm(['tool'], policy='quat_xyzw', robot='rpy')
    with pytest.raises(ChunkRefused, match='some length was expected'):
        decoded(codec, {'tool': [0.0] * 7})
    with pytest.raises(ChunkRefused, match=r'has 7 numbers; got shape \(6,\)'):
        decoded(codec, {'tool': [0.0] * 6})


def test_r75_a_frame_change_moves_poses_there_and_back() -> None:
    codec = FrameChange(
        ['tool'], ['pose'], form='quat_xyzw', transform=[1, 0, 0, *QUARTER]
    )  # fmt: skip
    moved = decoded(codec, {'tool': [1, 0, 0, 0, 0, 0, 1]})['tool']
    assert moved == pytest.approx([1, 1, 0, *QUARTER])
    assert seen(codec, {'pose': np.array(moved)})['pose'] == pytest.approx([1, 0, 0, 0, 0, 0, 1])


def test_r75_two_frame_changes_are_refused() -> None:
    def change() -> FrameChange:
        return FrameChange(['tool'], form='rpy', transform=[0, 0, 0, *QUARTER])

    with pytest.raises(Misplaced, match='more than once'):
        Layers(change(), change())


@pytest.mark.parametrize(
    ('policy', 'robot', 'value', 'wanted'),
    [
        ((0, 1), (0.08, 0.0), 1.0, 0.0),
        ((1, 0), (0.08, 0.0), 1.0, 0.08),
        ((-1, 1), (0, 255), 0.0, 127.5),
        ((1, -1), (255, 0), 0.5, 191.25),
    ],
)
def test_a_gripper_maps_open_and_closed_in_either_direction(
    policy: tuple[float, float], robot: tuple[float, float], value: float, wanted: float
) -> None:
    codec = GripperMap(['grip'], ['grip'], policy=policy, robot=robot)
    assert decoded(codec, {'grip': [value]}) == {'grip': [pytest.approx(wanted)]}
    assert seen(codec, {'grip': np.array([wanted])}) == {'grip': [pytest.approx(value)]}


def test_a_gripper_goes_beyond_its_ends_unless_it_is_told_to_clip_and_then_counts() -> None:
    plain = GripperMap(['grip'], policy=(0, 1), robot=(0, 100))
    clip = GripperMap(['grip'], policy=(0, 1), robot=(0, 100), clip=True, columns=[1])
    assert decoded(plain, {'grip': [1.02]}) == {'grip': [pytest.approx(102)]}
    assert decoded(clip, {'grip': [7, 1.02]}) == {'grip': [7, pytest.approx(100)]}
    assert clip.clipped == {'open': 0, 'closed': 1}


def _unknown_unit() -> Codec:
    return Units(['a'], policy='stone', robot='m')


REFUSED: list[tuple[Callable[[], Codec], str]] = [
    (_unknown_unit, r"expected one of \['cm', .*got 'stone'"),
    (lambda: Units(['a'], policy='deg', robot='m'), "'deg' is angle and 'm' is length"),
    (lambda: Units(policy='deg', robot='rad'), 'name the channels or the keys'),
    (lambda: Units(['a', 'a'], policy='deg', robot='rad'), 'each once'),
    (lambda: Units(['a'], policy='deg', robot='rad', columns=[-1]), 'columns from 0'),
    (lambda: Scale(['a'], factor=[1, 0]), 'must not be 0'),
    (lambda: Scale(['a'], factor=float('nan')), 'finite numbers'),
    (lambda: Scale('arm', factor=2), 'a list of names'),
    (lambda: PoseForm(['a'], policy='euler', robot='rpy'), r"one of the forms .*got 'euler'"),
    (lambda: FrameChange(['a'], form='rpy', transform=[0] * 7), 'some length was expected'),
    (lambda: FrameChange(['a'], form='rpy', transform=[0] * 6), 'has 7 numbers'),
    (lambda: GripperMap(['a'], policy=(1, 1), robot=(0, 1)), r'must be \(open, closed\)'),
    (lambda: GripperMap(['a'], policy=(1,), robot=(0, 1)), r'must be \(open, closed\)'),
    (lambda: Split('a', {}), 'at least one channel'),
    (lambda: Split('a', {'b': [0, 0]}), 'each once'),
    (lambda: Rename({'a': 'c', 'b': 'c'}), 'each once'),
    (lambda: Join('state', []), 'at least one key'),
]


@pytest.mark.parametrize(('make', 'reason'), REFUSED)
def test_a_codec_that_cannot_convert_is_refused_when_it_is_made(
    make: Callable[[], Codec], reason: str
) -> None:
    with pytest.raises(CodecRefused, match=reason):
        make()


def test_finding_19_a_chunk_without_the_channel_is_refused_not_passed_unconverted() -> None:
    codec = Units(['arm'], policy='deg', robot='rad')
    with pytest.raises(ChunkRefused, match=r"converts the channels \['arm'\].*it has \['base'\]"):
        decoded(codec, {'base': [1]})
    with pytest.raises(CodecRefused, match=r"reads the keys \['state'\].*it has \['pose'\]"):
        seen(Units(keys=['state'], policy='deg', robot='rad'), {'pose': 1})


def test_a_row_of_other_channels_only_is_left_as_it_is() -> None:
    codec = Units(['arm'], policy='deg', robot='rad')
    chunk = Chunk.stamped([{'arm': [180.0]}, {STAMP: 0.1, 'grip': [1]}], fps=10)
    answer = codec.wrap_infer(stepped(lambda seen: chunk))(Step(0, 0, {}))
    assert answer.rows[1].commands == {'grip': [1]}
    assert answer.end_ns == chunk.end_ns


@pytest.mark.parametrize('empty', [None, [], Chunk((), 0, 'done')])
def test_finding_10_codecs_take_an_answer_without_rows(empty: Any) -> None:
    for codec in (Units(['arm'], policy='deg', robot='rad'), Split('arm', {'a': [0]})):
        assert codec.wrap_infer(stepped(lambda seen: empty))(Step(0, 0, {})) == empty


class _Counting(Mapping[str, Any]):
    """An observation that notes what is read of it."""

    def __init__(self) -> None:
        self.read: list[str] = []

    def __getitem__(self, key: str) -> Any:
        self.read.append(key)
        return np.zeros(2)

    def __iter__(self) -> Iterator[str]:
        return iter(('front', 'state', 'grip'))

    def __len__(self) -> int:
        return 3


def test_finding_21_encoding_an_observation_reads_nothing_until_it_is_asked_for() -> None:
    observation = _Counting()
    layers = Layers(
        Rename(keys={'front': 'image'}),
        Units(keys=['state'], policy='deg', robot='rad'),
        Join('all', ['state', 'grip']),
        Select(keys=['image', 'all']),
    )
    encoded = layers.encode(observation)
    assert sorted(encoded) == ['all', 'image']
    assert observation.read == []
    assert encoded['all'].tolist() == [0, 0, 0, 0]
    assert observation.read == ['state', 'grip']


def test_codecs_undo_a_plan_in_reverse_order() -> None:
    layers = Layers(
        Split('actions', {'arm': [0], 'grip': [1]}),
    )
    plans: list[Any] = []

    def infer(step: Step, plan: Mapping[str, Any] | None = None) -> Any:
        plans.append(plan)

    up = Layers(Units(['arm'], policy='deg', robot='rad'), layers)
    assert up.irreversible == ()
    row = {'arm': np.array([np.pi]), 'grip': np.array([1.0])}
    up.wrap_infer(infer)(Step(0, 0, {}), {'prefix': [row]})
    assert plans[0]['prefix'][0]['actions'].tolist() == [180, 1]

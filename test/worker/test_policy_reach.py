"""The policies that reach for the target, driven as a worker drives them."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from PIL import Image
import pytest
from seq_harness.contract import obs_schedule
from seq_harness.contract.episode import Episode
from seq_harness.sim.arm import ArmModel, Verdict
from seq_harness.sim.camera import Camera, HEIGHT, project, WIDTH
from seq_harness.sim.kinematics import beyond_limits, forward, HOME, inverse, JOINT_NAMES
from seq_harness.sim.targets import TargetEvent, TargetSequence
from seq_harness.worker.policies.reach import (
    find_target,
    Reach,
    ReachChunked,
    ReachEvery,
    ReachWindow,
)

ALL = [Reach, ReachEvery, ReachWindow]
ROW_S = 0.05
FIRST, SECOND, THIRD = (0.35, 0.2), (0.30, -0.2), (0.42, 0.05)


@pytest.fixture(scope='module')
def camera() -> Camera:
    """Load the photograph once."""
    pytest.importorskip('matplotlib')
    return Camera()


def _fitted(picture: np.ndarray, size: tuple[int, int] = (320, 240)) -> bytes:
    """Fit and pack a picture as the robot does for a declared camera."""
    out = io.BytesIO()
    image = Image.fromarray(picture).resize(size, Image.Resampling.BILINEAR)
    image.save(out, 'jpeg', quality=85)
    return out.getvalue()


def _unpacked(jpeg: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(jpeg)).convert('RGB'))


def _observation(
    camera: Camera, target: tuple[float, float], joints: Any = HOME, encoded: bool = False
) -> dict[str, Any]:
    jpeg = _fitted(camera.picture(joints, target))
    return {
        'front': jpeg if encoded else _unpacked(jpeg),
        'state': np.array(joints, np.float32),
        'prompt': 'reach',
    }


def _asked(
    policy: Reach, episode: Episode, kept: dict[int, Any], t: int, t_prev: int = -1
) -> dict[str, Any]:
    """Ask for the act at step `t` with the observations that the declaration picks."""
    picked = obs_schedule.picks(obs_schedule.of(policy.observations, 20.0), t, t_prev)
    return policy.infer(obs_schedule.envelope(picked, kept, kept[t], t), episode)


@pytest.mark.parametrize('size', [(320, 240), (640, 480), (224, 224)])
@pytest.mark.parametrize('target', [FIRST, SECOND, THIRD])
def test_the_target_is_found_in_a_jpeg_of_any_size(
    camera: Camera, size: tuple[int, int], target: tuple[float, float]
) -> None:
    found = find_target(_unpacked(_fitted(camera.picture(HOME, target), size)))
    assert found == pytest.approx(target, abs=0.002)


def test_no_target_is_found_where_there_is_none(camera: Camera) -> None:
    assert find_target(_unpacked(_fitted(camera.picture(HOME, (5.0, 5.0))))) is None


def test_stray_green_pixels_do_not_draw_the_target_away(camera: Camera) -> None:
    picture = camera.picture(HOME, FIRST).copy()
    picture[:8, :8] = (0, 255, 0)
    assert find_target(picture) == pytest.approx(FIRST, abs=0.002)


@pytest.mark.parametrize('kind', ALL)
def test_the_answer_is_rows_of_joint_positions_towards_the_target(
    camera: Camera, kind: type[Reach]
) -> None:
    answer = _asked(kind(), Episode('e'), {0: _observation(camera, FIRST)}, 0)
    rows = answer['actions']
    assert set(answer) == {'actions'}
    assert rows.shape == (16, len(JOINT_NAMES))
    assert rows.dtype == np.float32
    assert all(beyond_limits([float(joint) for joint in row]) == '' for row in rows)
    tips = [forward(row).tip for row in (np.array(HOME), *rows.astype(float))]
    away = [float(np.hypot(tip[0] - FIRST[0], tip[1] - FIRST[1])) for tip in tips]
    assert away == sorted(away, reverse=True)
    assert away[-1] < away[0] - 0.05


def test_rows_start_slowly_and_stay_below_the_speed_limit(camera: Camera) -> None:
    answer = _asked(Reach(), Episode('e'), {0: _observation(camera, FIRST)}, 0)
    rows = np.vstack([np.array(HOME, np.float32), answer['actions']])
    speeds = np.abs(np.diff(rows, axis=0)).max(axis=1) / ROW_S
    assert speeds[0] < 0.15
    assert speeds.max() < 0.51
    assert np.abs(np.diff(speeds)).max() < 0.1


def test_a_plan_made_on_the_way_goes_on_at_the_speed_of_the_one_before(camera: Camera) -> None:
    policy, episode = Reach(), Episode('e')
    first = _asked(policy, episode, {0: _observation(camera, FIRST)}, 0)['actions']
    later = {10: _observation(camera, FIRST, first[9].astype(float))}
    second = _asked(policy, episode, later, 10, 0)['actions']
    np.testing.assert_allclose(second[:6], first[10:], atol=0.005)


def test_after_a_jump_it_starts_slowly_again(camera: Camera) -> None:
    policy, episode = Reach(), Episode('e')
    _asked(policy, episode, {0: _observation(camera, FIRST)}, 0)
    there = np.array(inverse(*FIRST))
    _asked(policy, episode, {16: _observation(camera, FIRST, there)}, 16)
    answer = _asked(policy, episode, {20: _observation(camera, SECOND, there)}, 20)
    assert np.abs(answer['actions'][0] - there).max() / ROW_S < 0.15


@pytest.mark.parametrize('kind', ALL)
def test_without_a_target_in_view_it_holds(camera: Camera, kind: type[Reach]) -> None:
    answer = _asked(kind(), Episode('e'), {0: _observation(camera, (5.0, 5.0))}, 0)
    np.testing.assert_array_equal(answer['actions'], np.tile(np.array(HOME, 'f4'), (16, 1)))


def test_a_target_out_of_reach_is_not_reached_for(camera: Camera) -> None:
    out_of_reach = (0.6, 0.3)
    u, v = project((*out_of_reach, 0.0))
    assert 0 < u < WIDTH
    assert 0 < v < HEIGHT
    answer = _asked(Reach(), Episode('e'), {0: _observation(camera, out_of_reach)}, 0)
    np.testing.assert_array_equal(answer['actions'], np.tile(np.array(HOME, 'f4'), (16, 1)))


def test_a_target_that_goes_out_of_view_for_a_frame_has_not_jumped(camera: Camera) -> None:
    policy, episode = Reach(), Episode('e')
    for t, target in enumerate([FIRST, (5.0, 5.0), FIRST, (5.0, 5.0), FIRST]):
        answer = policy.infer(
            {'observations': [_observation(camera, target)], 'steps': [t]},
            episode,
            {'targets': 1},
        )
        assert 'end' not in answer


@pytest.mark.parametrize('kind', ALL)
def test_the_third_jump_ends_the_episode_with_rows_that_hold(
    camera: Camera, kind: type[Reach]
) -> None:
    policy, episode = kind(), Episode('e')
    targets = [FIRST, SECOND, FIRST, THIRD]
    kept = {t: _observation(camera, targets[t // 8]) for t in range(32)}
    answers = [_asked(policy, episode, kept, t, t - 4) for t in range(3, 32, 4)]
    assert [answer.get('end') for answer in answers] == [None] * 6 + ['targets_reached'] * 2
    np.testing.assert_array_equal(answers[-1]['actions'], np.tile(kept[31]['state'], (16, 1)))


def test_reading_every_observation_sees_jumps_between_two_acts(camera: Camera) -> None:
    kept = {t: _observation(camera, [FIRST, SECOND, FIRST][t], encoded=True) for t in range(3)}
    answer = ReachEvery().infer(
        {'observations': list(kept.values()), 'steps': list(kept)}, Episode('e'), {'targets': 2}
    )
    assert answer['end'] == 'targets_reached'


def test_an_old_frame_of_a_window_is_not_taken_for_a_jump_back(camera: Camera) -> None:
    policy, episode = ReachWindow(), Episode('e')
    kept = {t: _observation(camera, FIRST if t < 4 else SECOND) for t in range(6)}
    for t in (3, 4, 5):
        answer = _asked(policy, episode, kept, t)
    assert 'end' not in answer
    assert episode.state['pursuit'].jumps == 1


def test_two_episodes_do_not_see_each_other(camera: Camera) -> None:
    policy = Reach()
    for name, target in [('a', FIRST), ('b', SECOND)]:
        answer = policy.infer(
            {'observations': [_observation(camera, target)], 'steps': [0]},
            Episode(name),
            {'targets': 1},
        )
        assert 'end' not in answer


@pytest.mark.parametrize(
    ('changes', 'said'),
    [
        ({'state': np.zeros(5, 'f4')}, "expected 6 finite joint positions under 'state'"),
        ({'state': np.full(6, np.nan, 'f4')}, 'finite joint positions'),
        ({'state': ()}, r'got \[\]'),
        ({'front': None}, "expected a frame under 'front' at step 0, got none"),
    ],
)
def test_an_observation_that_lacks_something_is_named(
    camera: Camera, changes: dict[str, Any], said: str
) -> None:
    given = {**_observation(camera, FIRST), **changes}
    observation = {key: value for key, value in given.items() if value is not None}
    with pytest.raises(ValueError, match=said):
        Reach().infer({'observations': [observation], 'steps': [0]}, Episode('e'))


@pytest.mark.parametrize('kind', ALL)
@pytest.mark.parametrize('seed', [0, 4])
def test_three_targets_are_touched_within_seconds(
    camera: Camera, kind: type[Reach], seed: int
) -> None:
    arm, targets = ArmModel(), TargetSequence(seed)
    policy, episode, kept = kind(), Episode('e'), {}
    rows: Any = None
    t_prev = -1
    for t in range(240):
        place = targets.place
        kept[t] = _observation(camera, place, arm.positions, encoded=kind is ReachEvery)
        if t % 8 == 0:
            answer = _asked(policy, episode, kept, t, t_prev)
            if 'end' in answer:
                break
            rows, t_prev = answer['actions'], t
        assert arm.command([float(joint) for joint in rows[t % 8]]).verdict is Verdict.TAKEN
        for _ in range(10):
            arm.advance(ROW_S / 10)
            if (
                targets.update(forward(arm.positions.tolist()).tip, ROW_S / 10)
                is TargetEvent.REACHED
            ):
                assert targets.place != place
    assert targets.reached == 3
    assert 80 < t < 200


def test_a_plan_is_gone_on_with_from_its_kept_rows(camera: Camera) -> None:
    policy, episode = ReachChunked(), Episode('one')
    observation = _observation(camera, FIRST)
    inputs = {'observations': [observation], 'steps': [0]}
    plain = policy.infer(inputs, episode)['actions']
    prefix = plain + 0.02
    plan = {'prefix': prefix, 'delay_rows': 4, 'executed_rows': 3}
    chunk = policy.infer(inputs, episode, plan=plan)['actions']
    assert chunk.shape == plain.shape
    assert np.array_equal(chunk[:4], prefix[:4])
    assert np.abs(np.diff(chunk, axis=0)).max() < 0.03, 'no jump where the kept rows end'


def test_a_plan_of_another_width_is_refused(camera: Camera) -> None:
    plan = {'prefix': np.zeros((3, 7)), 'delay_rows': 1, 'executed_rows': 0}
    inputs = {'observations': [_observation(camera, FIRST)], 'steps': [0]}
    with pytest.raises(ValueError, match=r'rows of 6 joints, got \[3, 7\]'):
        ReachChunked().infer(inputs, Episode('one'), plan=plan)

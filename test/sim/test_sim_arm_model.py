"""The arm in time, as a controller drives it."""

from __future__ import annotations

from math import inf, nan
import re

import numpy as np
import pytest
from seq_harness.sim.arm import ArmModel, Verdict, Waypoint
from seq_harness.sim.kinematics import HOME, JOINT_NAMES, MAX_VELOCITY, UPPER

DT_S = 0.005


def _moved(arm: ArmModel, seconds: float) -> np.ndarray:
    for _ in range(round(seconds / DT_S)):
        arm.advance(DT_S)
    return arm.positions


def _shifted(by: float) -> list[float]:
    return [joint + by for joint in HOME]


def test_without_a_command_it_stands_at_home() -> None:
    arm = ArmModel()
    np.testing.assert_array_equal(_moved(arm, 0.5), HOME)
    np.testing.assert_array_equal(arm.velocities, np.zeros(6))


def test_a_setpoint_is_approached_and_not_passed() -> None:
    arm = ArmModel()
    goal = _shifted(0.2)
    assert arm.command(goal).verdict is Verdict.TAKEN
    far = 0.2
    for _ in range(200):
        arm.advance(DT_S)
        away = goal[0] - arm.positions[0]
        assert 0 <= away <= far
        far = away
    np.testing.assert_allclose(arm.positions, goal, atol=1e-6)


def test_no_joint_turns_faster_than_its_bound() -> None:
    arm = ArmModel()
    arm.command(UPPER)
    before = arm.positions
    for _ in range(100):
        arm.advance(DT_S)
        assert np.all(np.abs(arm.positions - before) <= np.array(MAX_VELOCITY) * DT_S + 1e-12)
        np.testing.assert_allclose(arm.velocities, (arm.positions - before) / DT_S)
        before = arm.positions


def test_the_path_hardly_depends_on_the_step_of_time() -> None:
    fine, coarse = ArmModel(), ArmModel()
    for arm, dt, steps in ((fine, 0.001, 100), (coarse, 0.01, 10)):
        arm.command(_shifted(0.1))
        for _ in range(steps):
            arm.advance(dt)
    np.testing.assert_allclose(fine.positions, coarse.positions, atol=0.005)


def test_a_trajectory_is_followed_by_name_in_straight_lines() -> None:
    arm = ArmModel()
    names = list(reversed(JOINT_NAMES))
    points = [
        Waypoint(0.5, list(reversed(_shifted(0.2)))),
        Waypoint(1.0, list(reversed(_shifted(0.0)))),
    ]
    assert arm.follow(names, points).verdict is Verdict.TAKEN
    np.testing.assert_allclose(_moved(arm, 0.25), _shifted(0.1), atol=0.02)
    np.testing.assert_allclose(_moved(arm, 0.25), _shifted(0.2), atol=0.02)
    np.testing.assert_allclose(_moved(arm, 1.0), HOME, atol=1e-6)


def test_a_trajectory_starts_when_it_is_taken() -> None:
    arm = ArmModel()
    _moved(arm, 0.4)
    arm.follow(JOINT_NAMES, [Waypoint(0.5, _shifted(0.2))])
    np.testing.assert_allclose(_moved(arm, 0.25), _shifted(0.1), atol=0.02)


def test_a_new_command_replaces_a_trajectory() -> None:
    arm = ArmModel()
    arm.follow(JOINT_NAMES, [Waypoint(1.0, _shifted(0.3))])
    _moved(arm, 0.2)
    arm.command(_shifted(-0.1))
    np.testing.assert_allclose(_moved(arm, 1.0), _shifted(-0.1), atol=1e-6)


def test_a_trajectory_without_points_stops_the_arm_where_it_is() -> None:
    arm = ArmModel()
    arm.command(_shifted(0.5))
    here = _moved(arm, 0.1).copy()
    assert arm.follow(JOINT_NAMES, []).verdict is Verdict.TAKEN
    np.testing.assert_allclose(_moved(arm, 0.5), here)


@pytest.mark.parametrize(
    ('row', 'verdict', 'said'),
    [
        ([0.1] * 5, Verdict.WRONG_WIDTH, 'expected 6 positions, got 5'),
        ([0.1] * 7, Verdict.WRONG_WIDTH, 'expected 6 positions, got 7'),
        ([], Verdict.WRONG_WIDTH, 'got 0'),
        ([*HOME[:5], nan], Verdict.NOT_FINITE, 'finite'),
        ([inf, *HOME[1:]], Verdict.NOT_FINITE, 'finite'),
        ([9.0, *HOME[1:]], Verdict.OUT_OF_LIMITS, 'joint_1 = 9.0000 rad outside -2.6..2.6'),
    ],
)
def test_a_setpoint_that_cannot_be_followed_is_refused_and_changes_nothing(
    row: list[float], verdict: Verdict, said: str
) -> None:
    arm = ArmModel()
    arm.command(_shifted(0.1))
    taken = arm.command(row)
    assert taken.verdict is verdict
    assert said in taken.reason
    np.testing.assert_allclose(_moved(arm, 1.0), _shifted(0.1), atol=1e-6)


@pytest.mark.parametrize(
    ('names', 'points', 'verdict', 'said'),
    [
        (JOINT_NAMES[:5], [], Verdict.WRONG_JOINTS, 'got joint_1, joint_2'),
        (['a'] * 6, [], Verdict.WRONG_JOINTS, 'expected the joints joint_1'),
        (JOINT_NAMES, [Waypoint(0.0, HOME)], Verdict.WRONG_TIMES, 'point 0: .* after 0 s'),
        (
            JOINT_NAMES,
            [Waypoint(0.2, HOME), Waypoint(0.2, HOME)],
            Verdict.WRONG_TIMES,
            'point 1',
        ),
        (JOINT_NAMES, [Waypoint(0.2, HOME[:4])], Verdict.WRONG_WIDTH, 'point 0: .* got 4'),
        (JOINT_NAMES, [Waypoint(nan, HOME)], Verdict.WRONG_TIMES, 'got nan s'),
        (
            JOINT_NAMES,
            [Waypoint(0.2, HOME), Waypoint(0.4, [4.0, *HOME[1:]])],
            Verdict.OUT_OF_LIMITS,
            'point 1: .*joint_1',
        ),
    ],
)
def test_a_trajectory_is_refused_whole(
    names: list[str], points: list[Waypoint], verdict: Verdict, said: str
) -> None:
    arm = ArmModel()
    taken = arm.follow(names, points)
    assert taken.verdict is verdict
    assert re.search(said, taken.reason)
    np.testing.assert_array_equal(_moved(arm, 0.5), HOME)


@pytest.mark.parametrize('dt_s', [0.0, -0.1, nan])
def test_time_moves_forward_only(dt_s: float) -> None:
    with pytest.raises(ValueError, match='positive step of time'):
        ArmModel().advance(dt_s)


def test_it_does_not_start_outside_its_limits() -> None:
    with pytest.raises(ValueError, match='joint_3'):
        ArmModel([0.0, 0.0, 1.0, 0.0, 0.0, 0.0])

"""What the values of each kind of channel do when they merge, blend, move and starve."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import given, strategies
import numpy as np
import pytest
from seq_harness.playback.kinds import (
    Angle,
    Binary,
    Delta,
    Kind,
    kind_named,
    KindRefused,
    Kinds,
    Pose,
    Position,
    Quaternion,
    Velocity,
)
from seq_harness.playback.merging import merge
from seq_harness.playback.plan import Waypoint

HALF = math.sqrt(0.5)
IDENTITY, QUARTER = np.array([0.0, 0.0, 0.0, 1.0]), np.array([0.0, 0.0, HALF, HALF])
angles = strategies.floats(-20, 20)
units = strategies.lists(strategies.floats(-1, 1), min_size=4, max_size=4).filter(
    lambda q: np.linalg.norm(q) > 0.1
)


def merged(kind: Kind, *values: Any) -> Any:
    waypoints = [Waypoint(i, {'c': value}) for i, value in enumerate(values)]
    return merge(waypoints, Kinds({'c': kind})).commands['c']


@pytest.mark.parametrize('kind', [Position(), Angle(), Velocity(), Binary()])
def test_r22_of_absolute_values_in_one_round_the_last_wins(kind: Kind) -> None:
    assert merged(kind, np.array([1.0]), np.array([3.0])) == 3.0


def test_r22_deltas_of_one_round_are_summed() -> None:
    assert merged(Delta(), np.array([1.0]), np.array([3.0]), np.array([-1.0])) == 3.0


def test_r22_a_delta_that_does_not_say_of_what_is_refused() -> None:
    with pytest.raises(KindRefused, match="'previous' or 'observation'; got None"):
        kind_named('delta')
    assert isinstance(kind_named('delta', 'previous'), Delta)
    assert isinstance(kind_named('delta', 'observation'), Position)


def test_an_unknown_kind_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(KindRefused, match=r"'torque' is unknown; known: .*'effort'"):
        kind_named('torque')


def test_an_angle_takes_the_nearest_turn() -> None:
    kind = Angle()
    before, after = np.array([3.1]), np.array([-3.1])
    assert kind.distance(before, after) == pytest.approx(2 * math.pi - 6.2)
    assert kind.blend(before, after, 0.5) == pytest.approx(math.pi)
    assert kind.near(before, after) == pytest.approx(2 * math.pi - 3.1)


@given(angles, angles)
def test_the_nearest_turn_is_within_half_a_turn_and_the_same_angle(
    before: float, to: float
) -> None:
    near = float(Angle().near(np.array([before]), np.array([to]))[0])
    assert abs(near - before) <= math.pi + 1e-9
    assert math.cos(near - to) == pytest.approx(1)


def test_a_quaternion_is_blended_along_the_shorter_arc() -> None:
    half = Quaternion().blend(IDENTITY, -QUARTER, 0.5)
    eighth = np.array([0, 0, math.sin(math.pi / 8), math.cos(math.pi / 8)])
    np.testing.assert_allclose(half, eighth, atol=1e-12)


@given(units, units, strategies.floats(0, 1))
def test_a_blend_of_rotations_is_a_rotation_between_them(
    a: list[float], b: list[float], share: float
) -> None:
    kind = Quaternion()
    old, new = (np.array(q) / np.linalg.norm(q) for q in (a, b))
    middle = kind.blend(old, new, share)
    whole = float(kind.distance(old, new)[0])
    assert np.linalg.norm(middle) == pytest.approx(1)
    assert float(kind.distance(old, middle)[0]) == pytest.approx(share * whole, abs=1e-6)


def test_a_pose_moves_in_metres_and_turns_in_radians() -> None:
    kind = Pose()
    here, there = np.array([0, 0, 0, *IDENTITY]), np.array([3.0, 4.0, 0.0, *QUARTER])
    np.testing.assert_allclose(kind.distance(here, there), [5.0, math.pi / 2])
    near = kind.limited(here, there, np.array([1.0, math.pi / 4]))
    np.testing.assert_allclose(near[:3], [0.6, 0.8, 0.0])
    np.testing.assert_allclose(kind.distance(here, near), [1.0, math.pi / 4])


def test_what_is_no_unit_quaternion_is_no_rotation() -> None:
    assert Quaternion().fault(IDENTITY) is None
    assert 'length 2' in str(Quaternion().fault(2 * IDENTITY))


def test_a_switch_changes_at_half() -> None:
    kind = Binary()
    assert [kind.blend(0, 1, share) for share in (0.0, 0.49, 0.5, 1.0)] == [0, 0, 1, 1]


@given(strategies.floats(-1e3, 1e3), strategies.floats(-1e3, 1e3), strategies.floats(0, 1))
def test_a_blend_of_positions_lies_between_them(a: float, b: float, share: float) -> None:
    between = float(Position().blend(a, b, share))
    assert min(a, b) - 1e-9 <= between <= max(a, b) + 1e-9

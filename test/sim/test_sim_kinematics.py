"""The arm's geometry."""

from __future__ import annotations

import math
import random

import pytest
from seq_harness.sim.kinematics import (
    beyond_limits,
    forward,
    HOME,
    inverse,
    LOWER,
    OutOfReach,
    UPPER,
)


def test_the_tip_stands_where_the_inverse_was_asked_to_put_it() -> None:
    random_ = random.Random(1)
    for _ in range(200):
        distance, angle = random_.uniform(0.15, 0.55), random_.uniform(-2.5, 2.5)
        x, y = distance * math.cos(angle), distance * math.sin(angle)
        joints = inverse(x, y)
        assert beyond_limits(joints) == ''
        assert forward(joints).tip == pytest.approx((x, y, 0.0), abs=1e-9)


def test_a_stretched_arm_is_as_long_as_its_links() -> None:
    pose = forward([0.0] * 6)
    assert pose.elbow == pytest.approx((0.30, 0.0, 0.16))
    assert pose.tip == pytest.approx((0.70, 0.0, 0.16))


def test_the_yaw_turns_the_arm_to_the_left() -> None:
    assert forward([math.pi / 2, 0, 0, 0, 0, 0]).tip == pytest.approx((0.0, 0.70, 0.16))


def test_the_tool_joints_turn_the_jaws_and_leave_the_tip() -> None:
    before, after = forward(inverse(0.4, 0.1)), forward(inverse(0.4, 0.1, roll=0.7, tilt=0.3))
    assert after.tip == pytest.approx(before.tip)
    assert math.dist(after.jaw, before.jaw) > 0.3
    assert math.hypot(*after.jaw) == pytest.approx(1.0)


def test_a_rolled_tool_that_points_down_keeps_its_jaws_level() -> None:
    jaw = forward(inverse(0.4, 0.0, roll=math.pi / 2)).jaw
    assert jaw == pytest.approx((1.0, 0.0, 0.0), abs=1e-9)


@pytest.mark.parametrize('x', [0.7, 5.0])
def test_a_point_too_far_away_is_refused_with_its_distance(x: float) -> None:
    with pytest.raises(OutOfReach, match=r'm from the shoulder; expected 0\.020 to 0\.580 m'):
        inverse(x, 0.0)


def test_a_point_behind_the_arm_is_refused_with_the_joint_that_stops_it() -> None:
    with pytest.raises(OutOfReach, match=r'joint_1 = 3\.1.* rad outside -2\.6\.\.2\.6'):
        inverse(-0.4, 0.0)


def test_limits_are_inside_the_limits_and_home_stands_on_the_table() -> None:
    assert beyond_limits(LOWER) == beyond_limits(UPPER) == ''
    assert forward(HOME).tip[2] == pytest.approx(0.0, abs=1e-9)

"""Setpoint messages as standard controllers take them."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan
from typing import Any

import numpy as np
import pytest
from seq_harness.messages.setpoints import (
    fill_float64_multi_array,
    fill_joint_trajectory,
    read_float64_multi_array,
    read_joint_trajectory,
    SetpointRefused,
    TrajectoryPoint,
)

Of = Callable[[str], Callable[..., Any]]

ARRAY = 'std_msgs/msg/Float64MultiArray'
TRAJECTORY = 'trajectory_msgs/msg/JointTrajectory'
NAMES = ['joint_1', 'joint_2']
POINTS = [
    TrajectoryPoint((0.1, 0.2), 50_000_000),
    TrajectoryPoint((0.3, 0.4), 2_100_000_000),
]


def _filled(of: Of, points: list[TrajectoryPoint]) -> Any:
    message = of(TRAJECTORY)()
    message.header.stamp.sec = 12
    fill_joint_trajectory(
        message,
        of('trajectory_msgs/msg/JointTrajectoryPoint'),
        of('builtin_interfaces/msg/Duration'),
        NAMES,
        points,
    )
    return message


def test_values_are_filled_and_read_back(of: Of) -> None:
    message = of(ARRAY)()
    fill_float64_multi_array(message, np.array([0.5, -1.0], np.float32))
    np.testing.assert_array_equal(read_float64_multi_array(message), [0.5, -1.0])
    assert len(message.layout.dim) == 0


@pytest.mark.parametrize('bad', [nan, inf])
def test_g4_a_value_that_is_not_finite_leaves_the_message_as_it_was(of: Of, bad: float) -> None:
    message = of(ARRAY)()
    fill_float64_multi_array(message, [0.5, 0.5])
    with pytest.raises(SetpointRefused, match='place 1'):
        fill_float64_multi_array(message, [0.0, bad])
    np.testing.assert_array_equal(read_float64_multi_array(message), [0.5, 0.5])


def test_g39_g41_a_trajectory_starts_at_once_and_ends_without_velocity(of: Of) -> None:
    message = _filled(of, POINTS)
    assert (message.header.stamp.sec, message.header.stamp.nanosec) == (0, 0)
    assert message.points[-1].time_from_start.sec == 2
    assert message.points[-1].time_from_start.nanosec == 100_000_000
    assert all(len(point.velocities) == 0 for point in message.points)
    assert read_joint_trajectory(message) == (tuple(NAMES), tuple(POINTS))


def test_one_point_is_a_trajectory(of: Of) -> None:
    _, points = read_joint_trajectory(_filled(of, POINTS[:1]))
    assert points == tuple(POINTS[:1])


@pytest.mark.parametrize(
    ('points', 'said'),
    [
        ([], 'at least one trajectory point'),
        ([TrajectoryPoint((0.1, 0.2), 0)], 'point 0 after 0 ns, got 0 ns'),
        ([POINTS[1], POINTS[0]], 'point 1 after 2100000000 ns, got 50000000 ns'),
        ([TrajectoryPoint((0.1,), 1)], 'expected 2 positions in point 0, got 1'),
        ([TrajectoryPoint((0.1, nan), 1)], 'finite setpoints, got nan'),
    ],
)
def test_a_trajectory_that_no_controller_takes_is_refused(
    of: Of, points: list[TrajectoryPoint], said: str
) -> None:
    with pytest.raises(SetpointRefused, match=said):
        _filled(of, points)

"""Command messages with a header or a single value, for the controllers that take them."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from seq_harness.messages.commands import (
    fill_float64,
    fill_gripper_command,
    fill_joint_jog,
    fill_joint_state,
    fill_pose,
    fill_twist,
)
from seq_harness.messages.refusals import SetpointRefused

Of = Callable[[str], Callable[..., Any]]
JOINTS = ('a', 'b')


@pytest.mark.parametrize(
    ('kind', 'field'), [('position', 'position'), ('velocity', 'velocity'), ('effort', 'effort')]
)
def test_g2_a_joint_state_has_arrays_as_long_as_its_names_or_empty(
    of: Of, kind: str, field: str
) -> None:
    message = of('sensor_msgs/msg/JointState')()
    fill_joint_state(message, JOINTS, kind, [1.0, 2.0])
    assert list(message.name) == ['a', 'b']
    for name in ('position', 'velocity', 'effort'):
        assert list(getattr(message, name)) == ([1.0, 2.0] if name == field else [])


def test_a_pose_has_its_position_and_then_its_turn(of: Of) -> None:
    point, turn = of('geometry_msgs/msg/Point')(), of('geometry_msgs/msg/Quaternion')()
    pose = SimpleNamespace(position=point, orientation=turn)
    fill_pose(pose, [1.0, 2.0, 3.0, 0.0, 0.0, 0.6, 0.8])
    assert (point.x, point.y, point.z) == (1.0, 2.0, 3.0)
    assert (turn.x, turn.y, turn.z, turn.w) == (0.0, 0.0, 0.6, 0.8)


def test_a_twist_has_its_speeds_and_then_its_rates(of: Of) -> None:
    linear, angular = of('geometry_msgs/msg/Vector3')(), of('geometry_msgs/msg/Vector3')()
    fill_twist(SimpleNamespace(linear=linear, angular=angular), [1, 2, 3, 4, 5, 6])
    assert (linear.x, linear.y, linear.z) == (1.0, 2.0, 3.0)
    assert (angular.x, angular.y, angular.z) == (4.0, 5.0, 6.0)


@pytest.mark.parametrize(
    ('kind', 'velocities', 'displacements'),
    [('velocity', [1.0, 2.0], []), ('delta', [], [1.0, 2.0])],
)
def test_a_jog_holds_rates_or_changes_for_a_row(
    kind: str, velocities: list[float], displacements: list[float]
) -> None:
    message = SimpleNamespace()
    fill_joint_jog(message, JOINTS, kind, [1.0, 2.0], 0.05)
    assert message.joint_names == ['a', 'b']
    assert list(message.velocities) == velocities
    assert list(message.displacements) == displacements
    assert message.duration == 0.05


def test_a_gripper_and_a_single_joint_take_one_value(of: Of) -> None:
    single = of('std_msgs/msg/Float64')()
    fill_float64(single, [0.5])
    assert single.data == 0.5
    gripper = SimpleNamespace()
    fill_gripper_command(gripper, [0.04], 20.0)
    assert (gripper.position, gripper.max_effort) == (0.04, 20.0)


def test_g4_what_is_not_finite_is_never_put_into_a_message(of: Of) -> None:
    message = of('sensor_msgs/msg/JointState')()
    with pytest.raises(SetpointRefused, match='got nan at place 1'):
        fill_joint_state(message, JOINTS, 'position', [0.0, float('nan')])
    assert list(message.name) == []
    with pytest.raises(SetpointRefused, match='expected 7 values, got 6'):
        fill_pose(SimpleNamespace(), [0.0] * 6)

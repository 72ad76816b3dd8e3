"""Command messages with a header or a single value, for the controllers that take them."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from seq_harness.bags.blanks import serialised
from seq_harness.bags.commands import ROSBAGS
from seq_harness.messages.commands import (
    COMMANDS,
    encoder,
    fill_float64,
    fill_gripper_command,
    fill_joint_jog,
    fill_joint_state,
    fill_pose,
    fill_twist,
    Library,
)
from seq_harness.messages.refusals import SetpointRefused
from seq_harness.settings.output_types import OUTPUT_KINDS

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


VALUES = {
    'float64_multi_array': [0.1, 0.2],
    'joint_trajectory': [0.1, 0.2],
    'joint_state': [0.1, 0.2],
    'pose_stamped': [0.1, 0.2, 0.3, 0.0, 0.0, 0.6, 0.8],
    'twist_stamped': [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
    'float64': [0.5],
}
"""The types of channels whose messages every installation has, and a value for each."""


def item_of(kind: str, **changes: Any) -> Any:
    fields = {
        'type': kind,
        'joints': JOINTS,
        'kind': 'position',
        'frame': 'tool0',
        'max_effort': 5.0,
        'time_from_start_s': 0.0,
    }
    return SimpleNamespace(**{**fields, **changes})


def library_of(of: Of) -> Library:
    return Library(blank=of, made_of=of)


def test_every_type_of_channel_that_may_be_set_has_a_message() -> None:
    assert set(COMMANDS) == set(OUTPUT_KINDS)


@pytest.mark.parametrize('kind', sorted(VALUES))
def test_what_has_a_header_is_stamped_with_the_present_in_its_frame_but_for_a_trajectory(
    of: Of, kind: str
) -> None:
    present = of('builtin_interfaces/msg/Time')(sec=7, nanosec=8)
    encode = encoder(item_of(kind), 50_000_000, library_of(of), lambda: present)
    message = encode(VALUES[kind])
    header: Any = getattr(message, 'header', None)
    if kind in ('float64_multi_array', 'float64'):
        assert header is None
    elif kind == 'joint_trajectory':
        assert (header.stamp.sec, header.stamp.nanosec) == (0, 0), 'a stamp of zero means now'
    else:
        assert (header.stamp.sec, header.stamp.nanosec, header.frame_id) == (7, 8, 'tool0')


def test_a_row_of_a_trajectory_is_reached_after_a_period_or_as_configured(of: Of) -> None:
    for changes, reach_ns in (({}, 50_000_000), ({'time_from_start_s': 1.25}, 250_000_000)):
        item = item_of('joint_trajectory', **changes)
        (point,) = encoder(item, 50_000_000, library_of(of), None)([0.1, 0.2]).points
        assert list(point.positions) == [0.1, 0.2]
        assert point.time_from_start.sec == int(bool(changes))
        assert point.time_from_start.nanosec == reach_ns


def test_a_plan_is_reached_row_by_row_and_what_is_past_at_once(of: Of) -> None:
    plan = SimpleNamespace(sent_ns=1_000, points=((900, [0.0, 0.0]), (1_000_001_000, [1.0, 2.0])))
    encode = encoder(item_of('joint_trajectory'), 50_000_000, library_of(of), None)
    first, last = encode(plan).points
    assert (first.time_from_start.sec, first.time_from_start.nanosec) == (0, 50_000_000)
    assert (last.time_from_start.sec, last.time_from_start.nanosec) == (1, 50_000_000)
    assert list(last.positions) == [1.0, 2.0]


def test_a_replay_sends_what_a_node_sends() -> None:
    deserialize = pytest.importorskip('rclpy.serialization').deserialize_message
    rclpy = pytest.importorskip('seq_harness.ros.topics').RCLPY
    present = {
        name: lib.made_of('builtin_interfaces/msg/Time')(sec=7, nanosec=8)
        for name, lib in (('rclpy', rclpy), ('rosbags', ROSBAGS))
    }
    for kind, value in VALUES.items():
        item = item_of(kind)
        ours = encoder(item, 50_000_000, rclpy, lambda: present['rclpy'])(value)
        bag = encoder(item, 50_000_000, ROSBAGS, lambda: present['rosbags'])(value)
        assert deserialize(serialised(bag), type(ours)) == ours, kind


def test_g4_no_message_is_made_of_what_is_not_finite(of: Of) -> None:
    for kind, value in VALUES.items():
        encode = encoder(item_of(kind), 50_000_000, library_of(of), None)
        with pytest.raises(SetpointRefused):
            encode([float('nan'), *value[1:]])

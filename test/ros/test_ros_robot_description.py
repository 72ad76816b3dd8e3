"""Limits from a robot's description: the stricter of them and the parameters' apply."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import rclpy
from rclpy.context import Context
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from seq_harness.ros import robot_description
from seq_harness.ros.robot_description import (
    bounded_by_description,
    DescriptionMissing,
    joint_limits,
    stricter,
)
from seq_harness.settings.parameters import SettingsError
from std_msgs.msg import String
from support.robots import settings_of

JOINT = """
  <joint name="{name}" type="{kind}">
    <parent link="a"/><child link="{name}_link"/>{inside}
  </joint><link name="{name}_link"/>"""
LIMIT = '<limit lower="-0.5" upper="3.0" velocity="1.5" effort="10"/>'
SOFT = '<safety_controller soft_lower_limit="-0.25" soft_upper_limit="2" k_velocity="1"/>'


def urdf(*joints: tuple[str, str, str]) -> str:
    parts = [JOINT.format(name=name, kind=kind, inside=inside) for name, kind, inside in joints]
    return f'<?xml version="1.0"?><robot name="r"><link name="a"/>{"".join(parts)}</robot>'


ARM = urdf(('j1', 'revolute', LIMIT), ('j2', 'continuous', LIMIT), ('base', 'fixed', ''))


def test_the_stricter_of_both_limits_applies_to_each_joint() -> None:
    channel = stricter(settings_of(), joint_limits(ARM)).channels[0]
    assert channel.lower == (-0.5, -1.0)
    assert channel.upper == (1.0, 1.0)
    assert channel.max_velocity == (1.5, 1.5)


def test_soft_limits_count_where_they_are_the_stricter() -> None:
    found = joint_limits(urdf(('j1', 'revolute', LIMIT + SOFT)))['j1']
    assert (found.lower, found.upper) == (-0.25, 2.0)


def test_a_joint_that_does_not_move_has_no_limits() -> None:
    assert set(joint_limits(ARM)) == {'j1', 'j2'}


def test_a_joint_that_the_description_lacks_is_named() -> None:
    with pytest.raises(SettingsError, match=r"commands \['j2'\].*it has \['j1'\]"):
        stricter(settings_of(), joint_limits(urdf(('j1', 'revolute', LIMIT))))


def test_limits_without_a_position_in_common_are_refused() -> None:
    settings = settings_of(channels__arm__lower=[-1, -1], channels__arm__upper=[-0.6, 1])
    with pytest.raises(SettingsError, match='no position of j1 in common'):
        stricter(settings, joint_limits(ARM))


@pytest.mark.parametrize(
    ('limit', 'left_out'),
    [
        ('<limit lower="0" upper="0" velocity="0" effort="0"/>', 2),
        ('<limit lower="-inf" upper="inf" velocity="inf"/>', 2),
        ('<limit lower="nan" upper="1" velocity="-1"/>', 2),
        ('<limit lower="1" upper="-1" velocity="fast"/>', 2),
        ('<limit effort="10"/>', 1),
    ],
)
def test_limits_that_are_not_above_0_or_not_finite_are_none(limit: str, left_out: int) -> None:
    found = joint_limits(urdf(('j1', 'revolute', limit)))['j1']
    assert (found.lower, found.upper, found.velocity) == (None, None, None)
    assert len(found.left_out) == left_out


def test_nothing_but_joints_can_refuse_a_description() -> None:
    odd = """
      <material name="blue"><color rgba="wrong"/></material>
      <gazebo reference="j1"><x y="z"/></gazebo>
      <transmission name="t"><type/></transmission>
      <link name="l"><inertial><mass/></inertial></link>
      <ros2_control name="c" type="system"><joint name="j9"/></ros2_control><unknown/>"""
    assert joint_limits(ARM.replace('</robot>', f'{odd}</robot>')) == joint_limits(ARM)


def test_what_is_no_urdf_is_refused() -> None:
    with pytest.raises(SettingsError, match='is no URDF'):
        joint_limits('<robot name="r"><joint')
    with pytest.raises(SettingsError, match=r'no URDF: .*no element found'):
        joint_limits('')
    with pytest.raises(SettingsError, match=r'expected <robot> .*, got <sdf>'):
        joint_limits('<sdf/>')


@pytest.fixture
def node() -> Iterator[Any]:
    context = Context()
    rclpy.init(context=context)
    made = Node('harness', context=context)
    try:
        yield made
    finally:
        made.destroy_node()
        rclpy.shutdown(context=context)


def test_the_description_is_read_from_its_topic_while_the_node_configures(node: Any) -> None:
    kept = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    node.create_publisher(String, '/robot_description', kept).publish(String(data=ARM))
    settings = bounded_by_description(node, settings_of(robot_description='/robot_description'))
    assert settings.channels[0].max_velocity == (1.5, 1.5)


def test_limits_that_count_as_none_are_said_once_by_the_names_of_joints(
    node: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr(node.get_logger(), 'warning', said.append)
    zero = '<limit lower="0" upper="0" velocity="0" effort="0"/>'
    parts = [(name, 'revolute', zero) for name in ('j1', 'j2', 'wheel')]
    kept = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    node.create_publisher(String, '/robot_description', kept).publish(String(data=urdf(*parts)))
    settings = settings_of(robot_description='/robot_description')
    assert bounded_by_description(node, settings) == settings
    (text,) = said
    assert 'j1: positions from 0 to 0; j1: a velocity of 0; j2' in text
    assert 'wheel' not in text


def test_a_description_that_does_not_come_is_named_with_its_topic(
    node: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(robot_description, 'WITHIN_S', 0.2)
    said = r'^parameter .robot_description.: no .* on /robot_description within 0.2 s'
    with pytest.raises(DescriptionMissing, match=said):
        bounded_by_description(node, settings_of(robot_description='/robot_description'))


def test_a_description_that_does_not_fit_names_the_parameter(node: Any) -> None:
    kept = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    node.create_publisher(String, '/robot_description', kept).publish(String(data='<robot'))
    with pytest.raises(SettingsError, match=r"^parameter 'robot_description': .* is no URDF"):
        bounded_by_description(node, settings_of(robot_description='/robot_description'))


def test_without_a_topic_the_parameters_alone_apply(node: Any) -> None:
    settings = settings_of()
    assert bounded_by_description(node, settings) is settings

"""The limits of joints that a robot's description gives: the stricter of them and ours apply."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
import time
from typing import Any

from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from seq_harness.settings import ChannelSettings, Settings, SettingsError
from std_msgs.msg import String

WITHIN_S = 5.0
"""How long configuring waits for the description, which its publisher keeps for late comers."""

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


class DescriptionMissing(LookupError):
    """No description came, or nothing here can read it; says what to do."""


@dataclass(frozen=True)
class JointLimits:
    """What a description allows a joint; None where it sets no bound."""

    lower: float | None
    """In rad or m; None for a continuous joint."""
    upper: float | None
    velocity: float | None
    """In rad/s or m/s."""


def bounded_by_description(node: Node, settings: Settings) -> Settings:
    """
    Return `settings` with each channel's limits the stricter of theirs and the description's.

    Without a topic in `robot_description` the settings are returned as they are.

    Raises
    ------
    DescriptionMissing
        Nothing came on the topic, or no parser is installed; names the parameter.
    SettingsError
        It is no URDF, lacks a joint of a channel, or allows nothing of what a channel does; names
        the parameter.

    """
    topic = settings['robot_description']
    if not topic:
        return settings
    try:
        return stricter(settings, joint_limits(_received(node, topic)))
    except (DescriptionMissing, SettingsError) as error:
        raise type(error)(f"parameter 'robot_description': {error}") from error


def joint_limits(urdf: str) -> dict[str, JointLimits]:
    """
    Return the limits of every joint that moves, by name.

    A safety controller's soft limits count where they are the stricter.

    Raises
    ------
    DescriptionMissing
        urdf_parser_py is not installed.
    SettingsError
        The text is no URDF.

    """
    try:
        from urdf_parser_py.urdf import URDF
    except ImportError as error:
        raise DescriptionMissing(
            f'urdf_parser_py is not installed ({error}): install ros-*-urdfdom-py, or the extra '
            "'urdf' of this package, or set robot_description to an empty text"
        ) from error
    try:
        robot = URDF.from_xml_string(urdf.encode())
    except Exception as error:
        raise SettingsError(f'the robot description is no URDF: {error}') from error
    return {
        joint.name: _limits_of(joint)
        for joint in robot.joints
        if joint.type in ('revolute', 'prismatic', 'continuous')
    }


def stricter(settings: Settings, limits: Mapping[str, JointLimits]) -> Settings:
    """Return the settings with both limits applied; deltas and rates keep their own bounds."""
    channels = tuple(
        _bounded(item, limits) if item.kind in ('position', 'angle') else item
        for item in settings.channels
    )
    return replace(settings, channels=channels)


def _bounded(channel: ChannelSettings, limits: Mapping[str, JointLimits]) -> ChannelSettings:
    missing = [joint for joint in channel.joints if joint not in limits]
    if missing:
        raise SettingsError(
            f'channels.{channel.name} commands {missing}, which do not move in the robot '
            f'description; it has {sorted(limits)}'
        )
    theirs = [limits[joint] for joint in channel.joints]
    lower = _each(max, channel.lower, [item.lower for item in theirs])
    upper = _each(min, channel.upper, [item.upper for item in theirs])
    for joint, low, high in zip(channel.joints, lower, upper, strict=True):
        if low >= high:
            raise SettingsError(
                f'channels.{channel.name} and the robot description have no position of {joint} '
                f'in common: [{low:g}, {high:g}] is left'
            )
    speeds = _each(min, channel.max_velocity, [item.velocity for item in theirs])
    return replace(channel, lower=lower, upper=upper, max_velocity=speeds)


def _each(
    choose: Callable[[float, float], float], ours: Sequence[float], theirs: Sequence[float | None]
) -> tuple[float, ...]:
    return tuple(a if b is None else choose(a, b) for a, b in zip(ours, theirs, strict=True))


def _limits_of(joint: Any) -> JointLimits:
    hard = getattr(joint, 'limit', None)
    soft = getattr(joint, 'safety_controller', None)
    turns = getattr(joint, 'type', '') == 'continuous'
    lower = [] if hard is None or turns else [float(hard.lower or 0.0)]
    upper = [] if hard is None or turns else [float(hard.upper or 0.0)]
    # Soft limits that are not given are read as 0 on both sides.
    if soft is not None and not turns and (soft.soft_lower_limit or soft.soft_upper_limit):
        lower.append(float(soft.soft_lower_limit or 0.0))
        upper.append(float(soft.soft_upper_limit or 0.0))
    velocity = None if hard is None or not hard.velocity else float(hard.velocity)
    return JointLimits(max(lower, default=None), min(upper, default=None), velocity)


def _received(node: Node, topic: str) -> str:
    """Wait for the description on a node of its own, as configuring keeps the executor busy."""
    listener = Node(
        f'{node.get_name()}_description',
        context=node.context,
        namespace=node.get_namespace(),
        use_global_arguments=False,
        start_parameter_services=False,
    )
    executor = SingleThreadedExecutor(context=node.context)
    came: list[String] = []
    try:
        executor.add_node(listener)
        name = node.resolve_topic_name(topic)
        listener.create_subscription(String, name, came.append, LATCHED)
        end = time.monotonic() + WITHIN_S
        while not came and time.monotonic() < end:
            executor.spin_once(timeout_sec=0.1)
    finally:
        executor.shutdown()
        listener.destroy_node()
    if not came:
        raise DescriptionMissing(
            f'no robot description came on {name} within {WITHIN_S:g} s: start '
            'robot_state_publisher, or set robot_description to an empty text'
        )
    return str(came[-1].data)

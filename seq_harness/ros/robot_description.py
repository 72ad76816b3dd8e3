"""The limits of joints that a robot's description gives: the stricter of them and ours apply."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
import math
import time
from xml.etree import ElementTree

from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from seq_harness.settings import ChannelSettings, Settings, SettingsError
from std_msgs.msg import String

WITHIN_S = 5.0
"""How long configuring waits for the description, which its publisher keeps for late comers."""

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


class DescriptionMissing(LookupError):
    """No description came; says what to do."""


@dataclass(frozen=True)
class JointLimits:
    """What a description allows a joint; None where it sets no bound."""

    lower: float | None
    """In rad or m; None for a continuous joint."""
    upper: float | None
    velocity: float | None
    """In rad/s or m/s."""
    left_out: tuple[str, ...] = ()
    """What it says and cannot mean, for people: no speed above 0, or no range."""


def bounded_by_description(node: Node, settings: Settings) -> Settings:
    """
    Return `settings` with each channel's limits the stricter of theirs and the description's.

    Without a topic in `robot_description` the settings are returned as they are.

    Raises
    ------
    DescriptionMissing
        Nothing came on the topic; names the parameter.
    SettingsError
        It is no URDF, lacks a joint of a channel, or allows nothing of what a channel does; names
        the parameter.

    """
    topic = settings['robot_description']
    if not topic:
        return settings
    try:
        limits = joint_limits(_received(node, topic))
        bounded = stricter(settings, limits)
    except (DescriptionMissing, SettingsError) as error:
        raise type(error)(f"parameter 'robot_description': {error}") from error
    commanded = {joint for item in settings.channels for joint in item.joints}
    odd = [f'{name}: {text}' for name, each in limits.items() for text in each.left_out
           if name in commanded]  # fmt: skip
    if odd:
        node.get_logger().warning(
            f'the robot description sets limits that count as none ({"; ".join(odd)}); those of '
            'the parameters apply'
        )
    return bounded


def joint_limits(urdf: str) -> dict[str, JointLimits]:
    """
    Return the limits of every joint that moves, by name; nothing else of a description is read.

    A safety controller's soft limits count where they are the stricter.

    Raises
    ------
    SettingsError
        The text is no URDF; says why.

    """
    try:
        robot = ElementTree.fromstring(urdf)
    except ElementTree.ParseError as error:
        raise SettingsError(f'the robot description is no URDF: {error}') from error
    if robot.tag != 'robot':
        raise SettingsError(
            f'the robot description is no URDF: expected <robot> as its first element, got '
            f'<{robot.tag:.40}>'
        )
    return {
        joint.get('name', ''): _limits_of(joint)
        for joint in robot.findall('joint')
        if joint.get('type') in ('revolute', 'prismatic', 'continuous')
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


def _limits_of(joint: ElementTree.Element) -> JointLimits:
    hard, soft = joint.find('limit'), joint.find('safety_controller')
    left_out: list[str] = []
    ranges = []
    if joint.get('type') != 'continuous':
        ranges = [
            _range(hard, 'lower', 'upper', left_out),
            _range(soft, 'soft_lower_limit', 'soft_upper_limit', []),
        ]
    velocity = None if hard is None else _number(hard, 'velocity')
    if velocity is not None and not 0 < velocity < math.inf:
        left_out.append(f'a velocity of {hard.get("velocity") if hard is not None else None}')
        velocity = None
    known = [pair for pair in ranges if pair is not None]
    return JointLimits(
        max((low for low, _ in known), default=None),
        min((high for _, high in known), default=None),
        velocity,
        tuple(left_out),
    )


def _range(
    given: ElementTree.Element | None, lower: str, upper: str, left_out: list[str]
) -> tuple[float, float] | None:
    """Return a range of positions; none where it is not finite, or not above 0 wide."""
    if given is None:
        return None
    # What a URDF leaves out is 0.
    low, high = (_number(given, name) or 0.0 for name in (lower, upper))
    if math.isfinite(low) and math.isfinite(high) and low < high:
        return low, high
    left_out.append(f'positions from {given.get(lower, 0)} to {given.get(upper, 0)}')
    return None


def _number(given: ElementTree.Element, name: str) -> float | None:
    """Return an attribute as a number: NaN for what is none, and None where it is absent."""
    text = given.get(name)
    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        return math.nan


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

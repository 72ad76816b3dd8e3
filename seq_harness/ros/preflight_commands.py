"""Where setpoints would go: who listens, who else commands, and in what state controllers are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any, Protocol

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy
from seq_harness.inputs import Snapshot
from seq_harness.messages.commands import COMMANDS
from seq_harness.pipeline.grippers import without_effort
from seq_harness.pipeline.moving import unwatched
from seq_harness.pipeline.rotations import rotation_vectors
from seq_harness.ros.beats import STANDING
from seq_harness.ros.findings import fault, Finding, ok, warning
from seq_harness.ros.message_types import message_class, TypeMissing
from seq_harness.ros.ownership import node_name
from seq_harness.ros.spinning import spin
from seq_harness.settings import ChannelSettings, Settings
from seq_harness.settings.output_types import ACTIONS, FLOAT64_MULTI_ARRAY, JOINT_TRAJECTORY

LIST_CONTROLLERS = 'controller_manager_msgs/srv/ListControllers'

STATUS = '/_action/status'
"""What the topic is called, below an action, on which its server tells of its goals."""

ANSWER_WITHIN_S = 2.0

TAKES = {
    'joint_trajectory_controller': JOINT_TRAJECTORY,
    'jointtrajectorycontroller': JOINT_TRAJECTORY,
    'forward_command_controller': FLOAT64_MULTI_ARRAY,
    'jointgroup': FLOAT64_MULTI_ARRAY,
}
"""Part of a controller's type, in small letters, to the type of channel that it takes."""


class Controller(Protocol):
    """What a controller manager says of a controller."""

    name: str
    type: str
    state: str
    required_command_interfaces: Sequence[str]


def command_findings(node: Node, channel: ChannelSettings, preview: bool) -> Iterator[Finding]:
    """Say who listens to a command topic, and who else commands there (G45)."""
    if preview:
        yield ok(
            f'channel {channel.name}',
            'preview is set: setpoints go to ~/preview/ and nothing moves',
        )
    yield from _missing_type(channel)
    yield from (_action_findings if channel.type in ACTIONS else _setpoints)(node, channel)


def _missing_type(channel: ChannelSettings) -> Iterator[Finding]:
    """Say where the message, or the action, of a channel is not installed."""
    kind = ACTIONS.get(channel.type) or COMMANDS[channel.type].message
    try:
        message_class(kind)
    except TypeMissing as error:
        remedy = 'install it, or choose another channels.<name>.type'
        yield fault(f'channel {channel.name}', str(error), remedy)


def _setpoints(node: Node, channel: ChannelSettings) -> Iterator[Finding]:
    subject, topic = f'channel {channel.name}', channel.topic
    full, wanted = node.resolve_topic_name(topic), COMMANDS[channel.type].message
    others = sorted(set(map(node_name, node.get_publishers_info_by_topic(topic))))
    if others:
        yield fault(
            subject,
            f'{full} is commanded by {", ".join(others)} already',
            'stop the other commander: two of them fight over the arm',
        )
    listeners = node.get_subscriptions_info_by_topic(topic)
    for info in listeners:
        if info.topic_type != wanted:
            yield fault(
                subject,
                f'{node_name(info)} takes {info.topic_type} from {full}, and a {channel.type} '
                f'sends {wanted}',
                'correct channels.<name>.type or .topic',
            )
        elif info.qos_profile.durability == DurabilityPolicy.TRANSIENT_LOCAL:
            yield fault(
                subject,
                f'{node_name(info)} asks for kept messages on {full}, and setpoints are volatile: '
                'none arrives',
                'change the durability of that subscription',
            )
    names = sorted({node_name(info) for info in listeners if info.topic_type == wanted})
    if names:
        yield ok(subject, f'{full} is taken by {", ".join(names)}')
    elif not listeners:
        yield warning(
            subject,
            f'nobody listens to {full}',
            'load and activate the controller, or correct channels.<name>.topic',
        )


def _action_findings(node: Node, channel: ChannelSettings) -> Iterator[Finding]:
    """Say who serves the action of a gripper; its servers publish the status of their goals."""
    subject, full = f'channel {channel.name}', node.resolve_topic_name(channel.topic)
    servers = sorted(set(map(node_name, node.get_publishers_info_by_topic(f'{full}{STATUS}'))))
    if servers:
        yield ok(subject, f'the action {full} is served by {", ".join(servers)}')
    else:
        yield fault(
            subject,
            f'nobody serves the action {full}',
            'load and activate the gripper controller, or correct channels.<name>.topic',
        )


def state_findings(settings: Settings, snapshot: Snapshot) -> Iterator[Finding]:
    """Compare what is measured with the limits of each channel, and show both."""
    for channel in settings.channels:
        sample = snapshot.get(channel.state)
        if sample is not None and isinstance(sample.value, dict) and channel.kind != 'pose':
            yield from _measured(channel, sample.value)


def _measured(channel: ChannelSettings, values: dict[str, float]) -> Iterator[Finding]:
    subject, shown = f'channel {channel.name}', []
    bounded = channel.kind in ('position', 'angle', 'binary')
    for joint, low, high in zip(channel.joints, channel.lower, channel.upper, strict=True):
        value = values.get(joint)
        if value is None:
            continue
        bounds = f' in [{low:g}, {high:g}]' if bounded else ''
        shown.append(f'{joint} {value:.3f}{bounds}')
        if bounded and not low <= value <= high:
            yield warning(
                subject,
                f'{joint} is measured at {value:.3f}, outside its limits [{low:g}, {high:g}]',
                'compare the units (rad or degrees), the sign, and the open and closed values of '
                'a gripper; correct the limits, or move the robot',
            )
    if shown:
        yield ok(subject, 'measured: ' + '; '.join(shown))


def following_findings(settings: Settings) -> Iterator[Finding]:
    """Say where nothing notices that the robot does not follow, or what it follows is amiss."""
    for said in unwatched(settings):
        yield warning('safety', said, 'set channels.<name>.max_tracking_error to what it may lag')
    for said in without_effort(settings):
        yield warning('channels', said, 'set the N or Nm that the gripper is to close with')
    for said in rotation_vectors(settings):
        yield warning('channels', said, 'or give the columns other names, if they are none')


def safety_findings(node: Node, settings: Settings) -> Iterator[Finding]:
    """Say whether what must speak before anything moves is there."""
    for name, topic, needed in (
        ('stop_topic', settings['stop_topic'], settings['require_heartbeat']),
        ('deadman_topic', settings['deadman_topic'], True),
        ('watchdog', f'~/{STANDING}' if settings['require_watchdog'] else '', True),
    ):
        if not topic:
            continue
        if node.get_publishers_info_by_topic(topic):
            yield ok('safety', f'{name} {node.resolve_topic_name(topic)} is published')
        else:
            said = f'nobody publishes {node.resolve_topic_name(topic)}, the {name}'
            remedy = 'start its node, or correct the parameter'
            why = ': every start is refused' if needed else ''
            yield (fault if needed else warning)('safety', said + why, remedy)


def controller_findings(node: Node, settings: Settings) -> Iterator[Finding]:
    """Say which controllers there are, where a controller manager answers."""
    managers = [
        name for name, kinds in node.get_service_names_and_types() if LIST_CONTROLLERS in kinds
    ]
    if not managers:
        yield ok('controllers', 'no controller manager is seen: nothing to compare')
        return
    try:
        kind = import_module('controller_manager_msgs.srv').ListControllers
    except ImportError:
        yield warning(
            'controllers',
            f'{managers[0]} is there, and its messages are not installed here',
            'install ros-*-controller-manager-msgs to have the controllers looked at',
        )
        return
    found: list[Controller] = []
    for name in managers:
        answer = _asked(node, name, kind)
        if answer is None:
            yield warning('controllers', f'{name} does not answer', 'see whether it runs')
        else:
            found += answer.controller
    yield from compared(found, settings.channels)


def _asked(node: Node, service: str, kind: Any) -> Any:
    client = node.create_client(kind, service)
    future = client.call_async(kind.Request())
    spin(node, ANSWER_WITHIN_S, future.done)
    node.destroy_client(client)
    return future.result() if future.done() else None


def compared(
    controllers: Sequence[Controller], channels: Sequence[ChannelSettings]
) -> Iterator[Finding]:
    """Compare each channel with the controller that its topic names."""
    known = {item.name: item for item in controllers}
    if not known:
        return
    for channel in channels:
        name = next((part for part in channel.topic.split('/') if part in known), None)
        if name is None:
            yield warning(
                f'channel {channel.name}',
                f'no controller has the name of a part of {channel.topic}; there are '
                f'{sorted(known)}',
                'load the controller, or correct channels.<name>.topic',
            )
        else:
            yield from _fits(known.pop(name), channel)
    for item in known.values():
        yield ok('controllers', f'{item.name} ({item.type}) is {item.state}')


def _fits(item: Controller, channel: ChannelSettings) -> Iterator[Finding]:
    subject, said = f'channel {channel.name}', f'{item.name} ({item.type}) is {item.state}'
    if item.state == 'active':
        yield ok(subject, said)
    else:
        yield fault(subject, said, f'ros2 control switch_controllers --activate {item.name}')
    takes = next((kind for part, kind in TAKES.items() if part in item.type.lower()), None)
    if takes is not None and takes != channel.type:
        yield fault(
            subject,
            f'{item.name} takes a {takes}, and channels.{channel.name}.type is {channel.type}',
            'correct the type, or choose another controller',
        )
    joints = list(dict.fromkeys(_joint(name) for name in item.required_command_interfaces))
    ordered = channel.type == FLOAT64_MULTI_ARRAY
    ours = list(channel.joints)
    if joints and (joints != ours if ordered else set(joints) != set(ours)):
        yield fault(
            subject,
            f'{item.name} commands {joints}, and channels.{channel.name}.joints are {ours}'
            + (', whose order is that of the values' if sorted(joints) == sorted(ours) else ''),
            'write the joints as the controller has them',
        )


def _joint(interface: str) -> str:
    return interface.rpartition('/')[0] or interface

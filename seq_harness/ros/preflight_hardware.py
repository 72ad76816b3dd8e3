"""What a hardware layer that works by topics waits for, as the robot's description says (G44)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from xml.etree import ElementTree

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from seq_harness.ros.findings import fault, Finding, ok
from std_msgs.msg import String

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)

STATES, COMMANDS = 'joint_states_topic', 'joint_commands_topic'
THRESHOLD = 'trigger_joint_command_threshold'
DEFAULTS = {STATES: '/robot_joint_states', COMMANDS: '/robot_joint_commands', THRESHOLD: '1e-5'}
"""The parameters of topic_based_ros2_control and of what followed it, and their defaults."""


class HardwareCheck:
    """Listen for the description of the robot; the executor's thread alone."""

    def __init__(self, node: Node, topic: str) -> None:
        """Subscribe to what robot_state_publisher keeps for late comers."""
        self._node = node
        self._text = ''
        self._subscription = node.create_subscription(
            String, topic or 'robot_description', self._arrived, LATCHED
        )

    def close(self) -> None:
        """Subscribe no longer."""
        self._node.destroy_subscription(self._subscription)

    def findings(self) -> Iterator[Finding]:
        """Say what each hardware layer of topics waits for before it sends a command."""
        for name, given in layers_by_topics(self._text).items():
            states, commands = given[STATES], given[COMMANDS]
            if not self._node.get_publishers_info_by_topic(states):
                yield fault(
                    f'hardware {name}',
                    f'nobody publishes {states}: the hardware layer hears no state, and sends no '
                    f'command on {commands} before it does',
                    f'start what publishes {states}',
                )
            else:
                yield ok(f'hardware {name}', f'{states} is published')
            if _number(given[THRESHOLD]) >= 0:
                yield ok(
                    f'hardware {name}',
                    f'it sends a command on {commands} only once that is further than '
                    f'{given[THRESHOLD]} from the state: a policy that holds the arm sends none '
                    f'({THRESHOLD} of -1 sends all)',
                )

    def _arrived(self, message: String) -> None:
        self._text = message.data


def layers_by_topics(description: str) -> dict[str, Mapping[str, Any]]:
    """Return the parameters of each hardware layer that commands by topics, by its name."""
    try:
        root = ElementTree.fromstring(description)
    except (ElementTree.ParseError, ValueError, RecursionError):
        return {}
    found: dict[str, Mapping[str, Any]] = {}
    for system in root.iter('ros2_control'):
        plugin = system.findtext('hardware/plugin', '').strip().lower()
        given = {
            item.get('name', ''): (item.text or '').strip()
            for item in system.iterfind('hardware/param')
        }
        if STATES in given or 'topic_based' in plugin or 'topic_hardware' in plugin:
            found[system.get('name', '?')] = {**DEFAULTS, **given}
    return found


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float(DEFAULTS[THRESHOLD])

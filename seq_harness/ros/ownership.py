"""Who else publishes on the command topics of a node."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.topic_endpoint_info import TopicEndpointInfo
from seq_harness.inputs import Verdict
from seq_harness.ros.subscribing import Tell

LOOK_S = 0.2
"""How often the graph is looked at."""

NAME = 'commands'
"""The name under which another publisher is told."""

UNKNOWN = ('', '_NODE_NAME_UNKNOWN_', '_CREATED_BY_BARE_DDS_APP_')
"""What a node's name is until discovery knows it, and where a publisher belongs to no node."""


def node_name(info: TopicEndpointInfo) -> str:
    """
    Return the full name of the node that an endpoint of a topic belongs to.

    An endpoint can be known before its node is, or belong to none: it is then called by what is
    known of it, its type and the id of its process.
    """
    if info.node_name not in UNKNOWN:
        return f'{info.node_namespace.rstrip("/")}/{info.node_name}'
    gid = ''.join(f'{byte:02x}' for byte in info.endpoint_gid[:12])
    return f'a participant whose node is not known (yet) ({info.topic_type}, id {gid})'


class Ownership:
    """
    Look for other publishers, and do about them what the policy says (G45).

    The executor's thread owns it. What another machine publishes is seen once discovery has.
    """

    def __init__(
        self,
        node: Node,
        publishers: Sequence[Publisher],
        policy: str,
        known: Callable[[], frozenset[str]] = frozenset,
    ) -> None:
        """
        Take `stop`, `refuse` or `warn`, as the parameter on_other_publisher says.

        `known` returns the identifiers, in hex, of publishers that may be there: the watchdog's.
        """
        self._node = node
        self._publishers = list(publishers)
        self._policy = policy
        self._known = known

    def refusal(self) -> str:
        """Say why an episode may not start now; empty if it may."""
        return '' if self._policy == 'warn' else self.others()

    def others(self) -> str:
        """Name the other publishers and their topics; empty where there are none."""
        found = []
        for publisher in self._publishers:
            names = self._others_on(publisher.topic_name)
            if names:
                found.append(f'{publisher.topic_name}, by {", ".join(names)}')
        if not found:
            return ''
        return (
            f'another publisher commands {"; ".join(found)}: stop it, or set on_other_publisher '
            'to warn'
        )

    def watch(self, stop: Callable[[str], object], tell: Tell) -> Callable[[], None]:
        """Look every `LOOK_S` from now on; return what ends that."""

        def look() -> None:
            others = self.others()
            tell(NAME, others, Verdict.CONTESTED)
            if others and self._policy == 'stop':
                stop(f'other_publisher: {others}')

        timer = self._node.create_timer(
            LOOK_S, look, clock=Clock(clock_type=ClockType.STEADY_TIME)
        )
        return lambda: _destroy(self._node, timer)

    def _others_on(self, topic: str) -> list[str]:
        """Name the nodes that publish on a topic beside us; our own name counts once."""
        own, known = self._node.get_fully_qualified_name(), self._known()
        names = [
            node_name(info)
            for info in self._node.get_publishers_info_by_topic(topic)
            if bytes(info.endpoint_gid).hex() not in known
        ]
        if own in names:
            names.remove(own)
        return sorted(set(names))


def _destroy(node: Node, timer: object) -> None:
    node.destroy_timer(timer)  # type: ignore[arg-type]

"""Who else publishes on the command topics of a node."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.node import Node
from rclpy.publisher import Publisher
from seq_harness.inputs import Verdict
from seq_harness.ros.subscribing import Tell

LOOK_S = 0.2
"""How often the graph is looked at."""

NAME = 'commands'
"""The name under which another publisher is told."""


class Ownership:
    """
    Look for other publishers, and do about them what the policy says (G45).

    The executor's thread owns it. What another machine publishes is seen once discovery has.
    """

    def __init__(self, node: Node, publishers: Sequence[Publisher], policy: str) -> None:
        """`policy` is `stop`, `refuse` or `warn`, as the parameter on_other_publisher says."""
        self._node = node
        self._publishers = list(publishers)
        self._policy = policy

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
        own = self._node.get_fully_qualified_name()
        names = [
            f'{info.node_namespace.rstrip("/")}/{info.node_name}'
            for info in self._node.get_publishers_info_by_topic(topic)
        ]
        if own in names:
            names.remove(own)
        return sorted(set(names))


def _destroy(node: Node, timer: object) -> None:
    node.destroy_timer(timer)  # type: ignore[arg-type]

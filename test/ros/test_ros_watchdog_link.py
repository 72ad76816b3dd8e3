"""When a harness takes its own silence for long enough that its watchdog acted."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import rclpy
from rclpy.context import Context
from rclpy.node import Node
from seq_harness.ros.beats import Beat, BEAT_QOS, Standing
from seq_harness.ros.spinning import spin
from seq_harness.ros.vigil import silence_s
from seq_harness.ros.watchdog_link import WatchdogLink
from std_msgs.msg import String

PERIOD_S = 0.1
FREEZE_NS = round(silence_s(PERIOD_S) * 1e9)


class Beating:
    """A link on a clock moved by hand."""

    def __init__(self, node: Node) -> None:
        self.now_ns = 0
        self.link = WatchdogLink(node, [], PERIOD_S, lambda: self.now_ns)

        self.heard: list[Beat] = []
        node.create_subscription(String, '~/heartbeat', self._on_beat, BEAT_QOS)
        self.node = node

    def _on_beat(self, message: String) -> None:
        self.heard.append(Beat.read(message.data))

    def last(self, within_s: float) -> Beat:
        """Return the newest beat once it is the last word, or after so long."""
        spin(self.node, within_s, lambda: bool(self.heard) and self.heard[-1].ends)
        return self.heard[-1]


@pytest.fixture
def beating() -> Iterator[Beating]:
    context = Context()
    rclpy.init(context=context)
    node = Node('harness', context=context, use_global_arguments=False)
    made = Beating(node)
    yield made
    node.destroy_node()
    rclpy.shutdown(context=context)


def test_a_silence_while_it_moves_counts_until_the_next_episode(beating: Beating) -> None:
    """Else whoever beats first after a freeze hides it from whoever publishes."""
    link = beating.link
    link.beat(1, True)
    assert not link.overdue
    beating.now_ns += FREEZE_NS
    assert link.overdue
    link.beat(1, True)
    assert link.overdue
    link.beat(1, False)
    assert link.overdue
    link.begin()
    assert not link.overdue


def test_a_silence_while_nothing_moves_is_over_with_the_next_beat(beating: Beating) -> None:
    link = beating.link
    beating.now_ns += FREEZE_NS
    link.beat(0, False)
    beating.now_ns += FREEZE_NS
    assert link.overdue
    link.beat(1, True)
    assert not link.overdue


def test_the_last_word_of_a_harness_says_that_it_ends(beating: Beating) -> None:
    beating.link.beat(1, True)
    beating.link.beat(1, False)
    beating.link.close()
    last = beating.last(10.0)
    assert (last.ends, last.moving, last.episode) == (True, False, 1)


def test_a_harness_that_may_still_move_the_robot_says_no_last_word(beating: Beating) -> None:
    """Its silence is what its watchdog waits for."""
    beating.link.beat(1, True)
    beating.link.close()
    assert not beating.last(0.5).ends


@pytest.mark.parametrize('text', ['', '[' * 100_000, '{"name": 3}', 'null'])
def test_what_is_no_standing_leaves_the_last_good_one(beating: Beating, text: str) -> None:
    assert beating.link.refusal() != ''
    publisher = beating.node.create_publisher(String, '~/watchdog', BEAT_QOS)
    spin(beating.node, 10.0, lambda: publisher.get_subscription_count() > 0)
    beating.link.beat(1, False)
    spin(beating.node, 10.0, lambda: bool(beating.heard))
    instance = beating.heard[-1].instance
    standing = Standing('/watchdog', instance, '', 0, 0.3, ())
    publisher.publish(String(data=standing.text()))
    spin(beating.node, 10.0, lambda: beating.link.refusal() == '')
    publisher.publish(String(data=text))
    spin(beating.node, 0.2)
    assert beating.link.refusal() == ''

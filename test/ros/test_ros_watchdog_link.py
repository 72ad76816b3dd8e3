"""When a harness takes its own silence for long enough that its watchdog acted."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import rclpy
from rclpy.context import Context
from rclpy.node import Node
from seq_harness.ros.vigil import silence_s
from seq_harness.ros.watchdog_link import WatchdogLink

PERIOD_S = 0.1
FREEZE_NS = round(silence_s(PERIOD_S) * 1e9)


class Beating:
    """A link on a clock moved by hand."""

    def __init__(self, node: Node) -> None:
        self.now_ns = 0
        self.link = WatchdogLink(node, [], PERIOD_S, lambda: self.now_ns)


@pytest.fixture
def beating() -> Iterator[Beating]:
    context = Context()
    rclpy.init(context=context)
    node = Node('harness', context=context, use_global_arguments=False)
    made = Beating(node)
    yield made
    made.link.close()
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

"""What is odd about simulated time, told once, and its end."""

from __future__ import annotations

from collections.abc import MutableMapping

from rclpy.node import Node
from seq_harness.ros.pacing import Pacer, SimulatedPacer
from seq_harness.ros.time_watch import SimulatedWatch

CLOCK = 'clock'
"""The name under which it is told."""


class ClockFault:
    """Looks at /clock for a node, where its loop goes by it; the executor's thread alone."""

    def __init__(self, node: Node, faults: MutableMapping[str, str]) -> None:
        """`faults` holds what is wrong by name, while it is."""
        self._node = node
        self._faults = faults
        self._pacer: SimulatedPacer | None = None
        self._watch = SimulatedWatch(self._ros_now_ns, self._largest_tick_ns)

    @property
    def said(self) -> str:
        """Return what is odd now; empty where nothing is."""
        return self._faults.get(CLOCK, '')

    def look(self, pacer: Pacer, period_ns: int) -> None:
        """Say what is odd for rows of `period_ns`, and that it is well again."""
        if not isinstance(pacer, SimulatedPacer):
            return
        self._pacer = pacer
        odd = self._watch.look(period_ns)
        if odd != self.said:
            # rclpy lets one place in the code log at one severity alone.
            if odd:
                self._node.get_logger().warning(odd)
            else:
                self._node.get_logger().info('the clock is well again')
        if odd:
            self._faults[CLOCK] = odd
        else:
            self._faults.pop(CLOCK, None)

    def _ros_now_ns(self) -> int:
        return int(self._node.get_clock().now().nanoseconds)

    def _largest_tick_ns(self) -> int:
        return 0 if self._pacer is None else self._pacer.take_largest_tick_ns()

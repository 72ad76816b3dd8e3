"""Letting messages arrive for a while."""

from __future__ import annotations

from collections.abc import Callable
import time

from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node

SPIN_S = 0.05


def spin(node: Node, seconds: float, done: Callable[[], bool] = lambda: False) -> None:
    """Spin a node for so long, or until what is awaited is there."""
    executor = SingleThreadedExecutor(context=node.context)
    executor.add_node(node)
    end = time.monotonic() + seconds
    while time.monotonic() < end and not done():
        executor.spin_once(timeout_sec=SPIN_S)
    executor.remove_node(node)
    executor.shutdown()

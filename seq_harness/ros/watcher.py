"""Start and stop a harness over its services, and collect what it and the arm say."""

from __future__ import annotations

from collections.abc import Callable
import json
import time
from types import TracebackType
from typing import Any

import rclpy
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from rclpy.signals import SignalHandlerOptions
from std_msgs.msg import Float64, Int32, String
from std_srvs.srv import Trigger

SPIN_S = 0.05

SHAPES: dict[str, Any] = {'ready': False, 'state': '', 'reason': '', 'rows': {}, 'policy': {}}
"""What the figures that are acted upon look like."""


class WatchTimeout(TimeoutError):
    """What was waited for did not come; says what, and for how long."""


class Watcher:
    """A node of its own context that watches one harness; spun by its caller's thread."""

    def __init__(self, harness: str = '/harness', arm: str = '/sim_arm') -> None:
        """`harness` and `arm` are the full names of the nodes to watch."""
        self._context = Context()
        rclpy.init(context=self._context, signal_handler_options=SignalHandlerOptions.NO)
        self.node = Node('watcher', context=self._context, use_global_arguments=False)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self.node)
        self.figures: dict[str, Any] = {}
        """The newest figures of the harness and of the arm."""
        self._arm: dict[str, Any] = {}
        self._clients = {
            name: self.node.create_client(Trigger, f'{harness}/{name}')
            for name in ('start', 'stop', 'pause', 'resume', 'take_over', 'replan')
        }
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self.node.create_subscription(String, f'{harness}/episode', self._on_episode, latched)
        self.node.create_subscription(Float64, f'{arm}/target_distance', self._on_distance, 1)
        self.node.create_subscription(Int32, f'{arm}/targets_reached', self._on_reached, latched)

    def __enter__(self) -> Watcher:
        """Watch."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Take the node out of the graph."""
        self._executor.shutdown()
        self.node.destroy_node()
        rclpy.shutdown(context=self._context)

    @property
    def ready(self) -> bool:
        """Whether the harness may be started."""
        return bool(self.figures.get('ready'))

    @property
    def sees_all(self) -> bool:
        """Whether the harness has every input."""
        return not self.figures.get('missing_inputs', True)

    @property
    def reason(self) -> str:
        """Why the last episode ended; empty while one runs, or before the first."""
        return str(self.figures.get('reason', ''))

    @property
    def live(self) -> bool:
        """Whether an episode is under way."""
        return str(self.figures.get('state', 'idle')) != 'idle'

    def wait(
        self, until: Callable[[], bool], within_s: float, what: str, each: Callable[[], None]
    ) -> None:
        """
        Spin until a condition holds; `each` is called between, and may raise.

        Raises
        ------
        WatchTimeout
            The condition did not hold in time; `what` names it.

        """
        end = time.monotonic() + within_s
        while not until():
            if time.monotonic() > end:
                raise WatchTimeout(f'{what} did not come within {within_s:g} s')
            self._executor.spin_once(timeout_sec=SPIN_S)
            each()

    def call(self, name: str, each: Callable[[], None] = lambda: None) -> str:
        """Call the service ~/`name`; return why it was refused, or an empty text."""
        client = self._clients[name]
        self.wait(client.service_is_ready, 10.0, f'the service {client.srv_name}', each)
        future = client.call_async(Trigger.Request())
        self.wait(future.done, 10.0, f'the answer of {client.srv_name}', each)
        response = future.result()
        return '' if response.success else str(response.message)

    def _on_episode(self, message: String) -> None:
        figures = _read(message.data)
        if figures is not None:
            self.figures = {**figures, **self._arm}

    def _on_distance(self, message: Float64) -> None:
        self._arm['target_distance_m'] = round(message.data, 4)
        self.figures.update(self._arm)

    def _on_reached(self, message: Int32) -> None:
        self._arm['targets_reached'] = message.data
        self.figures.update(self._arm)


def _read(text: str) -> dict[str, Any] | None:
    """Return the figures of an episode; None for what is none, as anybody may publish there."""
    try:
        figures = json.loads(text)
    except (ValueError, RecursionError):
        return None
    whole = isinstance(figures, dict) and all(
        isinstance(figures.get(name, empty), type(empty)) for name, empty in SHAPES.items()
    )
    return figures if whole else None

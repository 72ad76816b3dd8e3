"""What a robot hears of a harness, and when: setpoints, the episode, and the watchdog."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
import json
import threading
import time
from types import TracebackType
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from injections.limits import is_beyond
import rclpy
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from sensor_msgs.msg import JointState
from seq_harness.ros.node import LATCHED
from std_msgs.msg import Float64MultiArray, String
from std_srvs.srv import Trigger

LOOK_S = 0.01
SERVICE_S, TRIES, TRY_S = 15.0, 5, 4.0


class NotSeen(Exception):
    """What was waited for did not come; says what, and for how long."""


@dataclass(frozen=True)
class Setpoint:
    """One command as it came, on the steady clock."""

    at: float
    sent_ns: int
    """When it was sent, on the clock of whoever sent it."""
    values: tuple[float, ...]
    beyond: bool


class Judge:
    """A node in a participant and a thread of its own, so that nobody's freeze is its own."""

    def __init__(self) -> None:
        """Join the graph."""
        self._context = Context()
        rclpy.init(context=self._context, signal_handler_options=SignalHandlerOptions.NO)
        self.node = Node('judge', context=self._context, use_global_arguments=False)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self.node)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._spin, name='judge', daemon=True)
        self.setpoints: list[Setpoint] = []
        self.figures: dict[str, Any] = {}
        self.ended_ns: int | None = None
        """When the harness sent the end of the last episode, on its clock; None in an episode."""
        self.watchdog = ''
        """What the watchdog says that holds."""
        self._before: Sequence[float] | None = None
        self._measured: Sequence[float] | None = None
        self._clients: dict[str, Any] = {}
        # rclpy's types leave out callbacks that also take what is known of a message.
        on_command: Any = self._on_command
        on_episode: Any = self._on_episode
        self.node.create_subscription(Float64MultiArray, 'commands', on_command, 100)
        self.node.create_subscription(String, 'harness/episode', on_episode, LATCHED)
        self.node.create_subscription(JointState, 'joint_states', self._on_joints, 10)
        self.node.create_subscription(DiagnosticArray, '/diagnostics', self._on_diagnostics, 10)

    def __enter__(self) -> Judge:
        """Listen."""
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave the graph."""
        self._over.set()
        self._thread.join(5.0)
        self._executor.shutdown()
        self.node.destroy_node()  # type: ignore[no-untyped-call]
        rclpy.shutdown(context=self._context)

    @property
    def state(self) -> str:
        """Where the harness stands, as it says."""
        return str(self.figures.get('state', ''))

    @property
    def reason(self) -> str:
        """Why the last episode ended; empty while one runs, or before the first."""
        return str(self.figures.get('reason', '')) if self.state == 'idle' else ''

    def until(self, condition: Callable[[], bool], within_s: float, what: str) -> None:
        """
        Return once a condition holds.

        Raises
        ------
        NotSeen
            It did not hold in time.

        """
        end = time.monotonic() + within_s
        while not condition():
            if time.monotonic() > end:
                raise NotSeen(f'{what} did not come within {within_s:g} s')
            self._over.wait(LOOK_S)

    def rest(self, seconds: float) -> None:
        """Let time pass while others work."""
        self._over.wait(seconds)

    def call(self, name: str, node: str = '/harness') -> str:
        """Call a service without arguments; return why it was refused, or an empty text."""
        full = f'{node}/{name}'
        if full not in self._clients:
            self._clients[full] = self.node.create_client(Trigger, full)
        client = self._clients[full]
        self.until(client.service_is_ready, SERVICE_S, f'the service {full}')
        for _ in range(TRIES):
            # A server that has not found this client yet answers to nobody.
            future = client.call_async(Trigger.Request())
            try:
                self.until(future.done, TRY_S, f'the answer of {full}')
            except NotSeen:
                continue
            response = future.result()
            return '' if response.success else str(response.message)
        raise NotSeen(f'{full} did not answer')

    def _spin(self) -> None:
        while not self._over.is_set():
            self._executor.spin_once(timeout_sec=0.05)

    def _on_command(self, message: Float64MultiArray, info: Any) -> None:
        values = tuple(message.data)
        beyond = is_beyond(values, self._before, self._measured)
        self._before = values
        sent_ns = info['source_timestamp']
        self.setpoints.append(Setpoint(time.monotonic(), sent_ns, values, beyond))

    def _on_joints(self, message: JointState) -> None:
        self._measured = list(message.position)

    def _on_episode(self, message: String, info: Any) -> None:
        before, self.figures = self.reason, json.loads(message.data)
        if self.state != 'running':
            self._before = None
        if self.reason and not before:
            self.ended_ns = info['source_timestamp']
        elif not self.reason:
            self.ended_ns = None

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        for status in message.status:
            if status.name.startswith('watchdog: '):
                holds = status.level == DiagnosticStatus.ERROR
                self.watchdog = str(status.message) if holds else ''

"""A robot of velocities in this process; worker, harness and watchdog in others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
import json
import os
from pathlib import Path
import re
import signal
import threading
import time
from typing import Any, Protocol, TypeVar

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
import pytest
import rclpy
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from sensor_msgs.msg import JointState
from seq_harness.ros.node import LATCHED
from std_msgs.msg import Float64MultiArray, String
from std_srvs.srv import Trigger
from support.waiting import PATIENCE_S, wait_for

N = TypeVar('N', bound=Node)

JOINTS = ['j1', 'j2']
MOVING, STILL = [0.3, -0.2], [0.0, 0.0]
PERIOD_S = 0.1
TRIES, TRY_S = 5, 3.0


def policy(hz: float) -> list[str]:
    """Return what serves a policy of two joints that move evenly."""
    settings = {
        'columns': JOINTS,
        'actions': {'key': 'actions', 'hz': hz},
        'chunks': [{'actions': [MOVING] * 20}],
    }
    given = [f'{name}={json.dumps(value)}' for name, value in settings.items()]
    sets = [word for setting in given for word in ('--set', setting)]
    return ['seq_harness.worker.policies.scripted:Scripted', '--port', '0', *sets]


class Processes(Protocol):
    """Processes of this package by name, as `Children` are."""

    def start(self, name: str, command: Sequence[str]) -> None:
        """Start `seq-harness COMMAND ...`."""

    def log(self, name: str) -> Path:
        """Return the file that takes what it writes."""

    def pid(self, name: str) -> int:
        """Return its process id."""

    def ended(self, name: str) -> int | None:
        """Return its exit status, or None while it runs."""

    def check(self, names: Sequence[str] | None = None) -> None:
        """Check that it runs."""


class Joints(Node):
    """
    Publishes joints, from a participant of its own.

    A process that is frozen while it holds the lock of its shared memory holds up whoever
    publishes to it: what is commanded must be heard meanwhile.
    """

    def __init__(self, context: Context) -> None:
        super().__init__('joints', context=context, use_global_arguments=False)
        self._joints = self.create_publisher(JointState, 'joint_states', 10)
        self.create_timer(0.02, self._publish)

    def _publish(self) -> None:
        state = JointState(name=JOINTS, position=[0.0, 0.0])
        state.header.stamp = self.get_clock().now().to_msg()
        self._joints.publish(state)


class Robot(Node):
    """Notes when what was commanded and told."""

    def __init__(self, context: Context) -> None:
        super().__init__('robot', context=context, use_global_arguments=False)
        self.commands: list[tuple[float, list[float]]] = []
        self.episode: dict[str, Any] = {}
        self.status: DiagnosticStatus | None = None
        self.create_subscription(Float64MultiArray, 'commands', self._on_command, 100)
        self.create_subscription(String, 'harness/episode', self._on_episode, LATCHED)
        self.create_subscription(DiagnosticArray, '/diagnostics', self._on_diagnostics, 10)

    def last(self) -> list[float] | None:
        """Return the newest command."""
        return self.commands[-1][1] if self.commands else None

    def since(self, instant: float) -> list[list[float]]:
        """Return the commands that came after an instant of the monotonic clock."""
        return [values for at, values in list(self.commands) if at > instant]

    def _on_command(self, message: Float64MultiArray) -> None:
        self.commands.append((time.monotonic(), list(message.data)))

    def _on_episode(self, message: String) -> None:
        self.episode = json.loads(message.data)

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        for status in message.status:
            if status.name == 'watchdog: harness':
                self.status = status


class Rig:
    """A robot in this process; a worker, a harness and a watchdog in others."""

    def __init__(self, children: Processes, robot: Robot, folder: Path) -> None:
        self.children = children
        self.robot = robot
        self._clients: dict[str, Any] = {}
        self._parameters = folder / 'parameters.yaml'

    def harness(self, **changes: Any) -> None:
        """Start the harness with a velocity channel."""
        log = self.children.log('worker')
        pattern = re.compile(r'serving \S+ on (ws://\S+)')
        wait_for(lambda: bool(pattern.search(log.read_text())), PATIENCE_S, 'the worker')
        found = pattern.search(log.read_text())
        values = {
            'worker_url': found.group(1) if found else '',
            'preview': False,
            'require_watchdog': True,
            'input_names': ['state'],
            'inputs.state.topic': 'joint_states',
            'inputs.state.type': 'joint_state',
            'inputs.state.joints': JOINTS,
            # So that nothing but the freeze itself ends the episode after it.
            'inputs.state.max_age_s': 60.0,
            'channel_names': ['arm'],
            'channels.arm.topic': 'commands',
            'channels.arm.type': 'float64_multi_array',
            'channels.arm.kind': 'velocity',
            'channels.arm.joints': JOINTS,
            'channels.arm.lower': [-1.0, -1.0],
            'channels.arm.upper': [1.0, 1.0],
            'channels.arm.max_velocity': [20.0, 20.0],
            **{name.replace('__', '.'): value for name, value in changes.items()},
        }
        self._parameters.write_text(json.dumps({'/**': {'ros__parameters': values}}))
        command = ['harness', '--ros-args', '--params-file', str(self._parameters)]
        self.children.start('harness', command)

        def ready() -> bool:
            self.children.check(['harness'])
            return bool(self.robot.episode.get('ready'))

        try:
            self.until(ready, 'a ready harness')
        except AssertionError as error:
            said = self.children.log('harness').read_text()
            raise AssertionError(
                f'{error}; it is told {self.robot.episode}; it says\n{said}'
            ) from None

    def watchdog(self, timeout_s: float = 0.0) -> None:
        """Start a watchdog; 0 s stands for as long as it takes by itself for silence."""
        parameter = f'timeout_s:={timeout_s}'
        self.children.start('watchdog', ['watchdog', '--ros-args', '-p', parameter])

    def until(self, condition: Callable[[], bool], what: str) -> None:
        wait_for(condition, PATIENCE_S, what)

    def start(self) -> str:
        """Ask for an episode; return why it is refused."""
        return self.call('/harness/start')

    def call(self, name: str) -> str:
        """Call a service without arguments; return why it is refused."""
        if name not in self._clients:
            self._clients[name] = self.robot.create_client(Trigger, name)
        client = self._clients[name]
        self.until(client.service_is_ready, f'the service {name}')
        answered: list[Any] = []
        for _ in range(TRIES):
            # A server that has not found this client yet answers to nobody.
            client.call_async(Trigger.Request()).add_done_callback(
                lambda future: answered.append(future.result())
            )
            with suppress(AssertionError):
                wait_for(lambda: bool(answered), TRY_S, f'the answer of {name}')
                return '' if answered[0].success else str(answered[0].message)
        raise AssertionError(f'{name} did not answer')

    def play(self) -> None:
        """Start an episode once that is allowed, and wait until it moves the robot."""

        def moved() -> bool:
            # A machine that is too busy ends an episode as well.
            if self.robot.episode.get('state') == 'idle':
                self.start()
            return [values for _, values in self.robot.commands[-10:]] == [MOVING] * 10

        self.until(moved, 'velocities')

    def signal(self, name: str, number: int) -> float:
        """Send a signal; return when."""
        os.kill(self.children.pid(name), number)
        return time.monotonic()

    def zeroed_after(self, instant: float) -> float:
        """Wait for the first zero after an instant; return how long after it came, in s."""
        self.until(lambda: STILL in self.robot.since(instant), 'zero')
        commands = list(self.robot.commands)
        return next(at for at, values in commands if at > instant and values == STILL) - instant


@contextmanager
def spun(kind: Callable[[Context], N]) -> Iterator[N]:
    """Give a node that has a participant and a thread of its own."""
    context = Context()
    rclpy.init(context=context)
    node, executor = kind(context), SingleThreadedExecutor(context=context)
    executor.add_node(node)
    over = threading.Event()
    thread = threading.Thread(target=_spin, args=(executor, over), daemon=True)
    thread.start()
    yield node
    over.set()
    thread.join(PATIENCE_S)
    if thread.is_alive():
        pytest.fail(f'the middleware holds up {node.get_name()}')
    executor.shutdown()
    node.destroy_node()  # type: ignore[no-untyped-call]
    rclpy.shutdown(context=context)


@contextmanager
def watched(processes: Processes, folder: Path, hz: float = 1 / PERIOD_S) -> Iterator[Rig]:
    """Give a robot, and a worker beside which a harness and a watchdog may be started."""
    with spun(Joints), spun(Robot) as robot:
        processes.start('worker', ['worker', *policy(hz)])
        yield Rig(processes, robot, folder)
        for name in ('harness', 'watchdog'):
            _thaw(processes, name)


def _spin(executor: SingleThreadedExecutor, over: threading.Event) -> None:
    while not over.is_set():
        executor.spin_once(timeout_sec=0.05)


def _thaw(children: Processes, name: str) -> None:
    with suppress(KeyError, ProcessLookupError):
        os.kill(children.pid(name), signal.SIGCONT)

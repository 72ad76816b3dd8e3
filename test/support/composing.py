"""Harness nodes in a test's own executor, beside an arm that a test moves by messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
import json
import re
import threading
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from lifecycle_msgs.srv import ChangeState
import rclpy
from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.context import Context
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState
from seq_harness.cli.children import Children
from seq_harness.ros.node import HarnessNode, LATCHED
from std_msgs.msg import Float64MultiArray, String
from std_srvs.srv import Trigger
from support.waiting import PATIENCE_S, wait_for

JOINTS = tuple(f'joint_{number}' for number in range(1, 7))
HOLD = 'seq_harness.worker.policies.hold:Hold'


def parameters(url: str, **changes: Any) -> list[Parameter]:
    """Return the overrides of a harness of six joints; `__` stands for a dot."""
    values: dict[str, Any] = {
        'worker_url': url,
        'preview': False,
        'input_names': ['state'],
        'inputs.state.topic': 'joint_states',
        'inputs.state.type': 'joint_state',
        'inputs.state.joints': list(JOINTS),
        'inputs.state.max_age_s': 3.0,
        'channel_names': ['arm'],
        'channels.arm.topic': 'commands',
        'channels.arm.type': 'float64_multi_array',
        'channels.arm.joints': list(JOINTS),
        'channels.arm.state': 'state',
        'channels.arm.lower': [-1.0] * 6,
        'channels.arm.upper': [1.0] * 6,
        'channels.arm.max_velocity': [2.0] * 6,
        'channels.arm.max_tracking_error': 2.0,
    }
    values.update({name.replace('__', '.'): value for name, value in changes.items()})
    return [
        Parameter(name, value=value)  # type: ignore[no-untyped-call]
        for name, value in values.items()
    ]


class Arm(Node):
    """Publishes joint states of one namespace; collects what is commanded and told there."""

    def __init__(self, namespace: str, context: Context, simulated: bool = False) -> None:
        """Stamp by /clock where `simulated`; publish in real time all the same."""
        super().__init__(
            'arm',
            namespace=namespace,
            context=context,
            use_global_arguments=False,
            parameter_overrides=[
                Parameter('use_sim_time', value=simulated)  # type: ignore[no-untyped-call]
            ],
        )
        self.commands: list[list[float]] = []
        self.episode: dict[str, Any] = {}
        self.statuses: dict[str, Any] = {}
        self._states = self.create_publisher(JointState, 'joint_states', 10)
        self.create_subscription(Float64MultiArray, 'commands', self._on_command, 10)
        self.create_subscription(String, 'harness/episode', self._on_episode, LATCHED)
        self.create_subscription(DiagnosticArray, '/diagnostics', self._on_diagnostics, 10)
        self.create_timer(0.02, self._publish, clock=Clock(clock_type=ClockType.STEADY_TIME))
        self.moves = True

    def _publish(self) -> None:
        if self.moves:
            state = JointState(name=list(JOINTS), position=[0.0] * 6)
            state.header.stamp = self.get_clock().now().to_msg()
            self._states.publish(state)

    def _on_command(self, message: Float64MultiArray) -> None:
        self.commands.append(list(message.data))

    def _on_episode(self, message: String) -> None:
        self.episode = json.loads(message.data)

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        self.statuses.update({status.name: status for status in message.status})


class Composition:
    """An executor on a thread of its own, and the nodes in it."""

    def __init__(self, context: Context, url: str) -> None:
        self.context = context
        self.url = url
        self.executor = SingleThreadedExecutor(context=context)
        self.failure: list[BaseException] = []
        self.nodes: list[Node] = []
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._spin)

    def harness(self, namespace: str = '', **changes: Any) -> HarnessNode:
        """Add a harness of one namespace."""
        node = HarnessNode(
            namespace=namespace,
            context=self.context,
            use_global_arguments=False,
            parameter_overrides=parameters(self.url, **changes),
        )
        self.add(node)
        return node

    def arm(self, namespace: str = '', simulated: bool = False) -> Arm:
        """Add an arm."""
        arm = Arm(namespace, self.context, simulated)
        self.add(arm)
        return arm

    def add(self, node: Node) -> None:
        self.nodes.append(node)
        self.executor.add_node(node)

    def spin(self) -> None:
        self._thread.start()

    def close(self) -> None:
        # Shut down while it spins, an executor can meet parts of its own that are gone.
        self._ending.set()
        self.executor.wake()
        self._thread.join(PATIENCE_S)
        self.executor.shutdown()
        for node in self.nodes:
            if isinstance(node, HarnessNode):
                node.close()
            node.destroy_node()  # type: ignore[no-untyped-call]
        if self.failure:
            raise self.failure[0]

    def _spin(self) -> None:
        try:
            while not self._ending.is_set():
                self.executor.spin_once(timeout_sec=0.1)
        except ExternalShutdownException:
            pass
        except BaseException as error:
            self.failure.append(error)


@contextmanager
def composition(children: Children, policy: str = HOLD) -> Iterator[Composition]:
    """Serve a policy, and give an executor to put nodes into; `spin` starts it."""
    children.start('worker', ['worker', policy, '--port', '0'])
    log, pattern = children.log('worker'), re.compile(r'serving \S+ on (ws://\S+)')
    wait_for(lambda: bool(pattern.search(log.read_text())), PATIENCE_S, 'the worker')
    found = pattern.search(log.read_text())
    context = Context()
    rclpy.init(context=context)
    composed = Composition(context, found.group(1) if found else '')
    try:
        yield composed
    finally:
        composed.close()
        rclpy.shutdown(context=context)


class Caller:
    """Calls services from the test's own thread; a node of the composition's participant."""

    def __init__(self, context: Context) -> None:
        """Within one participant a service is matched at once: no discovery loses a request."""
        self.node = Node('caller', context=context, use_global_arguments=False)
        self._executor = SingleThreadedExecutor(context=context)
        self._executor.add_node(self.node)
        self._clients: dict[str, Any] = {}

    def close(self) -> None:
        self._executor.shutdown()
        self.node.destroy_node()  # type: ignore[no-untyped-call]

    def trigger(self, name: str) -> Any:
        """Call a service without arguments; return its response."""
        return self._call(Trigger, name, Trigger.Request())

    def change(self, harness: str, transition: int) -> bool:
        """Ask for a lifecycle transition; tell whether it was made."""
        request = ChangeState.Request()
        request.transition.id = transition
        return bool(self._call(ChangeState, f'{harness}/change_state', request).success)

    def ask(self, kind: Any, name: str, request: Any) -> Any:
        """Call a service of any kind; return its response."""
        return self._call(kind, name, request)

    def until(
        self, condition: Callable[[], bool], what: str, within_s: float = PATIENCE_S
    ) -> None:
        """Wait for something, spinning meanwhile."""
        wait_for(lambda: self._spun(condition), within_s, what)

    def _spun(self, condition: Callable[[], bool]) -> bool:
        self._executor.spin_once(timeout_sec=0.01)
        return condition()

    def _call(self, kind: Any, name: str, request: Any) -> Any:
        if name not in self._clients:
            client = self._clients[name] = self.node.create_client(kind, name)
            self.until(client.service_is_ready, f'the service {name}')
        future = self._clients[name].call_async(request)
        self.until(future.done, f'the answer of {name}')
        return future.result()


def levels(statuses: Mapping[str, Any]) -> dict[str, int]:
    """Return the level of each status by its part."""
    return {name.partition(': ')[2]: status.level[0] for name, status in statuses.items()}


def keys(statuses: Mapping[str, Any], part: str) -> list[str]:
    """Return the names of the values of one part's status."""
    return list(values(statuses, part))


def values(statuses: Mapping[str, Any], part: str) -> dict[str, str]:
    """Return the values of one part's status by their names."""
    found = (status for name, status in statuses.items() if name.endswith(f': {part}'))
    return {pair.key: pair.value for status in found for pair in status.values}

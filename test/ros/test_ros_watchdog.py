"""A harness that is killed or frozen while it moves the robot, and the watchdog beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
import json
import os
from pathlib import Path
import re
import signal
import threading
import time
from typing import Any, TypeVar

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
import pytest
import rclpy
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from sensor_msgs.msg import JointState
from seq_harness.cli.children import Children
from seq_harness.ros.node import LATCHED
from std_msgs.msg import Float64MultiArray, String
from std_srvs.srv import Trigger
from support.waiting import PATIENCE_S, wait_for

N = TypeVar('N', bound=Node)

JOINTS = ['j1', 'j2']
MOVING, STILL = [0.3, -0.2], [0.0, 0.0]
PERIOD_S = 0.1
BOUND_S = 3 * PERIOD_S
SLACK_S = 0.05
"""What two cores that do something else may add."""
TRIES, TRY_S = 5, 3.0
FREEZE_S = 1.0
MOMENT_S = 0.42
"""Later than three rows, and less late than what ends an episode."""
ENDS_S = 5.0
AGREE_S = 0.5
"""How long something is watched that must not happen."""

POLICY = [
    'seq_harness.worker.policies.scripted:Scripted',
    '--port',
    '0',
    '--set',
    f'columns={json.dumps(JOINTS)}',
    '--set',
    'actions=' + json.dumps({'key': 'actions', 'hz': 1 / PERIOD_S}),
    '--set',
    'chunks=' + json.dumps([{'actions': [MOVING] * 20}]),
]


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

    def __init__(self, children: Children, robot: Robot, folder: Path) -> None:
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

        self.until(ready, 'a ready harness')

    def watchdog(self) -> None:
        self.children.start('watchdog', ['watchdog'])

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
    thread.join(ENDS_S)
    if thread.is_alive():
        pytest.fail(f'the middleware holds up {node.get_name()}')
    executor.shutdown()
    node.destroy_node()
    rclpy.shutdown(context=context)


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    with Children(tmp_path) as children, spun(Joints), spun(Robot) as robot:
        children.start('worker', ['worker', *POLICY])
        yield Rig(children, robot, tmp_path)
        for name in ('harness', 'watchdog'):
            _thaw(children, name)


def _spin(executor: SingleThreadedExecutor, over: threading.Event) -> None:
    while not over.is_set():
        executor.spin_once(timeout_sec=0.05)


def _thaw(children: Children, name: str) -> None:
    with suppress(KeyError, ProcessLookupError):
        os.kill(children.pid(name), signal.SIGCONT)


@pytest.mark.parametrize('number', [signal.SIGKILL, signal.SIGSTOP, signal.SIGSEGV])
def test_g42_a_harness_that_is_killed_crashes_or_freezes_leaves_the_robot_at_zero_in_3_periods(
    rig: Rig, number: int
) -> None:
    rig.watchdog()
    rig.harness()
    rig.play()
    at = rig.signal('harness', number)
    after_s = rig.zeroed_after(at)
    print(f'{signal.Signals(number).name}: zero after {after_s * 1e3:.0f} ms')
    assert after_s < BOUND_S + SLACK_S
    rig.until(lambda: rig.robot.since(at).count(STILL) > 5, 'more zeros')
    assert MOVING not in rig.robot.since(at + after_s)
    rig.until(lambda: rig.robot.status is not None, 'a status')
    status = rig.robot.status
    assert status is not None
    assert status.level == DiagnosticStatus.ERROR
    assert f'fell silent during episode {rig.robot.episode["episode"]} ' in status.message
    assert 'zero goes to /commands' in status.message


def test_a_watchdog_sends_nothing_while_its_harness_is_well(rig: Rig) -> None:
    rig.watchdog()
    rig.harness()
    rig.play()
    count = len(rig.robot.commands)
    rig.until(lambda: len(rig.robot.commands) >= count + 30, 'velocities')
    assert STILL not in [values for _, values in rig.robot.commands[count:]]


def test_it_holds_until_a_new_harness_begins_a_new_episode(rig: Rig) -> None:
    rig.watchdog()
    rig.harness()
    rig.play()
    rig.zeroed_after(rig.signal('harness', signal.SIGKILL))
    rig.robot.episode = {}
    rig.harness()
    at = time.monotonic()
    rig.until(lambda: rig.robot.since(at).count(STILL) > 5, 'zeros while nothing is played')
    rig.play()


def test_a_frozen_harness_that_goes_on_commands_nothing_of_its_old_plan(rig: Rig) -> None:
    rig.watchdog()
    rig.harness()
    rig.play()
    rig.zeroed_after(rig.signal('harness', signal.SIGSTOP))
    at = rig.signal('harness', signal.SIGCONT)
    rig.until(lambda: rig.robot.episode.get('state') == 'idle', 'the end of the episode')
    assert re.match('loop_stalled|watchdog: /watchdog', rig.robot.episode['reason'])
    assert MOVING not in rig.robot.since(at)
    assert rig.start() == ''
    rig.until(lambda: rig.robot.last() == MOVING, 'another episode')


def test_a_frozen_harness_ends_its_episode_by_name_without_a_watchdog_too(rig: Rig) -> None:
    rig.harness(require_watchdog=False, channels__arm__controller_timeout_s=0.2)
    rig.play()
    frozen = rig.signal('harness', signal.SIGSTOP)
    rig.until(lambda: time.monotonic() > frozen + FREEZE_S, 'a long freeze')
    at = rig.signal('harness', signal.SIGCONT)
    rig.until(lambda: rig.robot.episode.get('state') == 'idle', 'the end of the episode')
    assert rig.robot.episode['reason'] == 'loop_stalled'
    assert rig.robot.since(at) == [STILL]


def test_a_harness_that_was_frozen_for_a_moment_asks_anew(rig: Rig) -> None:
    rig.harness(require_watchdog=False, channels__arm__controller_timeout_s=0.2)
    rig.play()
    frozen = rig.signal('harness', signal.SIGSTOP)
    rig.until(lambda: time.monotonic() > frozen + MOMENT_S, 'a short freeze')
    at = rig.signal('harness', signal.SIGCONT)
    rig.until(lambda: rig.robot.since(at)[-1:] == [MOVING], 'a new plan')
    assert rig.robot.since(at)[0] == STILL, 'nothing of the old one'
    rig.until(lambda: rig.robot.episode.get('stalls') == 1, 'its count')
    assert rig.robot.episode['rows']['dropped']['late'] > 0


def test_without_a_watchdog_nothing_starts_and_what_plays_ends(rig: Rig) -> None:
    rig.harness()
    assert 'no watchdog of /harness is heard: start seq-harness watchdog' in rig.start()
    rig.watchdog()
    rig.until(lambda: 'no watchdog' not in rig.start(), 'a watchdog')
    rig.play()
    rig.signal('watchdog', signal.SIGSTOP)
    rig.until(lambda: rig.robot.episode.get('state') == 'idle', 'the end of the episode')
    assert rig.robot.episode['reason'].startswith('watchdog_lost: ')
    assert rig.robot.last() == STILL
    assert 'no watchdog' in rig.start()
    rig.signal('watchdog', signal.SIGCONT)
    rig.until(lambda: rig.start() == '', 'a start')


def test_a_watchdog_is_no_other_commander_but_anybody_of_its_name_is(rig: Rig) -> None:
    rig.watchdog()
    rig.harness()
    rig.play()
    context = Context()
    rclpy.init(context=context)
    stranger = Node('watchdog', context=context, use_global_arguments=False)
    try:
        known = lambda: rig.robot.get_node_names().count('watchdog') == 2  # noqa: E731
        rig.until(known, 'the name of the stranger')
        stranger.create_publisher(Float64MultiArray, 'commands', 1)
        rig.until(lambda: rig.robot.episode.get('state') == 'idle', 'the end of the episode')
        assert rig.robot.episode['reason'].startswith('other_publisher: ')
    finally:
        stranger.destroy_node()
        rclpy.shutdown(context=context)


def test_what_is_held_is_let_go_by_hand(rig: Rig) -> None:
    rig.watchdog()
    rig.harness()
    rig.play()
    assert rig.call('/watchdog/release') == 'nothing is held'
    at = rig.signal('harness', signal.SIGKILL)
    rig.zeroed_after(at)
    assert rig.call('/watchdog/release') == ''
    released = time.monotonic() + 2 * PERIOD_S
    rig.until(lambda: time.monotonic() > released + AGREE_S, 'half a second')
    assert rig.robot.since(released) == []


def test_an_episode_that_ends_well_is_followed_by_nothing(rig: Rig) -> None:
    rig.watchdog()
    rig.harness()
    rig.play()
    at = rig.signal('harness', signal.SIGTERM)
    rig.until(lambda: rig.children.ended('harness') is not None, 'the end of the node')
    rig.until(lambda: time.monotonic() > at + AGREE_S, 'half a second')
    assert rig.robot.last() == STILL
    assert rig.robot.since(at).count(STILL) == 1
    rig.until(
        lambda: rig.robot.status is not None and rig.robot.status.level == DiagnosticStatus.WARN,
        'a warning',
    )


@pytest.mark.parametrize(
    ('parameter', 'said'),
    [('timeout_s:=-1.0', "'timeout_s' must be a double in"), ('harness:=3', "'harness' must be")],
)
def test_a_wrong_parameter_of_a_watchdog_is_named(
    tmp_path: Path, parameter: str, said: str
) -> None:
    with Children(tmp_path) as children:
        children.start('watchdog', ['watchdog', '--ros-args', '-p', parameter])
        wait_for(lambda: children.ended('watchdog') is not None, PATIENCE_S, 'the refusal')
        assert children.ended('watchdog') == 2
        assert said in children.log('watchdog').read_text()

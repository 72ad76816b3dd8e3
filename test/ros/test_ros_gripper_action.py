"""Grippers that take goals, against real action servers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
import threading
from typing import Any

import pytest
import rclpy
from rclpy.action.server import ActionServer, CancelResponse, GoalResponse
from rclpy.context import Context
from rclpy.executors import MultiThreadedExecutor
from rclpy.node import Node
from seq_harness.harness import Report, State
from seq_harness.inputs import Verdict
from seq_harness.outputs import Outputs
from seq_harness.ros.commanding import Commanding
from seq_harness.settings import parse
from support.robots import MS
from support.waiting import PATIENCE_S, wait_for

action = pytest.importorskip('control_msgs.action', reason='needs control_msgs')

LEAST = 0.01
"""How far a value must be from the last goal."""
WAITS = 'goals wait until it ends'


class Gripper:
    """An action server whose goals end when a test says so, or are taken over by the next."""

    def __init__(
        self, node: Node, kind: Any, *, one_at_a_time: bool = False, keeps: bool = False
    ) -> None:
        self.taken: list[Any] = []
        """The commands of the goals that were accepted, in order."""
        self.refuses = False
        self.running: Any = None
        self.cancelled = 0
        self._kind = kind
        self._one_at_a_time = one_at_a_time
        self._keeps = keeps
        self._over = threading.Event()
        self._stalled = False
        self._server = ActionServer(
            node,
            kind,
            'gripper_cmd',
            execute_callback=self._execute,
            goal_callback=self._judge,
            cancel_callback=self._cancel,
            callback_group=rclpy.callback_groups.ReentrantCallbackGroup(),
        )

    def end(self, *, stalled: bool = False) -> None:
        """End the goal that runs, as reached or standing against something."""
        self._stalled = stalled
        self._over.set()

    def close(self) -> None:
        self._over.set()
        self._server.destroy()

    def _judge(self, goal: Any) -> Any:
        busy = self.running is not None and self._one_at_a_time
        return GoalResponse.REJECT if self.refuses or busy else GoalResponse.ACCEPT

    def _cancel(self, handle: Any) -> Any:
        self.cancelled += not self._keeps
        return CancelResponse.REJECT if self._keeps else CancelResponse.ACCEPT

    def _execute(self, handle: Any) -> Any:
        self.taken.append(handle.request.command)
        self.running = handle
        result = self._kind.Result()
        while True:
            if handle.is_cancel_requested:
                handle.canceled()
                break
            if self.running is not handle:
                handle.abort()
                return result
            if self._over.wait(0.005):
                self._over.clear()
                result.stalled, result.reached_goal = self._stalled, not self._stalled
                (handle.abort if self._stalled else handle.succeed)()
                break
        self.running = None
        return result


class Rig:
    """The command outputs of a harness, a gripper, and what is told."""

    def __init__(self, context: Context) -> None:
        self.node = Node('harness', context=context, use_global_arguments=False)
        self.robot = Node('robot', context=context, use_global_arguments=False)
        self.told: dict[str, str] = {}
        self._executor = MultiThreadedExecutor(2, context=context)
        self._parts: list[Any] = []
        for node in (self.node, self.robot):
            self._executor.add_node(node)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._spin)
        self._thread.start()

    def gripper(self, kind: Any = None, **options: Any) -> Gripper:
        made = Gripper(self.robot, kind or action.GripperCommand, **options)
        self._parts.append(made)
        return made

    def commanding(self, kind: str = 'gripper_action', **changes: Any) -> Commanding:
        values = {
            'preview': False,
            'input_names': ['state'],
            'inputs.state.topic': 'joint_states',
            'inputs.state.type': 'joint_state',
            'inputs.state.joints': ['finger'],
            'channel_names': ['hand'],
            'channels.hand.topic': 'gripper_cmd',
            'channels.hand.type': kind,
            'channels.hand.joints': ['finger'],
            'channels.hand.state': 'state',
            'channels.hand.lower': [0.0],
            'channels.hand.upper': [1.0],
            'channels.hand.max_velocity': [10.0],
            'channels.hand.max_effort': 20.0,
            'channels.hand.goal_change': LEAST,
            **changes,
        }
        made = Commanding(self.node, parse(values), 100 * MS, self._tell, lambda: 0)
        self._parts.append(made)
        return made

    def until(self, condition: Callable[[], bool], what: str) -> None:
        wait_for(condition, PATIENCE_S, what)

    def close(self) -> None:
        for part in reversed(self._parts):
            part.close()
        self._over.set()
        self._thread.join()
        self._executor.shutdown()
        self.node.destroy_node()
        self.robot.destroy_node()

    def _tell(self, name: str, reason: str, verdict: Verdict) -> None:
        self.told[name] = reason

    def _spin(self) -> None:
        while not self._over.is_set():
            self._executor.spin_once(timeout_sec=0.02)


@pytest.fixture
def rig() -> Iterator[Rig]:
    context = Context()
    rclpy.init(context=context)
    made = Rig(context)
    yield made
    made.close()
    rclpy.shutdown(context=context)


def send(made: Commanding, value: float) -> None:
    Outputs.publish(made.outputs.encode({'hand': [value]}))


def counts(made: Commanding) -> dict[str, int]:
    found: dict[str, int] = made.figures()['grippers']['hand']
    return found


def served(rig: Rig, made: Commanding) -> None:
    rig.until(lambda: made.refusal() == '', 'the action server')


def test_a_goal_goes_out_when_the_value_has_changed_enough(rig: Rig) -> None:
    gripper, made = rig.gripper(), rig.commanding()
    served(rig, made)
    for value in (0.5, 0.5, 0.5 + LEAST / 2, 0.5 - LEAST / 2):
        send(made, value)
        rig.until(lambda: len(gripper.taken) == 1, 'one goal')
    assert (gripper.taken[0].position, gripper.taken[0].max_effort) == (0.5, 20.0)
    gripper.end()
    rig.until(lambda: counts(made).get('reached') == 1, 'the result')
    send(made, 0.5 + 2 * LEAST)
    rig.until(lambda: len(gripper.taken) == 2, 'another goal')
    assert counts(made)['sent'] == 2


def test_a_parallel_gripper_is_sent_its_joints_by_name(rig: Rig) -> None:
    gripper = rig.gripper(action.ParallelGripperCommand)
    made = rig.commanding('parallel_gripper_action')
    served(rig, made)
    send(made, 0.25)
    rig.until(lambda: len(gripper.taken) == 1, 'a goal')
    command = gripper.taken[0]
    assert list(command.name) == ['finger']
    assert (list(command.position), list(command.effort)) == ([0.25], [20.0])


def test_g56_a_new_value_has_the_goal_under_way_cancelled_first(rig: Rig) -> None:
    gripper, made = rig.gripper(), rig.commanding()
    served(rig, made)
    send(made, 0.1)
    rig.until(lambda: counts(made).get('accepted') == 1, 'a goal')
    for value in (0.5, 0.7, 0.9):
        send(made, value)
    rig.until(lambda: gripper.taken[-1].position == 0.9, 'the newest')
    assert gripper.cancelled == counts(made)['preempted'] == len(gripper.taken) - 1
    gripper.end()
    rig.until(lambda: counts(made).get('reached') == 1, 'the end of the second')


def test_a_server_that_takes_one_goal_at_a_time_has_the_one_before_cancelled(rig: Rig) -> None:
    gripper, made = rig.gripper(one_at_a_time=True), rig.commanding()
    served(rig, made)
    send(made, 0.1)
    rig.until(lambda: len(gripper.taken) == 1, 'a goal')
    send(made, 0.9)
    rig.until(lambda: len(gripper.taken) == 2, 'the second goal')
    assert [taken.position for taken in gripper.taken] == [0.1, 0.9]
    assert gripper.cancelled == 1


def test_a_server_that_neither_takes_another_goal_nor_cancels_is_told_and_waited_for(
    rig: Rig,
) -> None:
    gripper, made = rig.gripper(one_at_a_time=True, keeps=True), rig.commanding()
    served(rig, made)
    send(made, 0.1)
    rig.until(lambda: len(gripper.taken) == 1, 'a goal')
    for value in (0.5, 0.9):
        send(made, value)
        rig.until(lambda: WAITS in rig.told.get('hand (gripper)', ''), 'a word')
    gripper.end()
    rig.until(lambda: len(gripper.taken) == 2, 'the newest goal')
    assert [taken.position for taken in gripper.taken] == [0.1, 0.9]


def test_a_rejected_goal_is_counted_said_and_not_repeated_until_the_value_changes(
    rig: Rig,
) -> None:
    gripper, made = rig.gripper(), rig.commanding()
    served(rig, made)
    gripper.refuses = True
    send(made, 0.4)
    rig.until(lambda: 'rejected the goal [0.4]' in rig.told.get('hand (gripper)', ''), 'a word')
    assert counts(made) == {'sent': 1, 'rejected': 1}
    gripper.refuses = False
    send(made, 0.4)
    send(made, 0.6)
    rig.until(lambda: len(gripper.taken) == 1, 'a goal')
    assert gripper.taken[0].position == 0.6
    gripper.end()
    rig.until(lambda: rig.told['hand (gripper)'] == '', 'its recovery')


def test_a_gripper_that_stands_against_something_has_closed_on_it(rig: Rig) -> None:
    gripper, made = rig.gripper(), rig.commanding()
    served(rig, made)
    send(made, 0.0)
    rig.until(lambda: len(gripper.taken) == 1, 'a goal')
    gripper.end(stalled=True)
    rig.until(lambda: counts(made).get('stalled') == 1, 'the result')
    assert not rig.told.get('hand (gripper)')


@pytest.mark.parametrize(
    ('state', 'reason', 'cancelled'),
    [
        (State.IDLE, 'stop', 1),
        (State.IDLE, 'stale_input: state', 1),
        (State.PAUSED, '', 1),
        (State.IDLE, 'policy:done', 0),
        (State.RUNNING, '', 0),
    ],
)
def test_an_episode_that_is_held_or_cut_short_leaves_the_gripper_where_it_is(
    rig: Rig, state: State, reason: str, cancelled: int
) -> None:
    gripper, made = rig.gripper(), rig.commanding()
    served(rig, made)
    made.changed(Report(State.RUNNING, 1, '', {}))
    send(made, 0.1)
    rig.until(lambda: len(gripper.taken) == 1, 'a goal')
    rig.until(lambda: counts(made).get('accepted') == 1, 'its acceptance')
    made.changed(Report(state, 1, reason, {}))
    if cancelled:
        rig.until(lambda: counts(made).get('canceled') == 1, 'the cancellation')
    else:
        gripper.end()
        rig.until(lambda: counts(made).get('reached') == 1, 'the result')
    assert gripper.cancelled == cancelled
    made.changed(Report(State.RUNNING, 2, '', {}))
    send(made, 0.1)
    rig.until(lambda: len(gripper.taken) == 2, 'the same value in the next episode')


def test_without_a_server_no_episode_starts_and_what_is_commanded_is_told(rig: Rig) -> None:
    made = rig.commanding()
    assert made.refusal() == 'no action server takes the goals of hand on gripper_cmd'
    send(made, 0.5)
    rig.until(lambda: 'start it' in rig.told.get('hand (gripper)', ''), 'a word')
    assert counts(made) == {}


def test_a_preview_sends_no_goal(rig: Rig) -> None:
    gripper, made = rig.gripper(), rig.commanding(preview=True)
    shown: list[Any] = []
    control = pytest.importorskip('control_msgs.msg')
    topic = 'harness/preview/gripper_cmd'
    rig.robot.create_subscription(control.GripperCommand, topic, shown.append, 1)

    def seen() -> bool:
        send(made, 0.5)
        return bool(shown)

    rig.until(seen, 'the preview')
    assert (gripper.taken, made.figures()) == ([], {})

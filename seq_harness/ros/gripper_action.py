"""A gripper that takes goals: a new one when the value changes, and what became of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
import time
from typing import Any

from action_msgs.msg import GoalStatus
from rclpy.action.client import ActionClient
from rclpy.node import Node
from seq_harness.inputs import Verdict
from seq_harness.ros.message_types import message_class
from seq_harness.ros.subscribing import Tell
from seq_harness.settings import ChannelSettings
from seq_harness.settings.output_types import ACTIONS

ACCEPTED_WITHIN_NS = 1_000_000_000
"""A server that does not answer a goal for so long is taken for gone."""


class GripperAction:
    """
    Send the newest value as a goal, once it is far enough from the last.

    One goal at a time waits for its acceptance; one that is accepted takes the place of the one
    before, which the server ends. A server that refuses a goal while another is under way has that
    one cancelled, and is asked once more when it has ended. `publish` may be called from any
    thread; the executor's does all else.
    """

    def __init__(self, node: Node, item: ChannelSettings, tell: Tell) -> None:
        """
        Make a client of the action that the channel names.

        Raises
        ------
        TypeMissing
            control_msgs, or the action in it, is not installed.

        """
        self._node = node
        self._item = item
        self._say = tell
        self._action = message_class(ACTIONS[item.type])
        self._client = ActionClient(node, self._action, item.topic)
        self._changed = node.create_guard_condition(self._look)
        self._wanted: Any = None  # written by any thread, replaced whole
        self._sent: tuple[float, ...] | None = None
        self._pending_ns: int | None = None  # since when a goal waits for its acceptance
        self._active: Any = None
        self._cancels = False  # what waits for its acceptance is not wanted any more
        self._clears = False  # the goal under way is in the way of the next
        self.counts: Counter[str] = Counter()
        """Goals by what became of them."""

    def publish(self, message: Any) -> None:
        """Take what a goal is to hold; it is sent if it is far enough from the last."""
        self._wanted = message
        self._changed.trigger()

    def refusal(self) -> str:
        """Say why an episode may not start now; empty if it may."""
        if self._client.server_is_ready():
            return ''
        return f'no action server takes the goals of {self._item.name} on {self._item.topic}'

    def forget(self) -> None:
        """Forget the last goal: the next value is one, whatever it is."""
        self._wanted = self._sent = None

    def halt(self) -> None:
        """Cancel what is under way, so that the gripper stands where it is."""
        self.forget()
        self._cancels = self._pending_ns is not None
        if self._active is not None:
            self._active.cancel_goal_async()

    def close(self) -> None:
        """Send no more goals."""
        self._wanted = None
        self._node.destroy_guard_condition(self._changed)
        self._client.destroy()

    def _look(self) -> None:
        wanted = self._wanted
        if wanted is None or self._clears or self._waits():
            return
        values = _values(wanted)
        if self._sent is not None and not _apart(values, self._sent, self._item.goal_change):
            return
        if not self._client.server_is_ready():
            self._told(f'{self.refusal()}: start it, or correct the topic of the channel')
            return
        self._send(wanted, values)

    def _waits(self) -> bool:
        """Tell whether a goal waits for its acceptance; one that waits too long is given up."""
        if self._pending_ns is None:
            return False
        if time.monotonic_ns() - self._pending_ns <= ACCEPTED_WITHIN_NS:
            return True
        self._pending_ns = self._sent = None
        self.counts['failed'] += 1
        self._told(f'the action server on {self._item.topic} did not answer a goal within 1 s')
        return False

    def _send(self, message: Any, values: tuple[float, ...]) -> None:
        self._pending_ns, self._sent = time.monotonic_ns(), values
        self.counts['sent'] += 1
        goal = self._action.Goal(command=message)
        self._client.send_goal_async(goal).add_done_callback(self._answered)

    def _answered(self, future: Any) -> None:
        self._pending_ns = None
        if future.cancelled() or future.exception() is not None:
            self.counts['failed'] += 1
            self._told(f'the goal was not answered: {future.exception()}')
            return
        handle = future.result()
        if not handle.accepted:
            self._rejected()
            return
        self.counts['accepted'] += 1
        self._active = handle
        handle.get_result_async().add_done_callback(lambda done: self._ended(handle, done))
        if self._cancels:
            handle.cancel_goal_async()
        self._cancels = False
        self._look()

    def _rejected(self) -> None:
        """Ask once more where another goal was in the way; else say it."""
        self.counts['rejected'] += 1
        cancelled, self._cancels = self._cancels, False
        if self._active is not None and not cancelled:
            self._clears = True
            self._active.cancel_goal_async().add_done_callback(self._cleared)
            return
        self._told(
            f'the action server on {self._item.topic} rejected the goal {list(self._sent or ())}: '
            'see its log, and whether its controller is active'
        )
        self._look()

    def _cleared(self, future: Any) -> None:
        """Hear whether the goal in the way ends; the next goes out once it has."""
        if self._clears and not future.result().goals_canceling:
            self._told(
                f'the action server on {self._item.topic} takes no goal beside the one under way, '
                'and does not cancel that: goals wait until it ends'
            )

    def _ended(self, handle: Any, future: Any) -> None:
        answer = future.result()
        status, result = answer.status, answer.result
        if handle is not self._active:
            self.counts['preempted' if status != GoalStatus.STATUS_SUCCEEDED else 'reached'] += 1
            return
        self._active = None
        if self._clears:
            self._clears, self._sent = False, None
        outcome = _outcome(status, result)
        self.counts[outcome] += 1
        if outcome == 'aborted':
            self._told(f'the action server on {self._item.topic} aborted the goal')
        elif outcome in ('reached', 'stalled'):
            self._told('')
        self._look()

    def _told(self, text: str) -> None:
        self._say(f'{self._item.name} (gripper)', text, Verdict.REFUSED)


def _values(message: Any) -> tuple[float, ...]:
    position = message.position
    return (position,) if isinstance(position, float) else tuple(position)


def _apart(one: Sequence[float], other: Sequence[float], by: float) -> bool:
    return any(abs(a - b) > by for a, b in zip(one, other, strict=True))


def _outcome(status: int, result: Any) -> str:
    """Name an end; a gripper that stands against something has closed on it."""
    if status == GoalStatus.STATUS_CANCELED:
        return 'canceled'
    if result.stalled and not result.reached_goal:
        return 'stalled'
    return 'reached' if status == GoalStatus.STATUS_SUCCEEDED else 'aborted'

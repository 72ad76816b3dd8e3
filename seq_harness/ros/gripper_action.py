"""A gripper that takes goals: the client of its action, and what its server says of each."""

from __future__ import annotations

from collections import Counter
from typing import Any

from action_msgs.msg import GoalStatus
from rclpy.action.client import ActionClient
from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.node import Node
from seq_harness.inputs import Verdict
from seq_harness.ros.goals import End, Goal, Goals
from seq_harness.ros.message_types import message_class
from seq_harness.ros.subscribing import Tell
from seq_harness.settings import ChannelSettings
from seq_harness.settings.output_types import ACTIONS

LOOK_S = 0.1
"""How often it is looked whether a goal takes too long, beside every setpoint."""


class GripperAction:
    """
    Send setpoints of a gripper as goals.

    `publish` may be called from any thread; the executor's does all else.
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
        self._handles: dict[Goal, Any] = {}  # of the goals that were accepted, until they end
        self._goals = Goals(self, item.goal_change, item.topic, self._told)
        self._changed = node.create_guard_condition(self._goals.look)
        self._timer = node.create_timer(
            LOOK_S, self._goals.look, clock=Clock(clock_type=ClockType.STEADY_TIME)
        )

    @property
    def counts(self) -> Counter[str]:
        """Return how many goals there were, by what became of them."""
        return self._goals.counts

    def publish(self, message: Any) -> None:
        """Take what a goal is to hold; it is sent if it is far enough from the last."""
        position = message.position
        self._goals.want(message, (position,) if isinstance(position, float) else position)
        self._changed.trigger()

    def refusal(self) -> str:
        """Say why an episode may not start now; empty if it may."""
        if self.is_ready():
            return ''
        return f'no action server takes the goals of {self._item.name} on {self._item.topic}'

    def forget(self) -> None:
        """Forget the last goal: the next value is one, whatever it is."""
        self._goals.forget()

    def halt(self) -> None:
        """Cancel what is under way, so that the gripper stands where it is."""
        self._goals.halt()

    def close(self) -> None:
        """Send no more goals."""
        self._goals.forget()
        self._node.destroy_timer(self._timer)
        self._node.destroy_guard_condition(self._changed)
        self._client.destroy()

    def is_ready(self) -> bool:
        """Tell whether anybody takes goals (Server)."""
        return bool(self._client.server_is_ready())

    def send(self, goal: Goal) -> None:
        """Send a goal (Server)."""
        sent = self._client.send_goal_async(self._action.Goal(command=goal.message))
        sent.add_done_callback(lambda answer: self._answered(goal, answer))

    def cancel(self, goal: Goal) -> None:
        """Ask that a goal ends (Server)."""
        handle = self._handles.get(goal)
        if handle is not None:
            handle.cancel_goal_async()

    def _answered(self, goal: Goal, answer: Any) -> None:
        if answer.cancelled() or answer.exception() is not None:
            self._goals.failed(goal, str(answer.exception()))
            return
        handle = answer.result()
        if not handle.accepted:
            self._goals.rejected(goal)
            return
        self._handles[goal] = handle
        self._goals.accepted(goal)
        handle.get_result_async().add_done_callback(lambda result: self._ended(goal, result))

    def _ended(self, goal: Goal, result: Any) -> None:
        self._handles.pop(goal, None)
        answer = result.result()
        self._goals.ended(goal, _end(answer.status, answer.result))

    def _told(self, text: str) -> None:
        self._say(f'{self._item.name} (gripper)', text, Verdict.REFUSED)


def _end(status: int, result: Any) -> End:
    """Name an end; a gripper that stands against something has closed on it."""
    if status == GoalStatus.STATUS_CANCELED:
        return End.CANCELED
    if result.stalled and not result.reached_goal:
        return End.STALLED
    return End.REACHED if status == GoalStatus.STATUS_SUCCEEDED else End.ABORTED

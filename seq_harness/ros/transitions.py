"""What a lifecycle node leaves to do: answer every request without waiting, leave the graph."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
import threading
from typing import Any

from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.lifecycle import LifecycleNode
from rclpy.task import Future

CONFIGURE, CLEANUP, SHUTDOWN = 'configure', 'cleanup', 'shutdown'

NAMES = {
    Transition.TRANSITION_CONFIGURE: CONFIGURE,
    Transition.TRANSITION_CLEANUP: CLEANUP,
    Transition.TRANSITION_UNCONFIGURED_SHUTDOWN: SHUTDOWN,
    Transition.TRANSITION_INACTIVE_SHUTDOWN: SHUTDOWN,
    Transition.TRANSITION_ACTIVE_SHUTDOWN: SHUTDOWN,
}

Answer = Callable[[Any, Any], Any]

Before = Callable[[str], Future | None]
"""Starts, apart from the executor, what a transition of this name would wait for."""


@dataclass
class _Asked:
    """A request that is not answered yet."""

    request: Any
    response: Any
    answered: Future
    begun: bool = False
    waits_for: Future | None = None

    @property
    def name(self) -> str:
        asked = self.request.transition
        return asked.label or NAMES.get(asked.id, f'transition {asked.id}')


class Transitions:
    """
    Answer requests to change a node's state; none of them keeps its executor waiting.

    A request that the state machine refuses is answered too; without this it ends the executor
    that happens to spin the node with an exception.
    """

    def __init__(self, node: LifecycleNode, before: Before) -> None:
        """Take over the node's service; `before` is called as the node's other callbacks are."""
        self._node = node
        self._before = before
        self._asked: deque[_Asked] = deque()
        self._looking = node.create_guard_condition(self._look)
        service: Any = next(item for item in node.services if item.srv_type is ChangeState)
        self._change: Answer = service.callback
        service.callback = self._answer
        # A request that waits must not hold up the node's other callbacks, nor the next request.
        service.callback_group = ReentrantCallbackGroup()
        service.callback_group.add_entity(service)

    def apart(
        self, work: Callable[[], object], then: Callable[[], object] | None = None
    ) -> Future:
        """Do something on a thread of its own, `then` in the executor, and answer what waits."""
        done = Future()
        after = None if then is None else self._node.create_guard_condition(then)

        def run() -> None:
            try:
                work()
            finally:
                done.set_result(None)
                (after or self._looking).trigger()

        threading.Thread(target=run, name='transition', daemon=True).start()
        return done

    async def _answer(self, request: Any, response: Any) -> Any:
        asked = _Asked(request, response, Future())
        self._asked.append(asked)
        self._looking.trigger()
        return await asked.answered

    def _look(self) -> None:
        for asked in list(self._asked):
            try:
                if not asked.begun:
                    asked.begun, asked.waits_for = True, self._before(asked.name)
                if asked.waits_for is not None and not asked.waits_for.done():
                    continue
                self._change(asked.request, asked.response)
            except Exception as error:
                self._node.get_logger().warning(f'{asked.name} is not possible now: {error}')
                asked.response.success = False
            self._asked.remove(asked)
            asked.answered.set_result(asked.response)


def leave_graph(node: LifecycleNode) -> None:
    """
    Take the lifecycle services of a node that was destroyed off the graph, and the node with them.

    Else they stay, unanswered, until the garbage collector finds the node, and take the requests
    that are meant for its successor.
    """
    machine = getattr(node, '_state_machine', None)
    if machine is not None:
        machine.destroy_when_not_in_use()

"""What a lifecycle node leaves to do: answer what is not possible now, and leave the graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lifecycle_msgs.srv import ChangeState
from rclpy.lifecycle import LifecycleNode

Answer = Callable[[Any, Any], Any]


def answer_invalid_transitions(node: LifecycleNode) -> None:
    """
    Answer requests that the state machine refuses, and log why.

    Without this they end the executor that happens to spin the node with an exception.
    """
    for service in node.services:
        if service.srv_type is ChangeState:
            service.callback = _answering(node, service.callback)


def leave_graph(node: LifecycleNode) -> None:
    """
    Take the lifecycle services of a node that was destroyed off the graph, and the node with them.

    Else they stay, unanswered, until the garbage collector finds the node, and take the requests
    that are meant for its successor.
    """
    machine = getattr(node, '_state_machine', None)
    if machine is not None:
        machine.destroy_when_not_in_use()


def _answering(node: LifecycleNode, change: Answer) -> Answer:
    def answer(request: Any, response: Any) -> Any:
        try:
            return change(request, response)
        except Exception as error:
            wanted = request.transition.label or f'transition {request.transition.id}'
            node.get_logger().warning(f'{wanted} is not possible now: {error}')
            response.success = False
            return response

    return answer

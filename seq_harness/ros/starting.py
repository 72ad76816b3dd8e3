"""A start that waits until the node and its worker are ready for it."""

from __future__ import annotations

from collections.abc import Callable
import time
from typing import Any, NamedTuple

from seq_harness.harness import RequestAnswer

WAITING = 'waiting'
"""The state of a node while a start waits for its worker."""

BUSY = RequestAnswer(False, 'an episode is running: stop it first')


class Obstacle(NamedTuple):
    """What keeps an episode from beginning that may go by itself."""

    name: str
    """Under which a start ends that waited in vain."""
    said: str


class WaitedInVain(NamedTuple):
    """The starts that ended before there was a loop."""

    number: int
    reason: str
    """Why the last of them ended."""


class Starting:
    """
    Keep at most one start until nothing stands in its way, or end it by name.

    Belongs to the executor's thread.
    """

    def __init__(
        self,
        within_s: float,
        obstacle: Callable[[], Obstacle | None],
        begin: Callable[[], RequestAnswer],
        ended: Callable[[str], None],
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """`begin` asks the loop; `ended` hears why a start ended that never reached it."""
        self._within_s = within_s
        self._obstacle = obstacle
        self._begin = begin
        self._ended = ended
        self._now_s = now_s
        self._until_s: float | None = None

    @property
    def pending(self) -> bool:
        """Whether a start waits."""
        return self._until_s is not None

    def ask(self) -> RequestAnswer:
        """Begin now, or take the start and wait; refuse a second one."""
        if self.pending:
            return BUSY
        obstacle = self._obstacle()
        if obstacle is None:
            return self._begin()
        self._until_s = self._now_s() + self._within_s
        return RequestAnswer(
            True, f'accepted, and waits up to {self._within_s:g} s: {obstacle.said}'
        )

    def look(self) -> None:
        """Begin what waits as soon as it can, or end it once its time is over."""
        if self._until_s is None:
            return
        obstacle = self._obstacle()
        if obstacle is not None:
            if self._now_s() >= self._until_s:
                self.end(f'{obstacle.name}: {obstacle.said}, for {self._within_s:g} s')
            return
        self._until_s = None
        answer = self._begin()
        if not answer.accepted:
            self._ended(answer.reason)

    def end(self, reason: str) -> bool:
        """End the start that waits; tell whether there was one."""
        waited, self._until_s = self.pending, None
        if waited:
            self._ended(reason)
        return waited


def answered(response: Any, answer: RequestAnswer) -> Any:
    """Return the response of a trigger service that says what was answered."""
    response.success, response.message = answer.accepted, answer.reason
    return response

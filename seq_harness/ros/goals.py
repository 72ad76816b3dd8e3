"""The goals of one gripper: one under way and the newest that waits, whatever its server does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from functools import partial
import threading
import time
from typing import Any, Protocol

ENDS_WITHIN_NS = 500_000_000
"""A goal that is cancelled and does not end for so long no longer holds up the next."""

ACCEPTED_WITHIN_NS = 1_000_000_000
"""A server that does not answer a goal for so long is taken for gone."""

RETRY_NS = 5_000_000_000
"""After so long a server that took no goal beside another is asked again, for it may be anew."""


class End(Enum):
    """How a goal ended."""

    REACHED = 'reached'
    STALLED = 'stalled'
    """It stands against something, which a gripper does that has closed on it."""
    CANCELED = 'canceled'
    ABORTED = 'aborted'


@dataclass(eq=False)
class Goal:
    """One goal that was sent, until it ends."""

    message: Any
    values: tuple[float, ...]
    sent_ns: int
    accepted: bool = False
    unwanted_ns: int | None = None
    """Since when it is not wanted any more; it is cancelled then, or as soon as it is accepted."""
    replaced: bool = False
    """Whether another value is why it is not wanted."""


class Server(Protocol):
    """Where goals go; what becomes of each is told to `Goals`. None of its calls blocks."""

    def is_ready(self) -> bool:
        """Tell whether anybody takes goals."""

    def send(self, goal: Goal) -> None:
        """Send a goal."""

    def cancel(self, goal: Goal) -> None:
        """Ask that a goal which was accepted ends."""


class Goals:
    """
    Send the newest value as a goal, once it is far enough from the last.

    A value that is far from the goal under way has that one cancelled, and goes out when it has
    ended, or after `ENDS_WITHIN_NS` beside it; only the newest waits. `want` may be called from
    any thread, all else from those of the executor.
    """

    def __init__(
        self,
        server: Server,
        change: float,
        topic: str,
        tell: Callable[[str], None],
        now_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        """`change` is how far a value must be from the last goal; `topic` is the action's name."""
        self._server = server
        self._change = change
        self._topic = topic
        self._tell = tell
        self._now_ns = now_ns
        self._wanted: tuple[Any, tuple[float, ...]] | None = None  # replaced whole, by any thread
        self._lock = threading.Lock()  # held while it is decided what to do, not while it is done
        self._to_do: list[Callable[[], None]] = []  # under _lock
        self._last: tuple[float, ...] | None = None  # under _lock; None: any value is a goal
        self._newest: Goal | None = None  # under _lock
        self._older: list[Goal] = []  # under _lock: did not end in time, and may go on
        self._retry_ns: int | None = None  # under _lock: until when an older goal is in the way
        self.counts: Counter[str] = Counter()
        """Goals by what became of them."""

    def want(self, message: Any, values: Sequence[float]) -> None:
        """Take what a goal is to hold, and where that leads; `look` sends it."""
        self._wanted = message, tuple(values)

    def forget(self) -> None:
        """Forget the last goal: the next value is one, whatever it is."""
        self._wanted = None
        with self._lock:
            self._last = None

    def halt(self) -> None:
        """Cancel all that were sent, so that the gripper stands where it is."""
        self.forget()
        with self._deciding():
            for goal in (*self._older, self._newest):
                if goal is not None:
                    self._end(goal)

    def look(self) -> None:
        """Send what is to be sent by now; call it when a value came, and every now and then."""
        with self._deciding():
            self._give_up_unanswered()
            self._next()

    def accepted(self, goal: Goal) -> None:
        """Note that the server took a goal."""
        with self._deciding():
            self.counts['accepted'] += 1
            goal.accepted = True
            if goal.unwanted_ns is not None:
                self._end(goal)
            self._next()

    def rejected(self, goal: Goal) -> None:
        """Note that the server refused a goal; it is sent again where another was in the way."""
        with self._deciding():
            self.counts['rejected'] += 1
            if not self._drop(goal) or goal.unwanted_ns is not None:
                return
            if any(older.accepted for older in self._older):
                self._retry_ns, self._last = self._now_ns() + RETRY_NS, None
                self._say(
                    'takes no goal beside the one under way, and does not cancel that: goals wait '
                    'until it ends'
                )
                return
            self._say(
                f'rejected the goal {list(goal.values)}: see its log, and whether its controller '
                'is active'
            )
            self._next()

    def failed(self, goal: Goal, why: str) -> None:
        """Note that a goal was not answered at all."""
        with self._deciding():
            self.counts['failed'] += 1
            self._drop(goal)
            self._say(f'did not answer a goal: {why}')

    def ended(self, goal: Goal, end: End) -> None:
        """Note how a goal ended."""
        with self._deciding():
            is_newest, self._retry_ns = self._drop(goal), None
            replaced = goal.replaced and end in (End.CANCELED, End.ABORTED)
            self.counts['preempted' if replaced else end.value] += 1
            if is_newest and end is End.ABORTED and not replaced:
                self._say('aborted the goal')
            elif is_newest and end in (End.REACHED, End.STALLED):
                self._to_do.append(partial(self._tell, ''))
            self._next()

    @contextmanager
    def _deciding(self) -> Iterator[None]:
        """Do what was decided in the block once the lock is free."""
        with self._lock:
            try:
                yield
            finally:
                to_do, self._to_do = self._to_do, []
        for each in to_do:
            each()

    def _next(self) -> None:
        """Send the value that is wanted, if it is time."""
        wanted = self._wanted
        if wanted is None or not self._is_far(wanted[1]) or not self._has_room():
            return
        if not self._server.is_ready():
            self._say('is not there: start it, or correct the topic of the channel')
            return
        message, self._last = wanted
        goal = self._newest = Goal(message, self._last, self._now_ns())
        self.counts['sent'] += 1
        self._to_do.append(partial(self._server.send, goal))

    def _is_far(self, values: tuple[float, ...]) -> bool:
        last = self._last
        if last is None:
            return True
        return any(abs(a - b) > self._change for a, b in zip(values, last, strict=True))

    def _has_room(self) -> bool:
        """Have the goal under way end; tell whether the next may go out."""
        newest, now_ns = self._newest, self._now_ns()
        if newest is None:
            return self._retry_ns is None or now_ns >= self._retry_ns
        self._last = None  # what is cancelled is to be sent again if it is wanted again
        if newest.unwanted_ns is None:
            newest.replaced = True
            self._end(newest)
        if newest.unwanted_ns is None or now_ns - newest.unwanted_ns < ENDS_WITHIN_NS:
            return False
        self._say(
            f'did not end the goal {list(newest.values)} within 0.5 s of its cancellation: the '
            'next one goes out beside it'
        )
        self._leave(newest)
        return True

    def _give_up_unanswered(self) -> None:
        newest = self._newest
        if newest is None or newest.accepted:
            return
        if self._now_ns() - newest.sent_ns > ACCEPTED_WITHIN_NS:
            self.counts['failed'] += 1
            self._say('did not answer a goal within 1 s')
            self._end(newest)
            self._leave(newest)
            self._last = None

    def _end(self, goal: Goal) -> None:
        if goal.unwanted_ns is None:
            goal.unwanted_ns = self._now_ns()
        if goal.accepted:
            self._to_do.append(partial(self._server.cancel, goal))

    def _leave(self, newest: Goal) -> None:
        self._older.append(newest)
        self._newest = None

    def _drop(self, goal: Goal) -> bool:
        """Take a goal away; tell whether it was the newest."""
        if goal is self._newest:
            self._newest = None
            return True
        self._older = [older for older in self._older if older is not goal]
        return False

    def _say(self, what: str) -> None:
        self._to_do.append(partial(self._tell, f'the action server on {self._topic} {what}'))

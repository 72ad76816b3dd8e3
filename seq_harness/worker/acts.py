"""Acts between being taken and being answered, and the answers that are kept for a re-send."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from seq_harness.worker.ask import Ask
from seq_harness.worker.reply import Reply
from seq_harness.worker.thread import Job

KEPT_ANSWERS = 8
"""Answers kept of one episode; a client re-sends its last act."""

KEPT_BYTES = 4 << 20
"""Bytes of those answers; the newest is always kept."""


Waiter = Callable[[Reply], None]
"""Takes the reply of an act, and raises nothing."""


@dataclass(eq=False)
class Act:
    """One act that was taken; belongs to the event loop."""

    ask: Ask
    taken_ns: int
    nbytes: int
    let_go: Callable[[Act], None] | None
    """Called once it was given up while it waited for the policy's thread."""
    warnings: list[str] = field(default_factory=list)
    reply: Reply | None = None
    job: Job | None = None
    """Its inference, once it waits for the policy's thread."""
    task: asyncio.Task[None] | None = None
    """Its course up to there, where it has to wait for anything; nobody else holds it."""
    withdrawn: bool = False
    """Whether it was given up; a request with its id is then a new act."""
    _waiting: list[Waiter] = field(default_factory=list)

    def tell(self, waiter: Waiter) -> None:
        """Hand the reply to `waiter` once there is one, which may be now."""
        if self.reply is not None:
            waiter(self.reply)
        else:
            self._waiting.append(waiter)

    def forsake(self, waiter: Waiter) -> None:
        """
        Tell `waiter` nothing any more.

        An act that nobody waits for and whose inference has not begun is given up.
        """
        if waiter in self._waiting:
            self._waiting.remove(waiter)
        if not self._waiting and self.reply is None:
            self._withdraw()

    async def answered(self) -> Reply:
        """
        Wait for the reply.

        Whoever is cancelled here no longer waits; an act that nobody waits for and whose inference
        has not begun is given up.
        """
        answered: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()

        def waiter(reply: Reply) -> None:
            if not answered.done():
                answered.set_result(reply)

        self.tell(waiter)
        try:
            return await answered
        finally:
            self.forsake(waiter)

    def settle(self, reply: Reply) -> None:
        """Give the reply to whoever waits, and let go of what was only needed to make it."""
        self.reply = reply
        waiting, self._waiting = self._waiting, []
        for waiter in waiting:
            waiter(reply)
        self.ask.inputs = self.ask.plan = None
        self.job = self.let_go = None

    def _withdraw(self) -> None:
        if self.job is not None:
            if self.job.cancel() and self.let_go is not None:
                self.withdrawn = True
                self.let_go(self)
        elif self.task is not None:
            self.withdrawn = True
            self.task.cancel()


class Turn:
    """Whose turn it is in an episode: one act at a time, in the order in which they came."""

    def __init__(self) -> None:
        self._taken = False
        self._waiting: deque[asyncio.Future[None]] = deque()

    def take_now(self) -> bool:
        """Take the turn if nobody has it or waits for it; tell whether it was taken."""
        if self._taken or self._waiting:
            return False
        self._taken = True
        return True

    async def take(self) -> None:
        """Wait for the turn and take it."""
        if self.take_now():
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                self.give()  # it came in the same moment
            elif waiter in self._waiting:
                self._waiting.remove(waiter)
            raise

    def give(self) -> None:
        """Give the turn to whoever waits for it longest."""
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return
        self._taken = False


class Ledger:
    """The acts of one episode by their request ids: under way, and lately answered."""

    def __init__(self, kept: int = KEPT_ANSWERS) -> None:
        self._kept = kept
        self._acts: dict[str, Act] = {}

    def find(self, request_id: str | None) -> Act | None:
        """Return the act that was taken under this id."""
        act = self._acts.get(request_id) if request_id is not None else None
        return None if act is None or act.withdrawn else act

    def add(self, act: Act) -> None:
        """Remember an act that was just taken."""
        if act.ask.request_id is not None:
            self._acts[act.ask.request_id] = act

    def forget(self, act: Act) -> None:
        """Let the id be used again: the act never ran."""
        if self._acts.get(str(act.ask.request_id)) is act:
            del self._acts[str(act.ask.request_id)]

    def trim(self) -> None:
        """Keep the newest answers alone."""
        done = [(act, act.reply) for act in self._acts.values() if act.reply is not None]
        nbytes = sum([len(reply.body) for _, reply in done])
        while len(done) > 1 and (len(done) > self._kept or nbytes > KEPT_BYTES):
            oldest, reply = done.pop(0)
            nbytes -= len(reply.body)
            self.forget(oldest)

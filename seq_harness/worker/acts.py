"""Acts between being taken and being answered, and the answers that are kept for a re-send."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any

from seq_harness.worker.ask import Ask
from seq_harness.worker.reply import Reply

KEPT_ANSWERS = 8
"""Answers kept of one episode; a client re-sends its last act."""

KEPT_BYTES = 4 << 20
"""Bytes of those answers; the newest is always kept."""


@dataclass(eq=False)
class Act:
    """One act that was taken; belongs to the event loop."""

    ask: Ask
    taken_ns: int
    nbytes: int
    reply: asyncio.Future[Reply]
    warnings: list[str] = field(default_factory=list)
    job: Future[Any] | None = None
    """Its inference, once it waits for the policy's thread."""
    task: asyncio.Task[None] | None = None
    """Its course; nobody else holds it."""
    waiting: int = 0
    """Requests that wait for the reply."""
    withdrawn: bool = False
    """Whether it was given up; a request with its id is then a new act."""

    def settle(self, reply: Reply) -> None:
        """Give the reply to whoever waits, and let go of what was only needed to make it."""
        if not self.reply.done():
            self.reply.set_result(reply)
        self.ask = replace(self.ask, inputs=None, plan=None)
        self.job = None

    def withdraw(self) -> bool:
        """Give the act up unless its inference has begun; tell whether it was given up."""
        if self.reply.done() or self.task is None:
            return False
        if self.job is not None and not self.job.cancel():
            return False
        self.withdrawn = True
        self.task.cancel()
        return True


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
        done = [act for act in self._acts.values() if act.reply.done()]
        nbytes = sum(len(act.reply.result().body) for act in done)
        while len(done) > 1 and (len(done) > self._kept or nbytes > KEPT_BYTES):
            oldest = done.pop(0)
            nbytes -= len(oldest.reply.result().body)
            self.forget(oldest)

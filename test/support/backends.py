"""A policy's episode that a test holds inside its inference, and calls on a runtime."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from seq_harness.client.runtime import Runtime
from seq_harness.playback.answer import Answer
from seq_harness.playback.chunk import Chunk
from seq_harness.playback.uplink import Queued, Step
from support.waiting import PATIENCE_S


class Backend:
    """A policy's episode whose inference stays inside until a test lets it go."""

    def __init__(self, heeds_retire: bool = False) -> None:
        self.events: list[str] = []
        self.entered = threading.Event()
        self.go = threading.Event()
        self.closed = threading.Event()
        self.heeds_retire = heeds_retire
        self.fails: Exception | None = None
        self.seen: list[Any] = []

    def infer(self, step: Step, plan: Any = None) -> Any:
        self.seen.append((step, plan))
        self.events.append('call')
        self.entered.set()
        if not self.go.wait(PATIENCE_S):
            raise TimeoutError('nobody let the call go')
        self.events.append('call left')
        if self.fails is not None:
            raise self.fails
        return [[0.5, 0.5]]

    def observe(self, step: Step) -> Queued:
        self.seen.append((step, None))
        return Queued.ACCEPTED

    def skip(self, number: int) -> None: ...

    def expect(self, next_ask: int) -> None: ...

    def retire(self) -> None:
        self.events.append('retire')
        if self.heeds_retire:
            self.go.set()

    def close(self) -> None:
        self.events.append('close')
        self.closed.set()


class Waiting:
    """Starts calls on a runtime, and can wait for the newest."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.there = threading.Event()
        self.ran_on: list[str] = []

    def __call__(self, work: Any) -> Answer[Any]:
        self.there.clear()
        return self.runtime.start(work, on_done=self.there.set)

    def wait(self) -> None:
        assert self.there.wait(PATIENCE_S)


def chunk_of(answer: Any) -> Chunk | None:
    return Chunk.at_rate([{'arm': np.array(row)} for row in answer], 10)

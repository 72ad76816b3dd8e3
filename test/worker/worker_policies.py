"""Policies that the tests serve, and how they serve them."""

from __future__ import annotations

from collections.abc import Iterator
import contextlib
import threading
from typing import Any

from seq_harness.contract.own_io import Observations
from seq_harness.worker.limits import Limits
from seq_harness.worker.running import served
from support.waiting import PATIENCE_S
from worker.worker_wire import Client, client_of

SHORT = Limits(stream_wait_s=0.2)
"""Little patience for observations that do not come."""


class Recorder:
    """Answer with what was read, and keep it."""

    def __init__(self, observations: Observations | None = None) -> None:
        self.observations = observations
        self.reads: list[Any] = []

    def infer(self, inputs: Any) -> Any:
        self.reads.append(inputs)
        return {'read': inputs, 'turn': len(self.reads)}


class Gate:
    """Infer for as long as the test wants."""

    def __init__(self) -> None:
        self.entered = threading.Semaphore(0)
        self.leave = threading.Semaphore(0)
        self.runs = 0

    def infer(self, inputs: Any) -> Any:
        self.runs += 1
        self.entered.release()
        assert self.leave.acquire(timeout=PATIENCE_S)
        return {'inputs': inputs, 'run': self.runs}


@contextlib.contextmanager
def serving(policy: Any, limits: Limits | None = None) -> Iterator[Client]:
    """Serve a policy and connect to it once it is ready."""
    with served(policy, limits=limits) as url, client_of(url) as client:
        assert client.connect().status == 200
        yield client


def every() -> Recorder:
    """Make a policy that is fed every observation."""
    return Recorder(Observations(every=1))

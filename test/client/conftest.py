"""Workers and policies that end with the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

from client.robot import Robot
from client.scripted_worker import ScriptedWorker
import pytest
from seq_harness.client.runtime import Runtime
from seq_harness.client.sequence import SequencePolicy
from support.waiting import PATIENCE_S


@pytest.fixture
def workers() -> Iterator[Callable[..., ScriptedWorker]]:
    """Return a maker of scripted workers."""
    with ExitStack() as stack:

        def make(*args: Any, **options: Any) -> ScriptedWorker:
            worker = ScriptedWorker(*args, **options)
            stack.callback(worker.stop)
            return worker

        yield make


@pytest.fixture
def policies() -> Iterator[Callable[..., SequencePolicy]]:
    """Return a maker of policies."""
    with ExitStack() as stack:

        def make(url: str, **options: Any) -> SequencePolicy:
            policy = SequencePolicy(url, **{'connect_timeout_s': PATIENCE_S, **options})
            stack.callback(policy.close)
            return policy

        yield make


@pytest.fixture
def robots(policies: Callable[..., SequencePolicy]) -> Callable[..., Robot]:
    """Return a maker of robots that are connected and in an episode."""
    return lambda worker, **options: Robot(policies(worker.url, **options))


@pytest.fixture
def runtime() -> Iterator[Runtime]:
    """Return a runtime that closes with the test."""
    with Runtime() as opened:
        yield opened

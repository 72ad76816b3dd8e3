"""A policy with an open episode, and the numbers of its steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
import threading
from typing import Any

from seq_harness.client.runtime import Runtime
from seq_harness.client.scope import SequenceScope
from seq_harness.client.sequence import SequencePolicy
from seq_harness.playback.answer import Answer
from seq_harness.playback.uplink import Queued, Step
from support.waiting import PATIENCE_S


class Robot:
    """Connect a policy, open an episode, and number what is asked and observed."""

    def __init__(self, policy: SequencePolicy) -> None:
        self.policy = policy
        self.declaration = policy.connect()
        self.now_ns = 0
        self.scope: SequenceScope = policy.open_episode(lambda: self.now_ns)
        self.number = -1

    def act(self, observation: Mapping[str, Any] | None = None, **more: Any) -> Any:
        """Ask about the next step and return the outputs."""
        return self.scope.infer(self.step(observation), **more)

    def observe(self, observation: Mapping[str, Any] | None = None) -> Queued:
        """Hand the next step to the stream; a step that is not taken is no step."""
        queued = self.scope.observe(self.step(observation))
        self.number -= queued is Queued.FULL
        return queued

    def step(self, observation: Mapping[str, Any] | None = None) -> Step:
        """Return the next step."""
        self.number += 1
        return Step(self.number, self.now_ns, observation or {'cam': self.number})


class Waited:
    """A started call whose end can be waited for."""

    def __init__(self, runtime: Runtime, call: Callable[[], Any]) -> None:
        self._done = threading.Event()
        self._answer: Answer[Any] = runtime.start(call, on_done=self._done.set)

    def result(self, within_s: float = PATIENCE_S) -> Any:
        """Wait for the end and return or raise the outcome."""
        assert self._done.wait(within_s)
        return self._answer.result()

"""A warm-up of the worker process that came in place of the one that was warmed up."""

from __future__ import annotations

from collections.abc import Callable
import threading
import time

from seq_harness.client.registry import Policy
from seq_harness.pipeline import AnswerRefused, Pipeline
from seq_harness.playback.uplink import PolicyError
from seq_harness.ros.starting import Obstacle

AGAIN_S = 1.0
"""How soon a warm-up that did not get through is tried again."""


class Warming:
    """
    Warm up between episodes whatever process has not answered yet; never within one.

    The executor's thread owns it; a warm-up runs on a thread of its own.
    """

    def __init__(self, policy: Policy, pipeline: Pipeline, say: Callable[[str], object]) -> None:
        """`say` is told from any thread."""
        self._policy = policy
        self._pipeline = pipeline
        self._say = say
        self._thread: threading.Thread | None = None
        self._next_s = 0.0
        # Each is replaced whole by the thread of a warm-up.
        self._warm = self._process  # the process that answered one
        self._refused = ('', '')  # a process that answered one wrongly, and how

    @property
    def _process(self) -> str:
        """Name the process that is there, where the wire tells one from the next."""
        return str(getattr(self._policy, 'process', None) or '')

    @property
    def _newcomer(self) -> str:
        """Name the process that is there and that nobody has warmed up; empty without one."""
        process = self._process
        return process if process != self._warm and self._policy.connected else ''

    @property
    def refusal(self) -> str:
        """Say what is wrong with the answer of the process that is there; empty if nothing is."""
        process, reason = self._refused
        return reason if process and process == self._newcomer else ''

    @property
    def obstacle(self) -> Obstacle | None:
        """Return what a start is to wait for."""
        if not self._newcomer or self.refusal:
            return None
        return Obstacle('worker_missing', 'another worker process came, and is warmed up')

    def look(self, instruction: str) -> None:
        """Begin a warm-up where one is needed; called while no episode is live."""
        running = self._thread is not None and self._thread.is_alive()
        process = self._newcomer
        if running or not process or self.refusal or time.monotonic() < self._next_s:
            return
        self._next_s = time.monotonic() + AGAIN_S
        self._thread = threading.Thread(
            target=self._warm_up, args=(process, instruction), name='warm-up', daemon=True
        )
        self._thread.start()

    def close(self, within_s: float) -> None:
        """Wait for a warm-up that the closing policy has interrupted."""
        if self._thread is not None:
            self._thread.join(within_s)

    def _warm_up(self, process: str, instruction: str) -> None:
        try:
            outputs = self._policy.warm_up(self._pipeline.blank(instruction))
            odd = self._pipeline.check_answer(outputs)
        except (AnswerRefused, PolicyError) as error:
            self._refused = process, str(error)
            self._say(f'another worker process came, and no episode starts with it: {error}')
        except Exception as error:
            self._say(f'the warm-up of another worker process did not get through: {error}')
        else:
            self._warm = process
            self._say(odd or 'another worker process came, and is warmed up')

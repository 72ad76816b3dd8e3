"""What may keep the robot from moving besides its inputs: a stop that latches, and a deadman."""

from __future__ import annotations

from collections.abc import Callable
import threading
import time

from seq_harness.harness import RequestAnswer
from seq_harness.settings import Settings

STOP_INPUT, DEADMAN = 'stop_input', 'deadman'


class Safety:
    """
    Tell why nothing may move, if that is so.

    The executor's thread writes; any thread reads. Its clock is the steady one, whatever the
    time of the node is: silence is silence also while a simulation stands.
    """

    def __init__(
        self,
        settings: Settings,
        on_fault: Callable[[str], None],
        now_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        """`on_fault` hears the reason as soon as there is one."""
        self._on_fault = on_fault
        self._now_ns = now_ns
        self._stop_topic: str = settings['stop_topic']
        self._deadman_topic: str = settings['deadman_topic']
        beats = bool(self._stop_topic) and settings['require_heartbeat']
        self._stop_ns = round(settings['stop_timeout_s'] * 1e9) if beats else None
        self._deadman_ns = round(settings['deadman_timeout_s'] * 1e9)
        self._lock = threading.Lock()  # held for a few assignments
        self._latched: str | None = None  # under _lock
        self._stop_heard_ns: int | None = None  # under _lock
        self._stop_now = False  # under _lock
        self._held_at_ns: int | None = None  # under _lock; None while nobody holds it
        self._told: str | None = None  # the executor's thread alone

    def stop_said(self, stop: bool) -> None:
        """Take a message of the stop input."""
        with self._lock:
            self._stop_heard_ns, self._stop_now = self._now_ns(), stop
            if stop:
                self._latched = self._latched or f'{STOP_INPUT}: {self._stop_topic} says stop'
        self.look()

    def deadman_said(self, held: bool) -> None:
        """Take a message of the deadman input."""
        with self._lock:
            self._held_at_ns = self._now_ns() if held else None
        self.look()

    def look(self) -> None:
        """Notice silence, and tell a reason that is new."""
        reason = self.reason
        if reason is not None and reason != self._told:
            self._on_fault(reason)
        self._told = reason

    @property
    def reason(self) -> str | None:
        """Why nothing may move; None if it may."""
        now_ns = self._now_ns()
        with self._lock:
            return self._latched or self._silence(now_ns) or self._let_go(now_ns)

    @property
    def latched(self) -> bool:
        """Whether a reset is needed before anything may move."""
        return self._latched is not None

    def reset(self) -> RequestAnswer:
        """Forget a stop that is over."""
        with self._lock:
            if self._stop_now:
                return RequestAnswer(False, f'{self._stop_topic} still says stop')
            self._latched = None
            silent = self._silence(self._now_ns())
        if silent is not None:
            return RequestAnswer(False, f'{silent}: reset once it is heard again')
        return RequestAnswer(True, 'reset')

    def _silence(self, now_ns: int) -> str | None:
        """Latch and name the silence of a stop input that must be heard; with the lock held."""
        if self._stop_ns is None:
            return None
        if self._stop_heard_ns is None:
            return f'{STOP_INPUT}: {self._stop_topic} has said nothing yet'
        if now_ns - self._stop_heard_ns <= self._stop_ns:
            return None
        self._latched = f'{STOP_INPUT}: {self._stop_topic} fell silent'
        return self._latched

    def _let_go(self, now_ns: int) -> str | None:
        if not self._deadman_topic:
            return None
        if self._held_at_ns is None:
            return f'{DEADMAN}: {self._deadman_topic} is not held'
        if now_ns - self._held_at_ns > self._deadman_ns:
            return f'{DEADMAN}: {self._deadman_topic} fell silent'
        return None

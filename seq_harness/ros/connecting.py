"""Reaching the worker before a node can be configured: blocking, and apart from ROS."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
import threading

from seq_harness.client.registry import open_policy, Policy
from seq_harness.contract.connect import WorkerDeclaration
from seq_harness.pipeline import Pipeline
from seq_harness.settings import Settings

CLOSE_WITHIN_S = 2.0
"""How long closing waits for a connect that it has interrupted."""

Bounds = Callable[[Settings], Settings]
"""Returns settings with the limits that the robot's description adds; may wait for it."""


@dataclass(frozen=True)
class Connected:
    """A policy that was reached and has answered once, and what it declares."""

    policy: Policy
    declaration: WorkerDeclaration
    settings: Settings
    """With all limits that apply."""
    parts: ExitStack
    """Closes the policy."""


class Connector:
    """Connect, load, shake hands and warm up; in the caller's thread, or ahead in another."""

    def __init__(
        self,
        settings: Settings,
        say: Callable[[str], None],
        bounded: Bounds = lambda settings: settings,
    ) -> None:
        """`say` is told of every change between us and the worker, from any thread."""
        self._settings = settings
        self._say = say
        self._bounded = bounded
        self._interrupted = threading.Event()
        self._reaching: Policy | None = None  # set while a connect waits; read by interrupt
        # What came of connecting ahead; handed over by that thread.
        self._ahead: Connected | Exception | None = None
        self._idle = threading.Event()
        self._idle.set()

    @property
    def interrupted(self) -> bool:
        """Whether a connect that failed failed because it was to end."""
        return self._interrupted.is_set()

    @property
    def where(self) -> str:
        """Return the address that is asked."""
        return str(self._settings['gateway_url'] or self._settings['worker_url'])

    def connect_ahead(self, instruction: str) -> None:
        """Connect and block, on a thread of the caller's; `take` then tells what came of it."""
        self._idle.clear()
        try:
            self._ahead = self._connect(instruction)
        except Exception as error:
            self._ahead = error
        finally:
            self._idle.set()

    def take(self, instruction: str) -> Connected:
        """
        Return what was connected ahead, or connect now and block.

        Raises
        ------
        Exception
            Whatever kept the policy from being reached, loaded, accepted or warmed up.

        """
        ahead, self._ahead = self._ahead, None
        if isinstance(ahead, Exception):
            raise ahead
        return ahead or self._connect(instruction)

    def interrupt(self) -> None:
        """End a connect that is under way, and let no other begin; from any thread."""
        self._interrupted.set()
        reaching = self._reaching
        if reaching is not None:
            reaching.close()

    def close(self) -> None:
        """Interrupt, and close what was connected ahead and never taken."""
        self.interrupt()
        self._idle.wait(CLOSE_WITHIN_S)
        if isinstance(self._ahead, Connected):
            self._ahead.parts.close()

    def _connect(self, instruction: str) -> Connected:
        with ExitStack() as parts:
            policy = open_policy(self._settings, self._say)
            parts.callback(policy.close)
            self._reaching = policy
            try:
                if self._interrupted.is_set():
                    raise InterruptedError('interrupted')
                self._say(f'connecting to {self.where}')
                declaration = policy.connect()
                settings = self._bounded(self._settings)
                # What the policy declares is checked before it is asked anything.
                pipeline = Pipeline(settings, declaration)
                odd = pipeline.check_answer(policy.warm_up(pipeline.blank(instruction)))
                if odd:
                    self._say(odd)
            finally:
                self._reaching = None
            return Connected(policy, declaration, settings, parts.pop_all())

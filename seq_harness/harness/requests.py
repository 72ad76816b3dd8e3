"""What other threads ask of a running loop, kept until its next round."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
import threading

from seq_harness.playback.session import Commands


class OnInstruction(Enum):
    """What a new instruction does to an episode that is under way."""

    NEXT_ACT = 'next_act'
    """The next act carries it."""
    REPLAN = 'replan'
    """The policy is asked at once, and what is in flight is dropped; rows play on meanwhile."""


class Hold(Enum):
    """Why an episode plays nothing for a while."""

    PAUSED = 'paused'
    TAKEN_OVER = 'taken_over'
    """A person moves the robot: manual commands pass."""


@dataclass(frozen=True)
class RequestAnswer:
    """Whether a request was accepted, and why not."""

    accepted: bool
    reason: str


StartAnswer = RequestAnswer
"""Whether a start was accepted, and why not."""

ACCEPTED = RequestAnswer(True, 'accepted')
NOT_RUNNING = RequestAnswer(False, 'no episode is running: start one first')


class Requests:
    """
    The requests that wait for the next round; any thread may call any method.

    A hold and its end replace each other: the last one asked for counts.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()  # held for a few assignments
        self._busy = False  # under _lock
        self._start = False  # under _lock
        self._stop: str | None = None  # under _lock
        self._hold: Hold | None = None  # under _lock
        self._resume = False  # under _lock
        self._replan = False  # under _lock
        self._restart = False  # under _lock
        self._manual: Commands | None = None  # under _lock
        self._withheld = False  # set by any thread, never cleared while an episode runs
        self._instruction = ''  # replaced whole by any thread

    @property
    def stop_reason(self) -> str | None:
        """Why the episode is to end; None while it is not."""
        return self._stop

    @property
    def interrupts(self) -> bool:
        """Whether what a round is about to send is not wanted any more."""
        return self._stop is not None or self._hold is not None

    @property
    def withheld(self) -> bool:
        """Whether nothing may go out any more until the next start."""
        return self._withheld

    @property
    def instruction(self) -> str:
        """Return what the next act is to carry."""
        return self._instruction

    def instruct(self, text: str) -> bool:
        """Set the instruction; tell whether it is another one."""
        changed = text != self._instruction
        self._instruction = text
        return changed

    def withhold(self) -> None:
        """Let nothing more out until the next start."""
        self._withheld = True

    def start(self) -> RequestAnswer:
        """Ask for an episode; a second one while one is live is refused (R48)."""
        with self._lock:
            if self._busy:
                return RequestAnswer(False, 'an episode is running: stop it first')
            self._clear()
            self._busy = self._start = True
            self._withheld = False
        return ACCEPTED

    def decline(self, reason: str) -> bool:
        """Ask for an episode that ends by `reason` before it opens; tell whether none is live."""
        with self._lock:
            if self._busy:
                return False
            self._clear()
            self._busy = self._start = True
            self._stop = reason
        return True

    def stop(self, reason: str) -> bool:
        """Ask for the end of the live episode, by its first reason; tell whether there is one."""
        with self._lock:
            if self._busy:
                self._stop = self._stop or reason
            return self._busy

    def hold(self, hold: Hold) -> RequestAnswer:
        """Ask that nothing plays until `resume`."""
        with self._lock:
            if not self._busy:
                return NOT_RUNNING
            self._hold, self._resume, self._manual = hold, False, None
        return ACCEPTED

    def resume(self) -> RequestAnswer:
        """Ask that play goes on."""
        with self._lock:
            if not self._busy:
                return NOT_RUNNING
            self._hold, self._resume, self._manual = None, True, None
        return ACCEPTED

    def replan(self) -> RequestAnswer:
        """Ask for a fresh plan."""
        with self._lock:
            if not self._busy:
                return NOT_RUNNING
            self._replan = True
        return ACCEPTED

    def restart(self) -> RequestAnswer:
        """Ask that what is held is dropped and asked for afresh."""
        with self._lock:
            if not self._busy:
                return NOT_RUNNING
            self._restart = True
        return ACCEPTED

    def command(self, commands: Commands, held: Hold | None) -> RequestAnswer:
        """Ask that `commands` go out, once, while nothing plays (R50); the newest counts."""
        with self._lock:
            taken_over = held is Hold.TAKEN_OVER and self._hold is not Hold.PAUSED
            if self._busy and not taken_over:
                return RequestAnswer(
                    False, 'an episode is running: stop it or take over before moving by hand'
                )
            self._manual = commands
        return ACCEPTED

    def take_start(self) -> bool:
        """Take the wish for an episode."""
        with self._lock:
            wanted, self._start = self._start, False
        return wanted

    def take_hold(self) -> Hold | None:
        """Take the wish to hold."""
        with self._lock:
            wanted, self._hold = self._hold, None
        return wanted

    def take_resume(self) -> bool:
        """Take the wish to go on."""
        with self._lock:
            wanted, self._resume = self._resume, False
        return wanted

    def take_replan(self) -> bool:
        """Take the wish for a fresh plan."""
        with self._lock:
            wanted, self._replan = self._replan, False
        return wanted

    def take_restart(self) -> bool:
        """Take the wish to start afresh."""
        with self._lock:
            wanted, self._restart = self._restart, False
        return wanted

    def take_manual(self, held: Hold | None) -> Commands | None:
        """Take the manual command, if one may still pass."""
        with self._lock:
            wanted, self._manual = self._manual, None
            return wanted if not self._busy or held is Hold.TAKEN_OVER else None

    def finish(self) -> None:
        """Note that the episode has ended."""
        with self._lock:
            self._clear()
            self._busy = False

    def _clear(self) -> None:
        self._start = self._resume = self._replan = self._restart = False
        self._stop = self._hold = self._manual = None

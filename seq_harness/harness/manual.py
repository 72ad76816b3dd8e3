"""Commands by hand: they bypass the player, never the guard."""

from __future__ import annotations

from collections import Counter
import logging
from typing import Protocol

from seq_harness.outputs import Outputs
from seq_harness.playback.session import Commands, Observation

logger = logging.getLogger(__name__)


class ManualGuard(Protocol):
    """What manual commands must pass (R50)."""

    def check(self, commands: Commands, observation: Observation, t: int) -> Commands:
        """
        Return what may go out at `t`.

        Raises
        ------
        ChunkRefused
            Names the channel, the value and its limit.

        """

    def reset(self) -> None:
        """Forget what was commanded: the next command is bounded from the measured state."""


class Manual:
    """Send manual commands that pass the guard, and count all of them; the paced thread's."""

    def __init__(self, guard: ManualGuard, outputs: Outputs) -> None:
        self._guard = guard
        self._outputs = outputs
        self.counts: Counter[str] = Counter()
        """Commands by what became of them: `sent`, or the cause of their refusal."""
        self.last_refusal = ''
        """Why the newest refused one was refused."""

    def begin(self) -> None:
        """Bound the next command from the measured state: others moved the robot."""
        self._guard.reset()

    def send(self, commands: Commands, observation: Observation, t: int) -> None:
        """Send what passes the guard at `t`; refuse the rest."""
        try:
            allowed = self._guard.check(commands, observation, t)
            self._outputs.publish(self._outputs.encode(allowed))
        except Exception as error:
            self.refuse('guard', f'{type(error).__name__}: {error}')
        else:
            self.counts['sent'] += 1

    def refuse(self, cause: str, reason: str) -> None:
        """Count a refusal under its cause; say the first of each."""
        if not self.counts[cause]:
            logger.warning('a manual command was refused: %s', reason)
        self.counts[cause] += 1
        self.last_refusal = reason

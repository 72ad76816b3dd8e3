"""Holds of an episode: what a pause, a takeover and their end do between two rounds."""

from __future__ import annotations

from collections.abc import Callable
import logging

from seq_harness.harness.manual import Manual
from seq_harness.harness.requests import Hold, Requests
from seq_harness.harness.running import Running
from seq_harness.inputs import Inputs, Snapshot
from seq_harness.outputs import Outputs

logger = logging.getLogger(__name__)

Unavailable = Callable[[Snapshot], str | None]
"""Says why the arm cannot be moved; None while it can."""


class Holding:
    """Carry out what was asked for since the last round; the paced thread's alone."""

    def __init__(
        self,
        requests: Requests,
        inputs: Inputs,
        outputs: Outputs,
        *,
        manual: Manual | None,
        unavailable: Unavailable,
        on_change: Callable[[], None],
    ) -> None:
        self._requests = requests
        self._inputs = inputs
        self._outputs = outputs
        self._manual = manual
        self._unavailable = unavailable
        self._on_change = on_change

    def apply(self, running: Running, snapshot: Snapshot, now: int) -> None:
        """Begin or end a hold, or ask anew, as was wished for since the last round."""
        hold = self._requests.take_hold()
        if hold is not None and hold is not running.hold:
            self._begin(running, hold, now)
        if self._requests.take_resume() and running.hold is not None:
            self._end(running, snapshot, now)
        if self._requests.take_restart() and running.hold is None:
            self.start_afresh(running, now)
        if self._requests.take_replan() and running.hold is None and not running.waiting:
            running.replans += 1
            running.opened.player.replan()

    def start_afresh(self, running: Running, now: int) -> None:
        """Drop what is held, so that it is asked for anew and bounded from the measured state."""
        self.stop_motion(running, now)
        running.opened.session.cancel()
        running.opened.episode.resume(now)

    def _begin(self, running: Running, hold: Hold, now: int) -> None:
        if running.hold is None:
            running.held_since_ns = now
            self.stop_motion(running, now)
            running.opened.session.cancel()
        if self._manual is not None:
            self._manual.begin()
        running.hold = hold
        self._on_change()

    def _end(self, running: Running, snapshot: Snapshot, now: int) -> None:
        reason = self.unready(snapshot, now)
        if reason is not None:
            logger.warning('the episode stays %s: %s', running.state.value, reason)
            return
        running.held_ns += now - running.held_since_ns
        running.hold = None
        running.opened.episode.resume(now)
        self._on_change()

    def stop_motion(self, running: Running, now: int) -> None:
        """End the motion that is under way; positions hold by themselves."""
        commands = running.opened.player.stop_commands(now)
        if commands and not self._requests.withheld:
            self._outputs.publish(self._outputs.encode(commands))

    def unready(self, snapshot: Snapshot, now: int) -> str | None:
        """Say why play may not begin from a snapshot; None if it may."""
        old = self._inputs.missing(snapshot) + self._inputs.stale(snapshot, now)
        if old:
            return f'stale_input: {self._inputs.named(old, snapshot)}'
        reason = self._unavailable(snapshot)
        return None if reason is None else f'arm_unavailable: {reason}'

"""One episode of a policy behind a websocket."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from seq_harness.client.acting import Acting
from seq_harness.client.figures import ActTally, ScopeFigures
from seq_harness.client.running import Running
from seq_harness.client.uploader import Uploader
from seq_harness.playback.uplink import Queued, Standing, Step


class SequenceScope:
    """
    Hand an episode's steps to its acts and to its observation stream (PolicyScope).

    `infer` runs on the runtime's thread; the others are called by the paced thread and return at
    once.
    """

    def __init__(
        self,
        acting: Acting,
        uploader: Uploader,
        tally: ActTally,
        reconnects: Callable[[], int],
    ) -> None:
        self._acting = acting
        self._uploader = uploader
        self._tally = tally
        self._reconnects = reconnects
        self._running = Running()

    def infer(self, step: Step, plan: Mapping[str, Any] | None = None) -> Any:
        """
        Ask the policy about `step` and return its outputs.

        Raises
        ------
        PolicyError
            The policy failed; carries the remote type and message.
        WorkerLost
            No worker could be reached within the reconnect time.
        StateLost
            The worker process changed, and the policy keeps state. The next act begins afresh.
        ActAbandoned
            The observation grew too old before an answer came, or the answer took too long.
        Retired
            `retire` or `close` was called.
        ObservationTooLarge, MsgpackError
            The observation cannot be sent as it is.

        """
        with self._running.act() as cancel:
            return self._acting.run(step, plan, cancel)

    def observe(self, step: Step) -> Queued:
        """Hand a step that no act carries to the observation stream."""
        return self._uploader.observe(step.number, step.observation)

    def skip(self, number: int) -> None:
        """Declare that the step of this number will never be sent."""
        self._uploader.skip(number)

    def expect(self, next_ask: int) -> None:
        """Say which step the next ask will be, so that the stream sends only what is wanted."""
        self._uploader.expect(next_ask)

    def standing(self) -> Standing:
        """Say how the act that is under way stands."""
        return self._acting.standing()

    def retire(self) -> None:
        """Give up the running act: its connection ends, and `infer` raises Retired (R56)."""
        self._running.retire()

    def close(self) -> None:
        """Give up the running act; the end of the episode is told from another thread."""
        self._running.close()
        self._uploader.close()

    def join(self, deadline_s: float) -> None:
        """Wait until the end was told, or until `deadline_s` on the monotonic clock."""
        self._uploader.join(deadline_s)

    @property
    def closed(self) -> bool:
        """Tell whether the episode was closed."""
        return self._running.closed

    @property
    def ended(self) -> bool:
        """Tell whether nothing of the episode goes on any more."""
        return self.closed and self._uploader.ended

    @property
    def request_id(self) -> str:
        """Return what the newest act is called on the wire; empty before the first."""
        return self._acting.request_id

    @property
    def process(self) -> str | None:
        """Return the worker process that gave the newest answer, or the warm-up's."""
        return self._acting.process

    @property
    def answered_anew(self) -> bool:
        """Tell whether the newest answer is the first of a process that had no warm-up."""
        return self._acting.answered_anew

    @property
    def handler_ms(self) -> float | None:
        """Return the worker's own part of the newest answer; None where it does not say so."""
        return self._acting.handler_ms

    def figures(self) -> ScopeFigures:
        """Return what this episode did on the wire so far; may be called from any thread."""
        return ScopeFigures(self._tally.figures(), self._uploader.figures(), self._reconnects())

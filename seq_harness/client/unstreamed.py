"""An episode on a server that reads one observation an act, and takes no stream of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from seq_harness.client.cancel import Cancel
from seq_harness.client.figures import ActTally
from seq_harness.client.running import Running
from seq_harness.playback.uplink import Queued, Retired, Standing, Step


class UnstreamedScope:
    """
    Ask about an episode's steps, each in a question of its own (PolicyScope).

    `infer` runs on the runtime's thread; the others may be called from any, and return at once.
    """

    def __init__(self) -> None:
        self._tally = ActTally()
        self._running = Running(self._let_go)

    def infer(self, step: Step, plan: Mapping[str, Any] | None = None) -> Any:
        """
        Ask the policy about `step` and return its outputs; these wires carry no plan.

        Raises
        ------
        PolicyError
            The policy failed; carries the remote type and message.
        WorkerLost
            The server could not be reached within the reconnect time, or is another one.
        StateLost
            The connection was lost after an answer, and with it what the policy knew.
        ActAbandoned
            The observation grew too old, or its answer did not come: ask anew.
        Retired
            `retire` or `close` was called.
        ValueError
            The observation is not what the key map says.

        """
        with self._running.act() as cancel:
            self._tally.count('asked')
            try:
                return self._ask(step, cancel)
            except BaseException as error:
                self._tally.count('failed')
                if cancel.is_set() and not isinstance(error, Retired):
                    raise Retired(f'step {step.number} was given up') from error
                raise

    def observe(self, step: Step) -> Queued:
        """Let a step go that no act carries: nobody reads it."""
        return Queued.ACCEPTED

    def skip(self, number: int) -> None:
        """Take note of nothing: these servers number no steps."""

    def expect(self, next_ask: int) -> None:
        """Take note of nothing: nothing is sent but what is asked about."""

    def standing(self) -> Standing:
        """Say how the act that is under way stands."""
        raise NotImplementedError

    def retire(self) -> None:
        """Give up the running act: its connection ends, and `infer` raises Retired (R56)."""
        self._running.retire()

    def close(self) -> None:
        """Give up the running act, and take no other."""
        self._running.close()

    @property
    def closed(self) -> bool:
        """Tell whether the episode was closed."""
        return self._running.closed

    def _ask(self, step: Step, cancel: Cancel) -> Any:
        """Ask about a step; what is raised once `cancel` is set becomes Retired."""
        raise NotImplementedError

    def _let_go(self) -> None:
        """Let go of what the episode held, once: nobody uses it any more."""

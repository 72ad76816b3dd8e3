"""What a round needs that can be made just before its instant."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
import logging

from seq_harness.harness.running import Running
from seq_harness.inputs import Inputs, Snapshot
from seq_harness.observation import ObservationSpec, SampledObservation
from seq_harness.outputs import Encoded, Outputs
from seq_harness.playback.session import Commands

logger = logging.getLogger(__name__)

USABLE_NS = 5_000_000
"""A round later than this after its instant looks at the inputs anew."""


@dataclass(frozen=True)
class Prepared:
    """A snapshot in which no input was missing or too old, and what was made of it."""

    instant_ns: int
    """The instant it was made for."""
    instruction: str
    snapshot: Snapshot
    observation: SampledObservation
    commands: Commands | None
    """What the player will most likely answer."""
    encoded: Encoded | None
    """The messages of just those commands."""
    expiry_ns: int | None
    """The last instant at which what was made of it may go out; None for no bound."""

    def expired(self, now: int) -> bool:
        """Tell whether an input is too old by now for anything to go out."""
        return self.expiry_ns is not None and now > self.expiry_ns


class Preparing:
    """Make things ready for one instant; the paced thread's alone."""

    def __init__(
        self,
        inputs: Inputs,
        outputs: Outputs,
        spec: ObservationSpec,
        look: Callable[[], Snapshot],
    ) -> None:
        """`look` is how the inputs are looked at."""
        self._inputs = inputs
        self._look = look
        self._outputs = outputs
        self._spec = spec
        self._ready: Prepared | None = None

    def prepare(self, running: Running, instant_ns: int, instruction: str) -> bool:
        """Look at the inputs, and encode what is due at `instant_ns`; tell whether anything is."""
        self._ready = None
        if running.waiting or running.hold is not None:
            return False
        snapshot = self._look()
        if self._inputs.missing(snapshot) or self._inputs.stale(snapshot, instant_ns):
            return False
        commands = running.opened.player.upcoming(instant_ns)
        self._ready = Prepared(
            instant_ns,
            instruction,
            snapshot,
            self._spec.observe(snapshot, instant_ns, instruction),
            commands,
            self._encoded(commands),
            self._inputs.expiry_ns(snapshot),
        )
        return commands is not None

    def take(self, t: int, instruction: str) -> Prepared | None:
        """Return what was made ready, if a round at `t` may go by it; it serves once."""
        ready, self._ready = self._ready, None
        if ready is None or ready.instruction != instruction:
            return None
        in_time = ready.instant_ns <= t <= ready.instant_ns + USABLE_NS
        return ready if in_time and not ready.expired(t) else None

    def _encoded(self, commands: Commands | None) -> Encoded | None:
        # Commands for channels that are not there are counted in the round, once.
        if commands is None or self._outputs.unknown:
            return None
        try:
            return self._outputs.encode(commands)
        except Exception:
            # The round meets the same failure and gives it its name.
            logger.debug('encoding ahead failed', exc_info=True)
            return None

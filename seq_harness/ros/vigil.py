"""What a watchdog knows of its harness: the beats that it hears, and when silence is too long."""

from __future__ import annotations

from enum import Enum

from seq_harness.ros.beats import Beat

SILENT_PERIODS, LEAST_TIMEOUT_S = 3, 0.1
"""A harness silent for so many row periods is dead or frozen; for less than 0.1 s it may wait."""

IDLE_LOOK_NS = 100_000_000
"""How often a harness that moves nothing is looked at."""

GONE_NS = 1_000_000_000
"""A harness that moves nothing is gone after a silence of so long; nothing hangs on it."""

ENDED_NS, ZEROED_NS = 5_000_000_000, 60_000_000_000
"""A watchdog that nobody looks after is needed for so long after its harness ended, or it did."""

FROZEN_NS = 1_000_000_000
"""Two looks that lie further apart had a freeze of this process between them."""


def silence_s(period_s: float) -> float:
    """Return how long nothing may be heard of a harness whose rows last so long."""
    return max(SILENT_PERIODS * period_s, LEAST_TIMEOUT_S)


class Watch(Enum):
    """What a watchdog does."""

    WAITING = 'waiting'
    """No harness was heard yet."""
    WATCHING = 'watching'
    """The harness is heard."""
    GONE = 'gone'
    """The harness fell silent while it moved nothing."""
    HOLDING = 'holding'
    """The harness fell silent while it moved the robot: its channels are kept at zero."""


class Vigil:
    """
    Judge a harness by its beats; one thread's.

    Silence is counted while this process runs: one that was frozen itself accuses nobody.
    """

    def __init__(self, look_ns: int, timeout_s: float = 0.0) -> None:
        """`look_ns` lies between two looks at least; `timeout_s` 0 goes by the rows' period."""
        self._look_ns = look_ns
        self._timeout_s = timeout_s
        self._looked_ns: int | None = None
        self._silent_ns = 0  # of what counts against the harness
        self._quiet_ns = 0  # since the last beat
        self._held_ns = 0  # since the hold began
        self._beat: Beat | None = None
        self.held: Beat | None = None
        """The last beat of the harness that fell silent, while its channels are kept at zero."""

    @property
    def beat(self) -> Beat | None:
        """Return the newest beat."""
        return self._beat

    @property
    def timeout_ns(self) -> int:
        """Return how long after a beat the robot is kept at zero, where no other came."""
        beat = self._beat
        own_s = self._timeout_s or silence_s(0.0 if beat is None else beat.period_s)
        return round(own_s * 1e9)

    @property
    def silent_s(self) -> float:
        """Return for how long nothing was heard, in s."""
        return self._silent_ns / 1e9

    @property
    def state(self) -> Watch:
        """Return what is to be done."""
        if self.held is not None:
            return Watch.HOLDING
        if self._beat is None:
            return Watch.WAITING
        gone = self._late and self._silent_ns >= GONE_NS
        return Watch.GONE if gone else Watch.WATCHING

    @property
    def next_look_ns(self) -> int:
        """Return how long after the last beat or look the next look is due."""
        beat = self._beat
        if self.held is not None or (beat is not None and beat.moving and self._silent_ns):
            return self._look_ns
        return self._patience_ns if beat is not None and beat.moving else IDLE_LOOK_NS

    @property
    def over(self) -> str:
        """Say why a watchdog that nobody looks after is needed no more; empty while it may be."""
        beat = self._beat
        if beat is not None and beat.ends and self._quiet_ns >= ENDED_NS:
            return f'its harness ended {ENDED_NS / 1e9:g} s ago'
        if self.held is not None and self._held_ns >= ZEROED_NS:
            return f'the channels have been zero for {ZEROED_NS / 1e9:g} s'
        return ''

    def heard(self, beat: Beat, now_ns: int) -> None:
        """Take a beat that came now, on the steady clock; one of a new episode ends the hold."""
        self._beat = beat
        if self.held is not None and beat.moving and not _same(beat, self.held):
            self.held = None
        self._silent_ns = self._quiet_ns = 0
        self._looked_ns = now_ns

    def look(self, now_ns: int) -> Watch:
        """Count the silence until now, on the steady clock, and return what is to be done."""
        passed_ns = 0 if self._looked_ns is None else now_ns - self._looked_ns
        self._looked_ns = now_ns
        self._silent_ns += min(passed_ns, self._patience_ns)
        ran_ns = min(passed_ns, FROZEN_NS)
        self._quiet_ns += ran_ns
        self._held_ns += ran_ns
        beat = self._beat
        if beat is not None and beat.moving and self._late and self.held is None:
            self.held, self._held_ns = beat, 0
        return self.state

    def release(self) -> bool:
        """Let go of what is held, until the harness moves again; tell whether something was."""
        held, self.held = self.held, None
        # What it said last is forgotten: its silence goes on and must not count again.
        if held is not None and self._beat == held:
            self._beat = None
        return held is not None

    @property
    def _patience_ns(self) -> int:
        """Return the longest time between two looks that counts: a longer one was a freeze."""
        return max(self._look_ns, self.timeout_ns - 2 * self._look_ns)

    @property
    def _late(self) -> bool:
        # The next look would come too late.
        return self._silent_ns + self._look_ns > self.timeout_ns


def _same(one: Beat, other: Beat) -> bool:
    return (one.instance, one.episode) == (other.instance, other.episode)

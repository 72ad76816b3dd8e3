"""How old an observation may be when it is asked about, and when its answer arrives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from seq_harness.playback.session import Observation

AgeOf = Callable[[Observation, int], int]
"""Returns how old the oldest input of an observation is at an instant, in ns."""


@dataclass(frozen=True)
class Expiry:
    """Bounds in ns; None for no bound."""

    request_ns: int | None = None
    """An older observation is not asked about."""
    arrival_ns: int | None = None
    """A chunk whose observation is older than this when it arrives is dropped."""
    age_of: AgeOf | None = None
    """Without it an observation is as old as the round that sampled it."""

    def age_ns(self, observation: Observation, t: int) -> int:
        """Return the age of an observation that the round at `t` sampled."""
        return self.age_of(observation, t) if self.age_of else 0

    def refuses(self, observation: Observation, t: int) -> bool:
        """Tell whether the observation is too old to be asked about."""
        return self.request_ns is not None and self.age_ns(observation, t) > self.request_ns

    def expired(self, age_at_request_ns: int, delay_ns: int) -> bool:
        """Tell whether an answer comes too late for its observation."""
        return self.arrival_ns is not None and age_at_request_ns + delay_ns > self.arrival_ns

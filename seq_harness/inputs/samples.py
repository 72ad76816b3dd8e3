"""What is known of an input at an instant, and what became of a message."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any


def _keep(sample: Sample) -> None:
    """Take nothing back: numbers and words are read at their arrival."""


@dataclass(frozen=True)
class Sample:
    """The newest of one input; immutable, so any thread may read it."""

    value: Any
    """A reference to the message, or for joints their values by name."""
    stamp_ns: int
    """Its ROS time: the header's where that is plausible, else its arrival's."""
    born_ns: int
    """When it was made, on the playback clock: its arrival less its age at arrival."""
    retract: Callable[[Sample], None] = field(default=_keep, compare=False, repr=False)
    """Takes it back, as what could not be decoded: call it with the sample itself."""


Snapshot = Mapping[str, Sample]
"""Input name to sample: what a round reads."""


class Verdict(Enum):
    """What became of a message at its arrival."""

    ACCEPTED = 'accepted'
    RESTAMPED = 'restamped'
    """Accepted, aged from its arrival because its stamp is implausible."""
    CONTESTED = 'contested'
    """Accepted, while two publishers say different things of the same."""
    UNAVAILABLE = 'unavailable'
    """Accepted; it says that the arm is not available."""
    LOST = 'lost'
    """Others that were sent did not arrive."""
    INCOMPATIBLE = 'incompatible'
    """None arrives: the publisher does not offer the QoS that is asked for."""
    REFUSED = 'refused'
    """It does not refresh the input."""


@dataclass(frozen=True)
class Arrival:
    """The verdict on a message, and its reason where it is not plainly accepted."""

    verdict: Verdict
    reason: str = ''

"""What is known of an input at an instant, and what became of a message."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any


def _keep(sample: Sample) -> None:
    """Take nothing back: numbers and words are read at their arrival."""


class InputChanged(ValueError):
    """An input is no longer what it was as the episode began; names it, and both."""


@dataclass(frozen=True)
class Still:
    """Since when the numbers that come together have been the same to the bit."""

    topic: str
    names: tuple[str, ...]
    since_ns: int
    """When they came first as they are, on the playback clock."""
    messages: int
    """How many of them have come since then, that one included, with a stamp of its own."""
    steps: Mapping[str, float]
    """The smallest change that was seen of each; one that never changed has none."""


@dataclass(frozen=True)
class Sample:
    """The newest of one input; immutable, so any thread may read it."""

    value: Any
    """A reference to the message, or for joints their values by name."""
    stamp_ns: int
    """Its ROS time: the header's where that is plausible, else its arrival's."""
    born_ns: int
    """When it was made, on the playback clock: its arrival less its age at arrival."""
    proven: bool = True
    """False while nothing shows that it is new: a first stamp that is far off says nothing."""
    doubt: str = ''
    """What is wrong with its stamps, where they make it older than its arrival."""
    still: tuple[Still, ...] = ()
    """Of numbers: for how long those of each publisher have been the same."""
    form: str = ''
    """Of an image: its encoding and size, as far as they are known without decoding it."""
    retract: Callable[[Sample], None] = field(default=_keep, compare=False, repr=False)
    """Takes it back, as what could not be decoded: call it with the sample itself."""


Snapshot = Mapping[str, Sample]
"""Input name to sample: what a round reads."""


class Verdict(Enum):
    """What became of a message at its arrival."""

    ACCEPTED = 'accepted'
    RESTAMPED = 'restamped'
    """Accepted, aged from its arrival because its stamp is implausible."""
    AGEING = 'ageing'
    """Accepted, and no newer than the ones before it: its stamp stands, or falls behind."""
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

"""What a report shows of a run, whichever source it is read from: plain arrays, times in s."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = 'npt.NDArray[np.float64]'

NOTHING: Floats = np.zeros(0)


@dataclass(frozen=True)
class Lines:
    """Lines over time: N instants of J lines."""

    names: tuple[str, ...]
    t_s: Floats
    """[N], seconds after the start, not falling."""
    values: Floats
    """[N, J]; NaN where a line has none."""

    def __len__(self) -> int:
        return len(self.t_s)


@dataclass(frozen=True)
class Channel:
    """One command output: what was commanded, and what was measured of the same joints."""

    name: str
    unit: str
    """Such as rad; empty where the source does not say."""
    commanded: Lines
    measured: Lines | None = None
    """Its names are joints of `commanded`, in any number and order."""
    due_s: Floats = field(default_factory=lambda: NOTHING)
    """When each setpoint was due, [N]; empty where the source does not say."""
    is_rate: bool = False
    """Whether values are velocities or efforts, which jump by themselves."""

    @property
    def late_ms(self) -> Floats:
        """How late each setpoint went out, [N] or empty."""
        if len(self.due_s) != len(self.commanded):
            return NOTHING
        return (self.commanded.t_s - self.due_s) * 1e3


@dataclass(frozen=True)
class Prediction:
    """The rows of one chunk for one channel, as the policy predicted them."""

    channel: str
    t_s: Floats
    """[R], when each row would be due by the chunk itself."""
    values: Floats
    """[R, J], in the order of the channel's joints."""
    name: str
    """What people call the chunk: its act, or its step."""


@dataclass(frozen=True)
class Act:
    """One question to the policy."""

    name: str
    asked_s: float
    answered_s: float | None
    """None where no answer came."""
    parts_ms: Mapping[str, float] = field(default_factory=dict)
    """How its time was spent, in order: such as `queue`, `network`, `inference`."""
    outcome: str = ''
    """Why it has no answer; empty for an answer."""


class EventKind(Enum):
    """What an event is about."""

    STATE = 'state'
    """The episode starts, ends, pauses or resumes."""
    INSTRUCTION = 'instruction'
    JOIN = 'join'
    """A new plan takes over."""
    GUARD = 'guard'
    """Rows were refused or changed."""
    STARVED = 'starved'
    """No row was there."""
    FAULT = 'fault'


@dataclass(frozen=True)
class Event:
    """Something that happened at an instant."""

    at_s: float
    kind: EventKind
    text: str


@dataclass(frozen=True)
class Frame:
    """What a camera showed at an act."""

    at_s: float
    camera: str
    name: str
    """What people call the act."""
    data: bytes
    """An encoded picture."""
    media: str = 'image/jpeg'


@dataclass(frozen=True)
class ReportData:
    """All that a report shows of one run; what a source does not tell is empty."""

    title: str
    source: str
    """What it was read from, in words."""
    start_ns: int
    """The instant from which all times count, in ns."""
    length_s: float
    reason: str = ''
    """Why the episode ended; empty where nothing says so."""
    channels: Sequence[Channel] = ()
    states: Sequence[Lines] = ()
    """What was measured of joints that no channel commands."""
    predictions: Sequence[Prediction] = ()
    predicted_from: str = 'the instant of the observation that it answers'
    """Where each of them is drawn from, in words."""
    acts: Sequence[Act] = ()
    events: Sequence[Event] = ()
    """In order of time."""
    ages_ms: Lines | None = None
    """How old each input was at an observation."""
    backlog: Lines | None = None
    """What waits to be sent to the worker."""
    frames: Sequence[Frame] = ()
    figures: Mapping[str, Any] = field(default_factory=dict)
    """What the run itself counted, as it told it."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """What else is known of the run, such as its instruction."""
    missing: Sequence[str] = ()
    """What a reader could not show, and why: sentences."""

    def times_of(self, kind: EventKind) -> Floats:
        """Return when events of a kind happened, [K]."""
        return np.array([event.at_s for event in self.events if event.kind is kind], np.float64)

"""What is wrong with a recording, and where in it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from seq_harness.bags.records import BagError


class FaultKind(Enum):
    """The kinds of faults."""

    MISSING_TOPIC = 'missing_topic'
    WRONG_TYPE = 'wrong_type'
    REFUSED = 'refused'
    """A message that its input does not take, such as a picture of an unknown encoding."""
    UNREADABLE = 'unreadable'
    """A message whose bytes are not of its type."""
    RESTAMPED = 'restamped'
    """A stamp that is zero or implausible: the message is aged from its log time."""
    STAMP_STANDS = 'stamp_stands'
    """Stamps that stand, or fall behind: the messages count for as old as these say."""
    STAMP_WENT_BACK = 'stamp_went_back'
    """A stamp before the one of the message before it."""
    FROZEN_STATE = 'frozen_state'
    """Joints that stay the same to the bit, while the replay commands them to move."""
    GAP = 'gap'
    """No message for longer than the input may be old."""
    BROKEN_OFF = 'broken_off'
    """The file ends, or is damaged, before its end."""


class OnFault(Enum):
    """What a fault does."""

    USE = 'use'
    """It is noted, and the rest of the recording is used."""
    REFUSE = 'refuse'
    """The first one ends the replay."""


class BagFault(BagError):
    """A fault of a recording that was to be refused."""


@dataclass(frozen=True)
class Place:
    """Where in a recording a message lies."""

    topic: str
    log_ns: int
    number: int
    """The message's number on its topic, from 0."""

    def __str__(self) -> str:
        return f'message {self.number} on {self.topic}, at {self.log_ns} ns'


@dataclass(frozen=True)
class Fault:
    """One kind of fault on one topic, as it was first met."""

    kind: FaultKind
    first: Place
    text: str
    count: int = 1
    """How often it was met."""

    def __str__(self) -> str:
        times = f' ({self.count} times)' if self.count > 1 else ''
        return f'{self.kind.value}: {self.first}: {self.text}{times}'


class Faults:
    """Note each kind of fault once a topic, with the place of the first and a count."""

    def __init__(self, on_fault: OnFault) -> None:
        self._on_fault = on_fault
        self._met: dict[tuple[FaultKind, str], Fault] = {}

    def note(self, kind: FaultKind, place: Place, text: str) -> None:
        """
        Note a fault.

        Raises
        ------
        BagFault
            Faults are to be refused.

        """
        fault = Fault(kind, place, text)
        if self._on_fault is OnFault.REFUSE:
            raise BagFault(str(fault))
        before = self._met.get((kind, place.topic))
        if before is not None:
            fault = replace(before, count=before.count + 1)
        self._met[(kind, place.topic)] = fault

    def met(self) -> tuple[Fault, ...]:
        """Return the faults, in order of their first places."""
        return tuple(sorted(self._met.values(), key=lambda fault: fault.first.log_ns))

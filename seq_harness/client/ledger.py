"""Where each numbered observation of an episode is on its way to the worker."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import auto, Enum

from seq_harness.contract.obs_schedule import Keys
from seq_harness.playback.session import Observation


class Place(Enum):
    """Where a number is."""

    __hash__ = object.__hash__  # places are looked up many times an act

    REFERENCE = auto()
    """Not wanted as far as is known: kept, so that an early ask can still send it."""
    QUEUED = auto()
    """Wanted, waiting for the encoder."""
    ENCODING = auto()
    READY = auto()
    """Packed, waiting for a post."""
    FLYING = auto()
    """In the post that is under way."""
    LANDED = auto()
    """Answered, and kept for a resend or a refill."""
    ACTING = auto()
    """The own observation of the act that is going on."""
    SKIPPED = auto()
    """Never to be sent, which the worker has not been told."""
    DECLARING = auto()
    """Named as skipped in the post that is under way."""
    DECLARED = auto()


PENDING = (Place.REFERENCE, Place.QUEUED, Place.ENCODING, Place.READY)
"""The places of observations that no post has taken yet."""

UNSENT = (Place.QUEUED, Place.ENCODING, Place.READY, Place.FLYING)
"""The places of frames that are bounded, because the worker does not have them yet."""


@dataclass(eq=False)
class Entry:
    """One number; `place` is changed by the ledger alone."""

    number: int
    place: Place
    observation: Observation | None = None
    """The observation as it was handed over, until it is packed."""
    payload: bytes | None = None
    """The observation as it is sent, once it is packed."""
    keys: Keys = None
    """Which keys are, or are to be, in the payload."""


class Ledger:
    """The numbers of one episode that still matter, and what they take."""

    def __init__(self) -> None:
        self.floor = 0
        """The first step that an act to come can read."""
        self._entries: dict[int, Entry] = {}
        self._at: dict[Place, set[int]] = {place: set() for place in Place}
        self._bytes = dict.fromkeys(Place, 0)
        self._last_bytes = 0

    def __contains__(self, number: int) -> bool:
        return number in self._entries

    def get(self, number: int) -> Entry | None:
        """Return the entry of `number`, or None for a number that is unknown or forgotten."""
        return self._entries.get(number)

    def put(self, entry: Entry) -> None:
        """Add an entry, or replace that of its number."""
        if entry.number in self._entries:
            self.forget(entry.number)
        self._entries[entry.number] = entry
        self._enter(entry)

    def move(self, entry: Entry, place: Place) -> None:
        """Move an entry to `place`; one that is never to be sent lets go of what it holds."""
        self._leave(entry)
        entry.place = place
        if place in (Place.SKIPPED, Place.DECLARED):
            entry.observation = entry.payload = None
        self._enter(entry)

    def pack(self, entry: Entry, payload: bytes | None) -> None:
        """Replace the observation of an entry by its payload; None drops a payload."""
        self._leave(entry)
        entry.observation, entry.payload = None, payload
        self._enter(entry)
        self._last_bytes = len(payload) if payload is not None else self._last_bytes

    def forget(self, number: int) -> None:
        """Drop an entry."""
        entry = self._entries.pop(number, None)
        if entry is not None:
            self._leave(entry)

    def clear(self) -> None:
        """Drop all entries."""
        for number in [*self._entries]:
            self.forget(number)

    def forget_passed(self, *places: Place) -> None:
        """Drop the entries at `places` that no act can read any more."""
        for number in self._passed(places):
            self.forget(number)

    def skip_passed(self, *places: Place) -> None:
        """Give up the entries at `places` that no act can read any more."""
        for number in self._passed(places):
            self.move(self._entries[number], Place.SKIPPED)

    def bound_passed(self, place: Place, most: int) -> None:
        """Forget the oldest entries at `place`, beyond `most`, that no act can read any more."""
        spare = self.count(place) - most
        if spare <= 0:
            return
        for entry in self.at(place):
            if spare <= 0 or entry.number >= self.floor:
                return
            self.forget(entry.number)
            spare -= 1

    def at(self, *places: Place) -> Iterator[Entry]:
        """Iterate over the entries at `places` in order of their numbers; they may be moved."""
        found = [number for place in places for number in self._at[place]]
        for number in sorted(found) if len(found) > 1 else found:
            entry = self._entries.get(number)
            if entry is not None and entry.place in places:
                yield entry

    def count(self, *places: Place) -> int:
        """Return how many entries are at `places`."""
        if len(places) == 1:
            return len(self._at[places[0]])
        return sum([len(self._at[place]) for place in places])

    def holds(self, places: Iterable[Place]) -> bool:
        """Tell whether any entry is at `places`."""
        return any(map(self._at.__getitem__, places))

    def payload_bytes(self, *places: Place) -> int:
        """Return the bytes of the payloads at `places`."""
        return sum(self._bytes[place] for place in places)

    def unsent_bytes(self) -> int:
        """Return the bytes not sent yet; what is not packed counts as the last one packed did."""
        unpacked = self.count(Place.QUEUED, Place.ENCODING)
        return self.payload_bytes(*UNSENT) + unpacked * self._last_bytes

    def _passed(self, places: Iterable[Place]) -> list[int]:
        held = [self._at[place] for place in places if self._at[place]]
        return [number for numbers in held for number in numbers if number < self.floor]

    def _enter(self, entry: Entry) -> None:
        self._at[entry.place].add(entry.number)
        self._bytes[entry.place] += len(entry.payload or b'')

    def _leave(self, entry: Entry) -> None:
        self._at[entry.place].discard(entry.number)
        self._bytes[entry.place] -= len(entry.payload or b'')

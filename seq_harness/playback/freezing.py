"""Whether what is measured lives, while the robot is commanded to move."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from seq_harness.playback.kinds import Delta, Kinds, Velocity
from seq_harness.playback.record import Emitted, Record
from seq_harness.playback.rotations import Vector
from seq_harness.playback.session import Observation

SAME_NS = 1_000_000_000
"""Values that stay the same for this long, while their joints are commanded away, are frozen."""

SAME_MESSAGES = 5
"""So many messages of them must have come meanwhile."""

STEPS = 10
"""A joint need not follow less than so many of its smallest steps: it may have a dead band."""


class Still(Protocol):
    """Since when the values that a publisher sends together have been the same to the bit."""

    @property
    def topic(self) -> str:
        """Return the topic, for people."""

    @property
    def names(self) -> Sequence[str]:
        """Return the joints."""

    @property
    def since_ns(self) -> int:
        """Return when the values came first, on the playback clock."""

    @property
    def messages(self) -> int:
        """Return how many messages have held them since."""

    @property
    def steps(self) -> Mapping[str, float]:
        """Return the smallest change that was seen of each joint."""


Measurements = Callable[[Observation], Mapping[str, Sequence[Still]]]
"""Returns by channel for how long the joints that are measured have been the same."""


Tell = Callable[[str, str], None]
"""Takes the topic of what is frozen, and the fault."""


@dataclass(frozen=True)
class Moving:
    """The joints of a channel that must be seen to move where they are commanded to."""

    joints: tuple[str, ...]
    bounds: Vector
    """How far each may be commanded away without that; infinite for one that may be held."""
    units: tuple[str, ...]


@dataclass
class _Commanded:
    """Where a channel is commanded to: a place, or the sum of its changes."""

    seen: Emitted
    place: Vector
    at_ns: int


@dataclass
class _Mark:
    """Where a channel was commanded to when values began to stay the same."""

    since_ns: int
    place: Vector
    away_ns: int | None = field(default=None)
    """Since when it has been commanded away from there."""
    messages: int = field(default=0)
    """How many messages had come by then."""


class Freezing:
    """
    Find values that stay the same to the bit while their joints are commanded away.

    A driver that hangs may send its last values with new stamps, on and on (G47). A real joint
    that follows its command by more than its smallest steps is not measured the same for long.
    """

    def __init__(
        self,
        channels: Mapping[str, Moving],
        kinds: Kinds | None = None,
        tell: Tell | None = None,
    ) -> None:
        """`tell` hears of what is frozen in place of the player, which then plays on."""
        self._tell = tell
        self._channels = dict(channels)
        self._kinds = kinds or Kinds()
        self._commanded: dict[str, _Commanded] = {}
        self._marks: dict[tuple[str, str, tuple[str, ...]], _Mark] = {}

    def fault(
        self, record: Record, measured: Mapping[str, Sequence[Still]], t: int, *, starved: bool
    ) -> str | None:
        """
        Say what is frozen; None when nothing is.

        `measured` is by channel. While it is `starved`, a channel need not move.
        """
        for name, moving in self._channels.items():
            last = record.last.get(name)
            if last is None:
                self._forget(name)
                continue
            place = self._follow(name, last, t)
            for still in measured.get(name, ()):
                found = self._look(name, moving, still, place, t, starved)
                if found is None:
                    continue
                if self._tell is None:
                    return found
                self._tell(still.topic, found)
        return None

    def _forget(self, name: str) -> None:
        if self._commanded.pop(name, None) is not None:
            self._marks = {key: mark for key, mark in self._marks.items() if key[0] != name}

    def _follow(self, name: str, last: Emitted, t: int) -> Vector:
        """Return where a channel is commanded to, rates and changes summed since it began."""
        kind, known = self._kinds[name], self._commanded.get(name)
        if known is None:
            place = np.zeros_like(last.value) if not kind.absolute else last.value
            self._commanded[name] = _Commanded(last, np.asarray(place, np.float64), t)
            return self._commanded[name].place
        if isinstance(kind, Velocity):
            # What was commanded last has been in force since the round before.
            known.place = known.place + np.asarray(last.value) * ((t - known.at_ns) / 1e9)
        elif isinstance(kind, Delta):
            known.place = known.place + (last.value if last is not known.seen else 0)
        else:
            known.place = np.asarray(last.value)
        known.seen, known.at_ns = last, t
        return known.place

    def _look(
        self, name: str, moving: Moving, still: Still, place: Vector, t: int, starved: bool
    ) -> str | None:
        key = (name, still.topic, tuple(still.names))
        mark = self._marks.get(key)
        if mark is None or mark.since_ns != still.since_ns:
            self._marks[key] = _Mark(still.since_ns, place)
            return None
        away = np.abs(self._kinds[name].difference(mark.place, place))
        beyond = [
            at
            for at, joint in enumerate(moving.joints)
            if joint in still.names
            and away[at] > max(float(moving.bounds[at]), STEPS * still.steps.get(joint, 0.0))
        ]
        if not beyond or starved:
            mark.away_ns = None
            return None
        if mark.away_ns is None:
            mark.away_ns, mark.messages = t, still.messages
        long = t - mark.away_ns >= SAME_NS
        if not long or still.messages - mark.messages < SAME_MESSAGES:
            return None
        mark.away_ns = None
        at = max(beyond, key=lambda joint: float(away[joint]))
        return (
            f'{still.topic} has been the same for {(t - still.since_ns) / 1e9:.1f} s while {name} '
            f'was commanded by {away[at]:.2f} {moving.units[at]} (at {moving.joints[at]})'
        )

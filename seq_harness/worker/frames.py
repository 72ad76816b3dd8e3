"""The observations of one episode: which are held, which will never come, which have passed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from seq_harness.contract.obs_schedule import keeps_from, picks, Schedule

BEFORE_FIRST = -1
"""The number that stands for no observation: before the first act, or nothing held."""

LONGEST_REACH = 1 << 17
"""Steps an act may reach back over a fed key; more than an episode can hold and skip together."""


@dataclass(frozen=True)
class Frame:
    """One numbered observation, and the bytes that it is counted as."""

    number: int
    inputs: Any
    nbytes: int


class EpisodeFrames:
    """
    The numbered observations of one episode, and how far its acts have come.

    A number is *known* when it is held, was declared skipped, or lies below `floor`: all of those
    have been read for the last time.
    """

    def __init__(self, schedule: Schedule | None) -> None:
        self.base: int | None = None
        """The first number that this episode is counted from; none until an observation comes."""
        self.floor = 0
        """The lowest number that an act to come can read."""
        self.last_act = BEFORE_FIRST
        """The number of the last act that was answered."""
        self.nbytes = 0
        self.held: dict[int, Frame] = {}
        self.skipped: set[int] = set()
        self._schedule = schedule

    def new(self, frames: Iterable[Frame]) -> list[Frame]:
        """Return those of `frames` that are not held yet and can still be read, each once."""
        fresh: dict[int, Frame] = {}
        for frame in frames:
            if self._takes(frame.number):
                fresh.setdefault(frame.number, frame)
        return list(fresh.values())

    def new_skips(self, numbers: Iterable[int]) -> set[int]:
        """Return those of `numbers` that are not known yet."""
        return {n for n in numbers if n >= self.floor and n not in self.held} - self.skipped

    def count_from(self, number: int) -> None:
        """Let the episode begin at `number`, unless it already begins earlier."""
        self.base = number if self.base is None else min(self.base, number)

    def count_from_held(self) -> None:
        """Let an episode of which no first number is known begin at the lowest one held."""
        if self.base is None and self.held:
            self.base = min(self.held)

    def add(self, frame: Frame) -> None:
        """Hold `frame`, one of `new`."""
        self.held[frame.number] = frame
        self.skipped.discard(frame.number)
        self.nbytes += frame.nbytes

    def drop(self, number: int) -> None:
        """Forget an observation that cannot be read, so that no act waits for it."""
        frame = self.held.pop(number, None)
        if frame is not None:
            self.nbytes -= frame.nbytes
        self.skipped.add(number)

    def through(self) -> int:
        """Return the highest number up to which every one is known; -1 for none."""
        number = max(self.base or 0, self.floor)
        while number in self.held or number in self.skipped:
            number += 1
        return number - 1 if number > (self.base or 0) else BEFORE_FIRST

    def missing(self, number: int, refills: bool, every: bool = False) -> list[int]:
        """
        Return, ascending, what the act at `number` reads of others and is not known.

        A client that `refills` is asked for numbers below the base too. `every` reads all
        observations since the last act, whatever the schedule picks.
        """
        lowest = 0 if refills else (self.base or 0)
        since = max(self.last_act, lowest - 1)
        if number - since > LONGEST_REACH and (every or _fed(self._schedule)):
            return [since + 1]
        asked = {step for step, _ in picks(self._schedule, number, since) if step != number}
        if every:
            asked.update(range(since + 1, number))
        return sorted(n for n in asked if n >= lowest and not self._readable(n))

    def read(self, number: int) -> list[tuple[int, tuple[str, ...] | None]]:
        """Return the picks of the act at `number` that can be read, oldest first."""
        since = max(self.last_act, (self.base or 0) - 1)
        picked = picks(self._schedule, number, since)
        return [(step, keys) for step, keys in picked if step == number or step in self.held]

    def serve(self, number: int) -> None:
        """Note that the act at `number` was answered; forget what no later act can read."""
        self.count_from_held()
        self.last_act = max(self.last_act, number)
        self.floor = max(self.floor, keeps_from(self._schedule, number))
        for passed in [n for n in self.held if n < self.floor]:
            self.nbytes -= self.held.pop(passed).nbytes
        self.skipped = {n for n in self.skipped if n >= self.floor}

    def _takes(self, number: int) -> bool:
        if number < self.floor or number in self.held:
            return False
        return number not in self.skipped or number > self.last_act

    def _readable(self, number: int) -> bool:
        return number in self.held or number in self.skipped


def _fed(schedule: Schedule | None) -> bool:
    return schedule is not None and bool(schedule.fed or schedule.every)

"""The observations of one episode: which are held, which will never come, which have passed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from seq_harness.contract.obs_schedule import keeps_from, picks, Schedule

BEFORE_FIRST = -1
"""The number that stands for no observation: before the first act, or nothing held."""


class Frame(NamedTuple):
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
        """
        The first number that this episode is counted from, never above one that is held.

        There is none until observations are posted or an act is answered: what an act carries may
        overtake what was observed before it.
        """
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
            if self.takes(frame.number):
                fresh.setdefault(frame.number, frame)
        return list(fresh.values())

    def takes(self, number: int) -> bool:
        """Tell whether an observation of this number is not held yet and can still be read."""
        if number < self.floor or number in self.held:
            return False
        return number not in self.skipped or number > self.last_act

    def new_skips(self, numbers: Iterable[int]) -> set[int]:
        """Return those of `numbers` that are not known yet."""
        return {n for n in numbers if n >= self.floor and n not in self.held} - self.skipped

    def count_from(self, number: int) -> None:
        """Let the episode begin at `number`, unless it already begins earlier."""
        known = self.held if self.base is None else [self.base]
        self.base = min([number, *known])

    def count_from_held(self) -> None:
        """Let an episode of which no first number is known begin at the lowest one held."""
        if self.base is None and self.held:
            self.base = min(self.held)

    def add(self, frame: Frame) -> None:
        """Hold `frame`, one of `new`."""
        self.held[frame.number] = frame
        if self.base is not None:
            self.base = min(self.base, frame.number)
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

    def first_missing(self, number: int, refills: bool, every: bool = False) -> int | None:
        """
        Return the lowest number that the act at `number` reads beside its own and is not known.

        A client that `refills` is asked for numbers below the base too. `every` reads all
        observations since the last act, whatever the schedule picks.
        """
        lowest = 0 if refills else (self.base or 0)
        since = max(self.last_act, lowest - 1)
        windows = [step for step, _ in picks(self._schedule, number, number - 1)]
        asked: list[Iterable[int]] = [windows]
        for stride in _strides(self._schedule) + [1] * every:
            # The grid counts back from the act; ascending, it ends at the first gap.
            first = number - stride * ((number - since - 1) // stride)
            asked.append(range(first, number, stride))
        gaps = (self._first_gap(steps, lowest, number) for steps in asked)
        return min((gap for gap in gaps if gap is not None), default=None)

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

    def _first_gap(self, steps: Iterable[int], lowest: int, number: int) -> int | None:
        for step in steps:
            known = step in self.held or step in self.skipped
            if not known and lowest <= step != number:
                return step
        return None


def _strides(schedule: Schedule | None) -> list[int]:
    if schedule is None:
        return []
    return [*schedule.fed.values(), *([schedule.every] if schedule.every else [])]

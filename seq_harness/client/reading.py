"""What the acts of an episode read of its steps, by the policy's observation schedule."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from seq_harness.contract import obs_schedule
from seq_harness.contract.obs_schedule import Keys, Schedule

BEFORE_FIRST = -1
"""Stands for the act before an episode's first."""


@dataclass(frozen=True)
class Wish:
    """What is wanted of one step."""

    keys: Keys


def covers(sent: Keys, wanted: Keys) -> bool:
    """Tell whether the keys that were sent hold all that are wanted."""
    return sent is None or (wanted is not None and set(wanted) <= set(sent))


def count_short(sent: Iterable[tuple[int, Keys]], wanted: Mapping[int, Keys]) -> int:
    """Count the steps that were sent with fewer keys than are wanted of them."""
    return sum(step in wanted and not covers(keys, wanted[step]) for step, keys in sent)


class Reading:
    """
    The observation schedule, asked in numbers of the robot's steps.

    The worker counts an episode from 0, and the robot from `base`: after a restart of the worker
    the two differ. `served` is the last act that was answered, or None.
    """

    def __init__(self, schedule: Schedule | None) -> None:
        self._schedule = schedule
        self.past_keys: Keys = ()
        """The keys that some act may read of a step before its own; None is all of them."""
        self.reads_past = schedule is not None and obs_schedule.reads_past(schedule)
        if schedule is not None and self.reads_past:
            self.past_keys = None if schedule.every else _keys_before_own(schedule)

    def wanted(self, base: int, served: int | None, next_ask: int) -> dict[int, Keys]:
        """Return the steps after `served` and before `next_ask` that an act can read."""
        if not self.reads_past:
            return {}
        found = obs_schedule.wanted(
            self._schedule, _on_wire(served, base), max(next_ask - base, 0)
        )
        return {step + base: keys for step, keys in found.items()}

    def needed(self, base: int, served: int | None, asked: int) -> set[int]:
        """Return the steps before `asked` that an act at it reads."""
        if not self.reads_past:
            return set()
        found = obs_schedule.needed(self._schedule, asked - base, _on_wire(served, base))
        return {step + base for step in found}

    def keeps_from(self, base: int, served: int) -> int:
        """Return the first step that an act after `served` can still read."""
        return base + obs_schedule.keeps_from(self._schedule, served - base)


def _keys_before_own(schedule: Schedule) -> tuple[str, ...]:
    windows = {key for key, offsets in schedule.windows.items() if min(offsets) < 0}
    return tuple(sorted(windows | set(schedule.fed)))


def _on_wire(served: int | None, base: int) -> int:
    return BEFORE_FIRST if served is None or served < base else served - base

"""What an inference costs in a recording's time, and where it runs in lockstep."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
import time
from typing import Any, Generic, TypeAlias, TypeVar

from seq_harness.playback.answer import Answer, NotAnswered

T = TypeVar('T')

Cost: TypeAlias = Callable[[int, int], int]
"""Returns what an act costs in ns, by its number, from 0, and its real duration in ns."""


def uncharged(number: int, real_ns: int) -> int:
    """Charge nothing: the world pauses while the policy thinks."""
    return 0


def charged_real(number: int, real_ns: int) -> int:
    """Charge what the inference took here and now; two runs may differ."""
    return real_ns


def charged(each_s: float) -> Cost:
    """Charge every inference the same."""
    each_ns = round(each_s * 1e9)
    return lambda number, real_ns: each_ns


def charged_as_recorded(acts_s: Sequence[float]) -> Cost:
    """
    Charge what each act took in another run; acts beyond the last cost what that one did.

    Raises
    ------
    ValueError
        There is no act.

    """
    if not acts_s:
        raise ValueError('the durations of recorded acts were expected, and there are none')
    costs = [round(each * 1e9) for each in acts_s]
    return lambda number, real_ns: costs[min(number, len(costs) - 1)]


@dataclass(frozen=True)
class Act:
    """One inference of a replay."""

    asked_ns: int
    """When it was asked, in the recording's time."""
    cost_ns: int
    """How much later its answer was seen."""
    real_ns: int
    """How long it took here."""


class Meter:
    """A clock that only inferences move, each by its cost; reads as a charged start wants it."""

    def __init__(self, cost: Cost, world_ns: Callable[[], int]) -> None:
        self._cost = cost
        self._world_ns = world_ns
        self._now_ns = 0
        self.acts: list[Act] = []

    def now_ns(self) -> int:
        """Return the sum of the costs so far."""
        return self._now_ns

    def metered(self, work: Callable[[], T]) -> Callable[[], T]:
        """Return `work`, such that running it moves this clock."""

        def run() -> T:
            asked_ns, began_ns = self._world_ns(), time.perf_counter_ns()
            try:
                return work()
            finally:
                real_ns = time.perf_counter_ns() - began_ns
                cost_ns = self._cost(len(self.acts), real_ns)
                self._now_ns += cost_ns
                self.acts.append(Act(asked_ns, cost_ns, real_ns))

        return run


class Errand(Generic[T]):
    """Work that waits for its driver, and then for whoever started it."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._outcome: list[T] = []
        self._error: Exception | None = None

    def run(self) -> None:
        """Do the work, on the caller's thread."""
        try:
            self._outcome = [self._work()]
        except Exception as error:
            self._error = error

    def done(self) -> bool:
        """Tell whether the work was done."""
        return bool(self._outcome) or self._error is not None

    def result(self) -> T:
        """Return the outcome, or raise what the work raised."""
        if self._error is not None:
            raise self._error
        if not self._outcome:
            raise NotAnswered('the work was not done yet: ask done() first')
        return self._outcome[0]


class Errands:
    """
    Run inferences between two rounds, on the driver's own thread.

    So no round sees an answer that another run would see a round later.
    """

    def __init__(self) -> None:
        self._waiting: list[Errand[Any]] = []

    def start(self, work: Callable[[], T]) -> Answer[T]:
        """Note the work; return at once."""
        errand = Errand(work)
        self._waiting.append(errand)
        return errand

    def run(self) -> bool:
        """Do what waits; tell whether there was anything."""
        waiting, self._waiting = self._waiting, []
        for errand in waiting:
            errand.run()
        return bool(waiting)

    def retire(self) -> None:
        """Give up what waits."""
        self._waiting.clear()

"""What an inference costs in simulated or replayed time."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Generic, TypeVar

from seq_harness.playback.answer import Answer, NotAnswered

T = TypeVar('T')

Reading = Callable[[], int]
"""Reads a clock, in ns."""


class Charging(Enum):
    """Whether an inference costs world time (R51)."""

    CHARGED = 'charged'
    """Its answer is visible at the instant it was asked plus its real duration."""
    UNCHARGED = 'uncharged'
    """The world pauses: its answer is visible at the instant it was asked."""


class ChargedAnswer(Generic[T]):
    """An answer that the world sees no earlier than it has been paid for."""

    def __init__(self, world_ns: Reading, asked_ns: int) -> None:
        self._world_ns = world_ns
        self.asked_ns = asked_ns
        self._inner: Answer[T] | None = None
        self._took_ns: int | None = None  # written where the work runs, before it is done

    def bind(self, inner: Answer[T]) -> None:
        """Name the answer whose outcome this is."""
        self._inner = inner

    def took(self, real_ns: int) -> None:
        """Note how long the work took; called where it ran."""
        self._took_ns = real_ns

    @property
    def outcome_there(self) -> bool:
        """Whether the work has ended, visible or not."""
        return self._inner is not None and self._inner.done()

    @property
    def visible_ns(self) -> int | None:
        """When the world sees the outcome; None while the work goes on."""
        if not self.outcome_there:
            return None
        return self.asked_ns + (self._took_ns or 0)

    def done(self) -> bool:
        """Tell whether the world sees the outcome by now."""
        visible_ns = self.visible_ns
        return visible_ns is not None and self._world_ns() >= visible_ns

    def result(self) -> T:
        """Return the outcome, or raise what the work raised."""
        if self._inner is None or not self.done():
            raise NotAnswered('the world does not see the answer yet: ask done() first')
        return self._inner.result()


class ChargedStart(Generic[T]):
    """
    Start inferences whose cost the world is charged, or not (R51).

    It goes between an episode and what runs its inferences. Its driver lets the world's clock
    advance no further than `limit_ns`, and comes back at `visible_ns`.
    """

    def __init__(
        self,
        start: Callable[[Callable[[], T]], Answer[T]],
        charging: Charging,
        *,
        world_ns: Reading,
        real_ns: Reading,
    ) -> None:
        """`world_ns` reads the playback clock; `real_ns` a steady one, wherever work runs."""
        self._start = start
        self._charging = charging
        self._world_ns = world_ns
        self._real_ns = real_ns
        self._answer: ChargedAnswer[T] | None = None
        self._began_ns = 0

    def __call__(self, work: Callable[[], T]) -> Answer[T]:
        """Start `work` at the world's instant now; return at once."""
        answer: ChargedAnswer[T] = ChargedAnswer(self._world_ns, self._world_ns())
        self._began_ns = self._real_ns()

        def timed() -> T:
            began_ns = self._real_ns()
            try:
                return work()
            finally:
                if self._charging is Charging.CHARGED:
                    answer.took(self._real_ns() - began_ns)

        answer.bind(self._start(timed))
        self._answer = answer
        return answer

    def visible_ns(self) -> int | None:
        """Return when the newest answer becomes visible that the world does not see yet."""
        answer = self._answer
        visible_ns = None if answer is None else answer.visible_ns
        if visible_ns is None or self._world_ns() >= visible_ns:
            return None
        return visible_ns

    def limit_ns(self) -> int | None:
        """
        Return how far the world may advance now; None for no bound.

        While the work goes on, that is where its answer would be visible if it ended at once.
        """
        answer = self._answer
        if answer is None or answer.outcome_there:
            return None
        if self._charging is Charging.UNCHARGED:
            return answer.asked_ns
        return answer.asked_ns + self._real_ns() - self._began_ns

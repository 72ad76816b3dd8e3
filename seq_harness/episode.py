"""The numbered steps of one episode, and the asks that are among them."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

from seq_harness.playback.answer import Answer
from seq_harness.playback.chunk import Chunk
from seq_harness.playback.session import Observation
from seq_harness.playback.uplink import PolicyScope, Queued, Step


class StepGrid:
    """
    Number the instants at which observations are sampled.

    The first step is the first round, then one every period after the last; an ask is a step, and
    the grid goes on from it. Numbers rise by one; an instant that no round met keeps its number,
    which is then skipped.
    """

    def __init__(self, period_ns: int) -> None:
        self._period_ns = period_ns
        self._next_ns: int | None = None
        self.next_number = 0

    @property
    def next_ns(self) -> int | None:
        """The instant of the next step; None before the first round."""
        return self._next_ns

    def due(self, t: int) -> bool:
        """Whether a round at `t` is at or past the next step."""
        return self._next_ns is None or t >= self._next_ns

    def take(self, t: int) -> tuple[int, range]:
        """Give a number to the round at `t >= next_ns`; return it and the numbers skipped."""
        if self._next_ns is None:
            self._next_ns = t
        missed = (t - self._next_ns) // self._period_ns
        skipped = range(self.next_number, self.next_number + missed)
        self.next_number += missed + 1
        self._next_ns += (missed + 1) * self._period_ns
        return skipped.stop, skipped

    def ask(self, t: int) -> tuple[int, range]:
        """Give a number to an ask at `t`, on or off the grid; the grid goes on from it."""
        if self.due(t):
            number, skipped = self.take(t)
        else:
            number, skipped = self.next_number, range(0)
            self.next_number += 1
        self._next_ns = t + self._period_ns
        return number, skipped

    def pause(self, t: int) -> None:
        """Leave out a step without spending its number."""
        self._next_ns = t + self._period_ns

    def at_or_before(self, at_ns: int) -> tuple[int, int]:
        """
        Return the number and the instant of the last step to come that is due by `at_ns`.

        Where the grid has none by then, an ask at `at_ns` itself is the next step.
        """
        if self._next_ns is None or at_ns < self._next_ns:
            return self.next_number, at_ns
        ahead = (at_ns - self._next_ns) // self._period_ns
        return self.next_number + ahead, self._next_ns + ahead * self._period_ns


Start = Callable[[Callable[[], Chunk | None]], Answer[Chunk | None]]
"""Starts work off the control thread and returns its Answer at once."""


class Sampled(Enum):
    """What a round's observation became."""

    NOTHING = 'nothing'
    """The round met no step."""
    ASKED = 'asked'
    STREAMED = 'streamed'
    PAUSED = 'paused'
    """The stream is full: the grid pauses, and nothing is lost."""


class Episode:
    """
    The uplink of one episode: numbers its steps and hands each to an ask or to the stream.

    Used by the paced thread alone.
    """

    def __init__(
        self,
        scope: PolicyScope,
        start: Start,
        rows_of: Callable[[Any], Chunk | None],
        period_ns: int,
    ) -> None:
        """`rows_of` turns the policy's outputs into a chunk; it runs where the act runs."""
        self._scope = scope
        self._start = start
        self._rows_of = rows_of
        self._grid = StepGrid(period_ns)
        self._asked_at: int | None = None
        self._full = False
        self.pauses = 0
        """How many steps were left out because the stream was full."""

    @property
    def next_step_ns(self) -> int | None:
        """The instant of the next step; None before the first round."""
        return self._grid.next_ns

    @property
    def steps(self) -> int:
        """How many numbers have been given, the skipped ones included."""
        return self._grid.next_number

    def ask(self, observation: Observation, t: int) -> Answer[Chunk | None] | None:
        """Make the round's observation a step and ask about it (Uplink)."""
        if self._full:
            return None
        number, skipped = self._grid.ask(t)
        self._skip(skipped)
        self._asked_at = t
        step = Step(number, t, observation)
        return self._start(lambda: self._rows_of(self._scope.infer(step)))

    def commit(self, at_ns: int) -> int:
        """Announce the step of the next ask, the last one due by `at_ns` (Uplink)."""
        number, instant = self._grid.at_or_before(at_ns)
        self._scope.expect(number)
        return instant

    def sample(self, observation: Observation, t: int) -> Sampled:
        """Hand the round's observation to the stream where it is a step that no act carries."""
        if self._asked_at == t:
            return Sampled.ASKED
        if not self._grid.due(t):
            return Sampled.NOTHING
        missed = self._grid.at_or_before(t)[0]
        self._full = self._scope.observe(Step(missed, t, observation)) is Queued.FULL
        if self._full:
            self._grid.pause(t)
            self.pauses += 1
            return Sampled.PAUSED
        self._skip(self._grid.take(t)[1])
        return Sampled.STREAMED

    def _skip(self, numbers: range) -> None:
        for number in numbers:
            self._scope.skip(number)

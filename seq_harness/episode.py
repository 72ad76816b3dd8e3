"""The numbered steps of one episode, and the asks that are among them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum
import logging
import threading
from typing import Any, Protocol

from seq_harness.contract import wire
from seq_harness.playback.answer import Answer
from seq_harness.playback.chunk import Chunk
from seq_harness.playback.session import Commands, Observation
from seq_harness.playback.uplink import PolicyScope, Queued, Retired, Standing, standing_of, Step

logger = logging.getLogger(__name__)


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
        """Return the instant of the next step; None before the first round."""
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

    def restart(self, t: int) -> None:
        """Let the next step be due at `t`: the instants before it spend no numbers."""
        self._next_ns = t

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


Infer = Callable[..., Any]
"""Answers a step, and a plan if there is one, with a chunk; see `playback.scope`."""


class ChunkLayers(Protocol):
    """What stands between the player and the policy: chunk layers, such as codecs."""

    def wrap_infer(self, infer: Any) -> Infer:
        """Put the layers around `infer`, for one episode."""

    def encode(self, observation: Observation) -> Observation:
        """Return the observation as the policy reads it; decodes nothing."""


class RowsAhead(Protocol):
    """What will still be executed while a policy thinks."""

    @property
    def prefix(self) -> Sequence[Commands]:
        """Rows by channel, on the grid of the new chunk."""

    @property
    def delay_rows(self) -> int:
        """How many of them are expected to be executed before the answer is there."""

    @property
    def executed_rows(self) -> int:
        """How many rows of the current chunk lie before the first of them."""


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
        *,
        layers: ChunkLayers | None = None,
        columns_of: Callable[[Sequence[Commands]], Any] | None = None,
    ) -> None:
        """
        Put the chunk layers around the policy's inference, for this episode.

        `rows_of` turns the policy's outputs into a chunk, and `columns_of` rows by channel into
        the policy's own; both run where the act runs (R68).
        """
        self._scope = scope
        self._start = start
        self._rows_of = rows_of
        self._columns_of = columns_of
        self._infer: Infer = self._ask_policy
        self._layers = layers
        if layers is not None:
            self._infer = layers.wrap_infer(self._ask_policy)
        self.period_ns = period_ns
        """From one row, and from one step, to the next."""
        self._grid = StepGrid(period_ns)
        self._asked_at: int | None = None
        self._full = False
        self.pauses = 0
        """How many steps were left out because the stream was full."""

    @property
    def next_step_ns(self) -> int | None:
        """Return the instant of the next step; None before the first round."""
        return self._grid.next_ns

    @property
    def steps(self) -> int:
        """How many numbers have been given, the skipped ones included."""
        return self._grid.next_number

    def ask(
        self, observation: Observation, t: int, ahead: RowsAhead | None = None
    ) -> Answer[Chunk | None] | None:
        """Make the round's observation a step and ask about it (Uplink)."""
        if self._full:
            return None
        number, skipped = self._grid.ask(t)
        self._skip(skipped)
        self._asked_at = t
        step = Step(number, t, observation)
        return self._start(lambda: self._infer(step, _plan_of(ahead)))

    def commit(self, at_ns: int) -> int:
        """Announce the step of the next ask, the last one due by `at_ns` (Uplink)."""
        number, instant = self._grid.at_or_before(at_ns)
        self._scope.expect(number)
        return instant

    def standing(self) -> Standing:
        """Say how the act that is under way stands (Uplink)."""
        return standing_of(self._scope)

    def sample(self, observation: Observation, t: int) -> Sampled:
        """Hand the round's observation to the stream where it is a step that no act carries."""
        if self._asked_at == t:
            return Sampled.ASKED
        if not self._grid.due(t):
            return Sampled.NOTHING
        missed = self._grid.at_or_before(t)[0]
        seen = observation if self._layers is None else self._layers.encode(observation)
        step = Step(missed, t, seen)
        self._full = self._scope.observe(step) is Queued.FULL
        if self._full:
            self._grid.pause(t)
            self.pauses += 1
            return Sampled.PAUSED
        self._skip(self._grid.take(t)[1])
        return Sampled.STREAMED

    def resume(self, t: int) -> None:
        """Go on after a pause: the instants that passed meanwhile are no steps."""
        self._grid.restart(t)
        self._full = False

    def _ask_policy(self, step: Step, plan: Mapping[str, Any] | None = None) -> Chunk | None:
        """Ask the policy itself, below all layers."""
        if plan is None:
            return self._rows_of(self._scope.infer(step))
        if self._columns_of is not None:
            rows = self._columns_of(plan[wire.PLAN_PREFIX])
            plan = {**plan, wire.PLAN_PREFIX: rows}
        return self._rows_of(self._scope.infer(step, plan))

    def _skip(self, numbers: range) -> None:
        for number in numbers:
            self._scope.skip(number)


def _plan_of(ahead: RowsAhead | None) -> dict[str, Any] | None:
    if ahead is None:
        return None
    return {
        wire.PLAN_PREFIX: list(ahead.prefix),
        wire.PLAN_DELAY_ROWS: ahead.delay_rows,
        wire.PLAN_EXECUTED_ROWS: ahead.executed_rows,
    }


class Left(Enum):
    """What an episode's end left of a policy's scope."""

    CLOSED = 'closed'
    CALL_INSIDE = 'call_inside'
    """A call has not left it; the last one to leave closes it."""


class LastCallCloses:
    """
    A policy's scope that closes only after its last call has left it (R55).

    `infer` runs on the runtime's thread; `close` may be called by any and never waits for it
    (R56): where a call is inside, that call closes the scope as it leaves.
    """

    def __init__(self, scope: PolicyScope) -> None:
        self._scope = scope
        self._lock = threading.Lock()  # held for a few assignments
        self._inside = 0  # under _lock
        self._closing = False  # under _lock
        self._closed = threading.Event()
        self.observe = scope.observe
        self.skip = scope.skip
        self.expect = scope.expect
        self.retire = scope.retire

    def infer(self, step: Step, plan: Mapping[str, Any] | None = None) -> Any:
        """
        Ask the policy about `step`.

        Raises
        ------
        Retired
            The episode has ended.

        """
        with self._lock:
            if self._closing:
                raise Retired('the episode has ended')
            self._inside += 1
        try:
            return self._scope.infer(step) if plan is None else self._scope.infer(step, plan)
        finally:
            with self._lock:
                self._inside -= 1
                last = self._closing and self._inside == 0
            if last:
                self._close_late()

    def standing(self) -> Standing:
        """Say how the act that is under way stands."""
        return standing_of(self._scope)

    @property
    def answered_anew(self) -> bool:
        """Tell whether the newest answer is the first of a process that had no warm-up."""
        return bool(getattr(self._scope, 'answered_anew', False))

    def close(self) -> None:
        """Close the scope, now or as the last call leaves it."""
        with self._lock:
            if self._closing:
                return
            self._closing = True
            free = self._inside == 0
        if free:
            try:
                self._scope.close()
            finally:
                self._closed.set()

    def reap(self, within_s: float) -> Left:
        """Wait up to `within_s` until the scope is closed (R57)."""
        return Left.CLOSED if self._closed.wait(within_s) else Left.CALL_INSIDE

    def _close_late(self) -> None:
        """Close where nobody waits for it, so a failure reaches the log (R58)."""
        try:
            self._scope.close()
        except Exception:
            logger.exception('closing the policy after its last call failed')
        self._closed.set()


@contextmanager
def open_scope(scope: PolicyScope, retire_calls: Callable[[], None]) -> Iterator[LastCallCloses]:
    """
    Hold a policy's scope open for one episode.

    Leaving gives up the running call and those that wait (`retire_calls`), and closes the scope
    once no call is inside it; it waits for none (R55, R56).
    """
    held = LastCallCloses(scope)
    try:
        yield held
    finally:
        try:
            held.retire()
            retire_calls()
        finally:
            held.close()

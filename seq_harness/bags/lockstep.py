"""Drive a harness on a recording's time: rounds and arrivals in their order, and no waiting."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
import threading
import time
from typing import Any, Protocol, runtime_checkable

from seq_harness.bags.charges import Act, Cost, Errands, Meter
from seq_harness.bags.records import Record
from seq_harness.episode import Start
from seq_harness.harness import Harness, Opened
from seq_harness.pipeline import Pipeline
from seq_harness.playback.answer import Answer
from seq_harness.playback.charging import ChargedStart, Charging
from seq_harness.playback.chunk import Chunk
from seq_harness.playback.uplink import PolicyScope, Queued, Step, WorkerLost

Pace = Callable[[int], None]
"""Called with the instant to which time is about to move; may wait."""

LOOK_S = 0.0005
"""How often it is looked whether a worker has taken all that was sent."""


class BagClock:
    """A clock that stands until its driver moves it, in ns."""

    def __init__(self, now_ns: int) -> None:
        self._now_ns = now_ns

    def now_ns(self) -> int:
        """Return the reading."""
        return self._now_ns

    def move(self, to_ns: int) -> None:
        """Move on; never back."""
        self._now_ns = max(self._now_ns, to_ns)


class Charged:
    """The inferences of a replay: where they run and what they cost."""

    def __init__(self, clock: BagClock, cost: Cost) -> None:
        self._errands = Errands()
        self._meter = Meter(cost, clock.now_ns)
        self._start: ChargedStart[Chunk | None] = ChargedStart(
            self._errands.start,
            Charging.CHARGED,
            world_ns=clock.now_ns,
            real_ns=self._meter.now_ns,
        )

    def opened(
        self,
        pipeline: Pipeline,
        scope: PolicyScope,
        wrap: Callable[[PolicyScope, Start], tuple[PolicyScope, Start]] | None = None,
    ) -> Opened:
        """Put an episode together on a policy scope that is open, as `wrap` makes it."""
        with ExitStack() as stack:
            stack.callback(scope.close)
            stack.callback(self._errands.retire)
            stack.callback(scope.retire)

            def start(work: Callable[[], Chunk | None]) -> Answer[Chunk | None]:
                return self._start(self._meter.metered(work))

            used = (scope, start) if wrap is None else wrap(scope, start)
            opened = pipeline.open(*used, stack)
            opened.visible_ns = self._start.visible_ns
            opened.answered_ns = self._answered_ns
            opened.stack = stack.pop_all()
            return opened

    def run(self) -> bool:
        """Run the inference that was asked for, if any; tell whether there was one."""
        return self._errands.run()

    def visible_ns(self) -> int | None:
        """Return when an answer that is there becomes visible; None if the world sees it."""
        return self._start.visible_ns()

    def _answered_ns(self) -> int | None:
        acts = self._meter.acts
        return acts[-1].asked_ns + acts[-1].cost_ns if acts else None

    @property
    def acts(self) -> tuple[Act, ...]:
        """Return the inferences so far."""
        return tuple(self._meter.acts)


class Lockstep:
    """
    Move one clock from round to arrival to round.

    A round sees what was logged up to its own instant, that instant included. An act runs between
    two rounds; where its answer costs nothing, the loop is woken at the instant that asked.
    """

    def __init__(
        self,
        harness: Harness,
        clock: BagClock,
        charged: Charged,
        put: Callable[[Record], None],
        pace: Pace | None = None,
        do_round: Callable[[], int] | None = None,
    ) -> None:
        """`put` lets a message arrive; `do_round` does a round, if not the harness itself."""
        self._harness = harness
        self._clock = clock
        self._charged = charged
        self._put = put
        self._pace = pace
        self._do_round = do_round or harness.round
        self._wake_ns = clock.now_ns()

    @property
    def live(self) -> bool:
        """Whether the episode goes on."""
        return self._harness.expected_ns is not None

    def begin(self) -> None:
        """Start an episode now, and do its first round."""
        self._harness.start()
        self._round()

    def arrive(self, record: Record) -> None:
        """Do the rounds that are due before a message, then let it arrive."""
        self._rounds_before(record.log_ns)
        if not self.live:
            return
        self._move(record.log_ns)
        self._put(record)
        if self._harness.waiting:
            self._round()

    def end(self, at_ns: int, reason: str) -> None:
        """Do the rounds that are due up to `at_ns`, and end the episode if it still goes on."""
        self._rounds_before(at_ns + 1)
        if self.live:
            self._move(at_ns)
            self._harness.stop(reason)
            self._round()

    def _rounds_before(self, until_ns: int) -> None:
        while self.live and self._wake_ns < until_ns:
            self._move(self._wake_ns)
            self._round()

    def _round(self) -> None:
        self._wake_ns = self._do_round()
        while self.live and self._charged.run():
            visible_ns = self._charged.visible_ns()
            if visible_ns is None:
                self._wake_ns = self._do_round()
            else:
                self._wake_ns = min(self._wake_ns, visible_ns)

    def _move(self, to_ns: int) -> None:
        if self._pace is not None:
            self._pace(to_ns)
        self._clock.move(to_ns)


def paced(rate: float, start_ns: int) -> Pace:
    """Return what lets a recording's time pass `rate` times as fast as ours, from now on."""
    began_s = time.monotonic()
    never = threading.Event()

    def wait(to_ns: int) -> None:
        due_s = began_s + (to_ns - start_ns) / 1e9 / rate
        left_s = due_s - time.monotonic()
        if left_s > 0:
            never.wait(left_s)

    return wait


@runtime_checkable
class _Backlog(Protocol):
    """A scope whose stream goes out on threads of its own."""

    def figures(self) -> Any:
        """Return its figures, `stream.backlog` among them."""


class Flushed:
    """
    A policy's scope whose stream has always gone out before anything else happens.

    So what a worker is sent, and when, is the same in every run.
    """

    def __init__(self, scope: PolicyScope, within_s: float) -> None:
        """`within_s` is how long the worker may take, on the wall clock."""
        self._scope = scope
        self._within_s = within_s
        self.infer = scope.infer
        self.skip = scope.skip
        self.expect = scope.expect
        self.retire = scope.retire
        self.close = scope.close

    def observe(self, step: Step) -> Queued:
        """Hand over a step, and wait until the worker has it."""
        queued = self._scope.observe(step)
        self._flush()
        return self._scope.observe(step) if queued is Queued.FULL else queued

    def _flush(self) -> None:
        flush = getattr(self._scope, 'flush', None)
        if flush is not None:
            flush()
        elif isinstance(self._scope, _Backlog):
            self._wait(self._scope)

    def _wait(self, scope: _Backlog) -> None:
        deadline_s = time.monotonic() + self._within_s
        never = threading.Event()
        while (backlog := scope.figures().stream.backlog) > 0:
            if time.monotonic() > deadline_s:
                raise WorkerLost(
                    f'the worker did not take {backlog} observations within {self._within_s:g} s'
                )
            never.wait(LOOK_S)

"""
What a loop reads from outside, read through a tape.

A tape that records lets every reading pass and notes it; one that replays gives the readings that
were noted. Both stand behind the same wrappers, so that what is recorded is what is replayed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple, Protocol, TypeVar

from seq_harness.bags.record_values import unpack_value
from seq_harness.episode import Start
from seq_harness.harness import Clock, Hold, Opened, Parts, Requests
from seq_harness.inputs import Snapshot
from seq_harness.outputs import Output
from seq_harness.playback.answer import Answer
from seq_harness.playback.chunk import Chunk
from seq_harness.playback.player import ChunkPlayer
from seq_harness.playback.session import Commands
from seq_harness.playback.uplink import PolicyScope, Queued, Standing, standing_of, Step

T = TypeVar('T')


class Sent(NamedTuple):
    """A setpoint that was published."""

    channel: str
    value: Any
    message: Any
    """As its output encoded it."""
    due_ns: int | None
    sampled_ns: int | None


class Tape(Protocol):
    """Where the loop's readings pass; each in the order in which the loop asks."""

    def clock(self, live: Callable[[], int]) -> int:
        """Return a reading of the playback clock."""

    def look(self, live: Callable[[], Snapshot]) -> Snapshot:
        """Return a look at the inputs."""

    def read(self, what: str, live: Callable[[], T], nothing: T) -> T:
        """Return any other answer, or raise its failure; `nothing` says that nothing is new."""

    def start(self, live: Start, work: Callable[[], Chunk | None]) -> Answer[Chunk | None]:
        """Start an inference, and return where its answer will be."""

    def sent(self, setpoint: Sent) -> None:
        """Take a setpoint that was published."""


class TapedRequests(Requests):
    """Requests whose takings pass over a tape."""

    def __init__(self, tape: Tape) -> None:
        super().__init__()
        self._tape = tape
        self._said = ''  # the instruction that was read last; the paced thread's alone

    @property
    def stop_reason(self) -> str | None:
        return self._tape.read('stop', self._stop_now, None)

    @property
    def interrupts(self) -> bool:
        return self._tape.read('interrupts', self._interrupts_now, False)

    @property
    def withheld(self) -> bool:
        return self._tape.read('withheld', self._withheld_now, False)

    @property
    def instruction(self) -> str:
        self._said = self._tape.read('instruction', self._instruction_now, self._said)
        return self._said

    def _stop_now(self) -> str | None:
        return super().stop_reason

    def _interrupts_now(self) -> bool:
        return super().interrupts

    def _withheld_now(self) -> bool:
        return super().withheld

    def _instruction_now(self) -> str:
        return super().instruction

    def take_start(self) -> bool:
        return self._tape.read('start', super().take_start, False)

    def take_hold(self) -> Hold | None:
        hold = self._tape.read('hold', super().take_hold, None)
        return None if hold is None else Hold(hold)

    def take_resume(self) -> bool:
        return self._tape.read('resume', super().take_resume, False)

    def take_replan(self) -> bool:
        return self._tape.read('replan', super().take_replan, False)

    def take_restart(self) -> bool:
        return self._tape.read('restart', super().take_restart, False)

    def take_manual(self, held: Hold | None) -> Commands | None:
        take = super().take_manual
        commands: Commands | None = self._tape.read('manual', lambda: take(held), None)
        return None if commands is None else unpack_value(dict(commands))


class TapedAnswer:
    """An answer whose being there passes over a tape."""

    def __init__(self, tape: Tape, inner: Answer[Chunk | None]) -> None:
        self._tape = tape
        self._inner = inner

    def done(self) -> bool:
        return self._tape.read('done', self._inner.done, False)

    def result(self) -> Chunk | None:
        return self._inner.result()


class TapedScope:
    """A policy's scope whose taking of observations passes over a tape."""

    def __init__(self, tape: Tape, scope: PolicyScope) -> None:
        self._tape = tape
        self._scope = scope
        self.infer = scope.infer
        self.skip = scope.skip
        self.expect = scope.expect
        self.retire = scope.retire
        self.close = scope.close

    def observe(self, step: Step) -> Queued:
        """Hand over a step."""
        taken = self._tape.read('observe', lambda: self._scope.observe(step), Queued.ACCEPTED)
        return Queued(taken)

    @property
    def answered_anew(self) -> bool:
        """Tell whether the newest answer is the first of a process that had no warm-up."""
        return bool(getattr(self._scope, 'answered_anew', False))

    def standing(self) -> Standing:
        """Say how the act that is under way stands."""
        said = self._tape.read('standing', lambda: standing_of(self._scope), Standing.THERE)
        return Standing(said)

    @property
    def request_id(self) -> str:
        """Return what the newest act is called on its wire; empty where acts have no names."""
        return str(getattr(self._scope, 'request_id', ''))

    @property
    def handler_ms(self) -> float | None:
        """Return the worker's own part of the newest answer; None where it does not say so."""
        told: float | None = getattr(self._scope, 'handler_ms', None)
        return told


class _TapedClock:
    def __init__(self, tape: Tape, clock: Clock) -> None:
        self._tape = tape
        self._live = clock.now_ns

    def now_ns(self) -> int:
        return self._tape.clock(self._live)


class _Playing:
    """The player of the episode that is under way; the paced thread's alone."""

    def __init__(self) -> None:
        self.player: ChunkPlayer | None = None

    def row(self) -> tuple[int | None, int | None]:
        """Return the due instant and the observation's of the row that was answered last."""
        player = self.player
        return (None, None) if player is None else (player.last_due_ns, player.last_sampled_ns)


def taped(parts: Parts, tape: Tape) -> Parts:
    """Return the parts of a loop, such that all it reads from outside passes over a tape."""
    playing = _Playing()

    def open_episode() -> Opened:
        made: list[Opened] = []
        playing.player = None
        tape.read('open', lambda: made.append(parts.open_episode()), None)
        # A tape that replays has only raised what failed then.
        opened = made[0] if made else parts.open_episode()
        playing.player = opened.player
        visible_ns, answered_ns = opened.visible_ns, opened.answered_ns
        opened.visible_ns = lambda: tape.read('visible_ns', visible_ns, None)
        opened.answered_ns = lambda: tape.read('answered_ns', answered_ns, None)
        return opened

    return replace(
        parts,
        clock=_TapedClock(tape, parts.clock),
        outputs=parts.outputs.wrapped(lambda name, out: _output(tape, name, out, playing)),
        open_episode=open_episode,
        look=lambda: tape.look(parts.look),
        unavailable=lambda snapshot: tape.read(
            'unavailable', lambda: parts.unavailable(snapshot), None
        ),
        reap=lambda within_s: tape.read('reap', lambda: parts.reap(within_s), 0),
        clock_step_ns=lambda: tape.read('clock_step_ns', parts.clock_step_ns, 0),
    )


def taped_start(tape: Tape, start: Start) -> Start:
    """Return a start whose answers become visible as the tape says."""
    return lambda work: TapedAnswer(tape, tape.start(start, work))


def _output(tape: Tape, name: str, inner: Output, playing: _Playing) -> Output:
    def encode(value: Any) -> tuple[Any, Any]:
        return value, inner.encode(value)

    def publish(made: tuple[Any, Any]) -> None:
        value, message = made
        tape.read('publish', lambda: inner.publish(message), None)
        tape.sent(Sent(name, value, message, *playing.row()))

    return Output(encode, publish)

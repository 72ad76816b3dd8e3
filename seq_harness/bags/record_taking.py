"""The tape that records: what each round read, handed over once the round is done."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
import threading
from typing import Any, NamedTuple, TypeVar

from seq_harness.bags.record_format import Ask
from seq_harness.bags.taping import Sent, TapedRequests
from seq_harness.episode import Start
from seq_harness.harness import Harness, Hold, RequestAnswer
from seq_harness.inputs import Snapshot
from seq_harness.playback.answer import Answer
from seq_harness.playback.chunk import Chunk
from seq_harness.playback.session import Commands, Observation
from seq_harness.playback.uplink import PolicyScope, Standing, standing_of, Step

T = TypeVar('T')

Put = Callable[[Any], None]
"""Hands something over to whoever writes; never waits, and takes references only."""

NOBODY = 0
"""No thread has this number."""


class Turn:
    """What one round read; the paced thread's until it is handed over."""

    __slots__ = (
        'asked',
        'clock_ns',
        'ended',
        'number',
        'prepared_ns',
        'reads',
        'resume_ns',
        'snapshots',
        'woken',
    )

    def __init__(self, number: int) -> None:
        self.number = number
        self.ended = ''
        self.woken: list[str] = []
        self.prepared_ns: int | None = None
        self.clock_ns: list[int] = []
        self.snapshots: list[Snapshot] = []
        self.asked = 0
        self.reads: list[tuple[str, int, Any]] = []
        self.resume_ns: int | None = None


class Published(NamedTuple):
    """A setpoint that went out."""

    number: int
    round: int
    sent: Sent
    sent_ns: int


@dataclass
class Act:
    """What became of one question; the thread's that acts until it is handed over."""

    number: int
    step: int | None = None
    request_id: str = ''
    handler_ms: float | None = None
    began_ns: int = 0
    ended_ns: int = 0
    seen: Mapping[str, Any] = field(default_factory=dict)
    """What was sent of the observation, by key."""
    chunk: Chunk | None = None
    error: BaseException | None = None


class RecordingTape:
    """Let every reading pass, and note those of the paced thread while it is in a round."""

    def __init__(self, put: Put, now_ns: Callable[[], int]) -> None:
        self._put = put
        self._now_ns = now_ns
        self._reader = NOBODY  # the thread that is in a round
        self._turn = Turn(0)  # owner: the paced thread
        self._acts = 0  # owner: the paced thread
        self._sent = 0  # owner: the paced thread
        self._woken: list[str] = []  # any thread appends; the paced thread takes it whole
        self._acting = threading.local()

    def clock(self, live: Callable[[], int]) -> int:
        """Return a reading of the playback clock."""
        now_ns = live()
        if threading.get_ident() == self._reader:
            self._turn.clock_ns.append(now_ns)
        return now_ns

    def look(self, live: Callable[[], Snapshot]) -> Snapshot:
        """Return a look at the inputs."""
        snapshot = live()
        if threading.get_ident() == self._reader:
            self._turn.snapshots.append(snapshot)
        return snapshot

    def read(self, what: str, live: Callable[[], T], nothing: T) -> T:
        """Return any other answer, or raise its failure; `nothing` is not noted."""
        if threading.get_ident() != self._reader:
            return live()
        turn = self._turn
        count = turn.asked
        turn.asked = count + 1
        try:
            value = live()
        except Exception as error:
            turn.reads.append((what, count, error))
            raise
        if value is not nothing and value != nothing:
            turn.reads.append((what, count, value))
        return value

    def start(self, live: Start, work: Callable[[], Chunk | None]) -> Answer[Chunk | None]:
        """Start an inference, and note that it was asked for and what comes of it."""
        act = Act(self._acts)
        self._acts += 1
        turn = self._turn
        self._put(Ask(act.number, turn.number, turn.clock_ns[-1] if turn.clock_ns else 0))
        return live(lambda: self._run(act, work))

    def sent(self, setpoint: Sent) -> None:
        """Note a setpoint that was published."""
        self._put(Published(self._sent, self._turn.number, setpoint, self._now_ns()))
        self._sent += 1

    def scope(self, scope: PolicyScope) -> PolicyScope:
        """Return a policy's scope of which it is noted what each act sends."""
        return _NotedScope(scope, self._acting)

    def woke(self, cause: str) -> None:
        """Note, from any thread, what wakes the loop."""
        self._woken.append(cause)

    def round(self, harness: Harness) -> int:
        """Do a round of `harness`, and hand over what it read."""
        turn = self._turn
        turn.woken, self._woken = self._woken, []
        self._reader = threading.get_ident()
        try:
            turn.resume_ns = harness.round()
        finally:
            self._reader = NOBODY
        self._hand_over(turn)
        return turn.resume_ns

    def prepare(self, harness: Harness, instant_ns: int) -> bool:
        """Have `harness` make ready for a round at `instant_ns`; tell whether anything is due."""
        self._turn.prepared_ns = instant_ns
        self._reader = threading.get_ident()
        try:
            return harness.prepare(instant_ns)
        finally:
            self._reader = NOBODY

    def close(self, harness: Harness, reason: str) -> None:
        """Close `harness`, once no thread does its rounds any more."""
        self._turn.ended = reason
        self._reader = threading.get_ident()
        try:
            harness.close(reason)
        finally:
            self._reader = NOBODY
        self._hand_over(self._turn)

    def _hand_over(self, turn: Turn) -> None:
        self._turn = Turn(turn.number + 1)
        self._put(turn)

    def _run(self, act: Act, work: Callable[[], Chunk | None]) -> Chunk | None:
        """Run an inference, on the thread that acts."""
        self._acting.act = act
        act.began_ns = self._now_ns()
        try:
            act.chunk = work()
        except BaseException as error:
            act.error = error
            raise
        finally:
            act.ended_ns = self._now_ns()
            self._put(act)
        return act.chunk


class NotedRequests(TapedRequests):
    """Taped requests of which it is also noted who asked for what, and with what answer."""

    def __init__(
        self, tape: RecordingTape, note: Callable[[str, str, RequestAnswer], None]
    ) -> None:
        """`note` takes the name, the detail and the answer of each, from any thread."""
        super().__init__(tape)
        self._note = note

    def start(self) -> RequestAnswer:
        return self._noted('start', '', super().start())

    def stop(self, reason: str) -> bool:
        live = super().stop(reason)
        self._note('stop', reason, RequestAnswer(live, '' if live else 'no episode is running'))
        return live

    def withhold(self) -> None:
        super().withhold()
        self._note('withhold', '', RequestAnswer(True, ''))

    def hold(self, hold: Hold) -> RequestAnswer:
        return self._noted('hold', hold.value, super().hold(hold))

    def resume(self) -> RequestAnswer:
        return self._noted('resume', '', super().resume())

    def replan(self) -> RequestAnswer:
        return self._noted('replan', '', super().replan())

    def restart(self) -> RequestAnswer:
        return self._noted('restart', '', super().restart())

    def command(self, commands: Commands, held: Hold | None) -> RequestAnswer:
        return self._noted('command', ' '.join(commands), super().command(commands, held))

    def _noted(self, name: str, detail: str, answer: RequestAnswer) -> RequestAnswer:
        self._note(name, detail, answer)
        return answer


class _NotedScope:
    """A policy's scope of which it is noted what each act sends; acts run on one thread each."""

    def __init__(self, scope: PolicyScope, acting: threading.local) -> None:
        self._scope = scope
        self._acting = acting
        self.observe = scope.observe
        self.skip = scope.skip
        self.expect = scope.expect
        self.retire = scope.retire
        self.close = scope.close

    @property
    def answered_anew(self) -> bool:
        """Tell whether the newest answer is the first of a process that had no warm-up."""
        return bool(getattr(self._scope, 'answered_anew', False))

    def standing(self) -> Standing:
        """Say how the act that is under way stands."""
        return standing_of(self._scope)

    def infer(self, step: Step, plan: Mapping[str, Any] | None = None) -> Any:
        """Ask the policy, and note the step, the request and what was read of the observation."""
        act: Act = self._acting.act
        seen = _Seen(step.observation)
        act.step, act.seen = step.number, seen.read
        noted = replace(step, observation=seen)
        try:
            return self._scope.infer(noted) if plan is None else self._scope.infer(noted, plan)
        finally:
            act.request_id = getattr(self._scope, 'request_id', '')
            act.handler_ms = getattr(self._scope, 'handler_ms', None)


class _Seen(Mapping[str, Any]):
    """An observation that keeps what was read of it."""

    def __init__(self, inner: Observation) -> None:
        self._inner = inner
        self.read: dict[str, Any] = {}

    def __getitem__(self, key: str) -> Any:
        value = self.read[key] = self._inner[key]
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(self._inner)

    def __len__(self) -> int:
        return len(self._inner)

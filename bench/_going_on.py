"""An arm that its policy tells to go on from where it is, by the harness as the node builds it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
import itertools
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
from seq_harness.contract import Actions, WorkerDeclaration
from seq_harness.harness import Harness, Limits, Opened
from seq_harness.inputs import Inputs
from seq_harness.outputs import Output, Outputs
from seq_harness.pipeline import Pipeline
from seq_harness.playback.answer import NotAnswered
from seq_harness.playback.chunk import Chunk
from seq_harness.playback.uplink import Queued, Step
from seq_harness.settings import parse, Settings

S = 1_000_000_000
SPEED = 0.4
"""How fast the policy goes on, in rad/s."""
MAX_VELOCITY = 2.0
SECONDS = 20.0
EXACT = 1e-6
"""An observation is sent in single precision: a smaller step back is its rounding."""
START_NS = 1000 * S

Delay = Callable[[int], float]
"""Returns how long an answer takes in seconds, by the number of its ask."""


@dataclass(frozen=True)
class Case:
    """Chunks of `rows` rows at `hz`, and answers that take `delay`."""

    rows: int
    hz: float
    delay: Delay
    name: str

    def __str__(self) -> str:
        return self.name

    @property
    def lasts_s(self) -> float:
        """How long a chunk lasts."""
        return self.rows / self.hz


def steady(rows: int, hz: float, delay_ms: float) -> Case:
    """Return a case whose answers all take the same."""
    return Case(rows, hz, lambda number: delay_ms / 1e3, f'{rows} @ {hz:g} Hz, {delay_ms:g} ms')


def tailed(rows: int, hz: float, delay_ms: float, tail_ms: float, seed: int = 1) -> Case:
    """Return a case in which one answer of every ten, drawn by `seed`, takes `tail_ms`."""
    late = np.random.default_rng(seed).integers(0, 10, 100)
    name = f'{rows} @ {hz:g} Hz, {delay_ms:g} ms, one in ten {tail_ms:g} ms'
    return Case(rows, hz, lambda n: (tail_ms if late[n // 10] == n % 10 else delay_ms) / 1e3, name)


CASES = (
    steady(8, 15, 300),
    steady(8, 15, 600),
    steady(10, 20, 300),
    steady(10, 20, 700),
    steady(16, 30, 300),
    steady(16, 30, 700),
    steady(50, 50, 600),
    tailed(8, 15, 300, 1200),
)


@dataclass
class Ran:
    """What a run came to."""

    progress: float
    travelled: float
    steps_back: int
    largest_back: float
    off_after_standing: float
    """The most that a first setpoint after standing was off the chunk's own row, in rows."""
    answered: int
    dropped_whole: int
    stood_s: float
    """How long the arm stood at the end of a plan, in all."""
    reason: str
    sent: list[tuple[int, float]] = field(repr=False)


@dataclass
class _Answer:
    """An answer that is there from an instant on."""

    clock: SimpleNamespace
    ready_ns: int
    chunk: Chunk

    def done(self) -> bool:
        return bool(self.clock.now >= self.ready_ns)

    def result(self) -> Chunk:
        if not self.done():
            raise NotAnswered('the answer is not there yet')
        return self.chunk


class GoingOn:
    """One joint, its policy, and the harness between them, on a clock of its own."""

    def __init__(self, case: Case, lag_s: float = 0.0, **changes: Any) -> None:
        """`lag_s` is the time constant of the arm; `changes` are those of the settings."""
        self._case = case
        self._lag_s = lag_s
        self._clock = SimpleNamespace(now=START_NS)
        self._clock.now_ns = lambda: self._clock.now
        self._settings = _settings(case, changes)
        plain = WorkerDeclaration(instance='one', actions=Actions(hz=case.hz))
        self._pipeline = Pipeline(self._settings, plain)
        self._inputs = Inputs(self._settings.inputs)
        self._at = self._to = 0.0
        self._since_ns = START_NS
        self._asked: list[_Answer] = []
        self._asked_ns: list[int] = []
        self._own: list[float] = []
        """What the chunk's own row is for each setpoint."""
        self.sent: list[tuple[int, float]] = []
        self._player: Any = None
        self.harness = Harness(
            clock=self._clock,
            inputs=self._inputs,
            outputs=Outputs({'arm': Output(lambda value: float(value[0]), self._publish)}),
            spec=self._pipeline.spec,
            open_episode=self._open,
            limits=Limits(None, 5 * S),
            instruction='go on',
            wake=lambda: None,
            on_change=lambda: None,
        )

    def run(self, seconds: float = SECONDS) -> Ran:
        """Play for so long."""
        end_ns = START_NS + round(seconds * 1e9)
        self._see()
        self.harness.start()
        wake = self.harness.round()
        while self.harness.report().state.value != 'idle':
            ready = [item.ready_ns for item in self._asked[-1:] if not item.done()]
            self._clock.now = min([wake, *ready])
            if self._clock.now >= end_ns:
                break
            self._see()
            wake = self.harness.round()
        return self._ran()

    def _ran(self) -> Ran:
        values = [0.0, *(value for _, value in self.sent)]
        steps = [b - a for a, b in itertools.pairwise(values)]
        back = [-step for step in steps if step < -EXACT]
        period_s = 1 / self._case.hz
        gaps = [(b[0] - a[0]) / 1e9 for a, b in itertools.pairwise(self.sent)]
        stood = [i + 1 for i, gap in enumerate(gaps) if gap > 1.5 * period_s]
        off = [abs(self.sent[i][1] - self._own[i]) * self._case.hz / SPEED for i in stood]
        report = self.harness.report()
        answered = report.figures['asks']['answered']
        return Ran(
            progress=values[-1],
            travelled=sum(abs(step) for step in steps),
            steps_back=len(back),
            largest_back=max(back, default=0.0),
            off_after_standing=max(off, default=0.0),
            answered=answered,
            dropped_whole=answered - report.figures['chunks']['played'],
            stood_s=sum(gap - period_s for gap in gaps if gap > 1.01 * period_s),
            reason=report.reason,
            sent=self.sent,
        )

    def _see(self) -> None:
        """Let the arm's state arrive now."""
        now = self._clock.now
        sec, nanosec = divmod(now, S)
        message = SimpleNamespace(
            header=SimpleNamespace(stamp=SimpleNamespace(sec=sec, nanosec=nanosec)),
            name=['joint'],
            position=[self._position()],
            velocity=[],
            effort=[],
        )
        self._inputs.put('state', message, now_ns=now, ros_now_ns=now)

    def _position(self) -> float:
        since_s = (self._clock.now - self._since_ns) / 1e9
        decay = math.exp(-since_s / self._lag_s) if self._lag_s else 0.0
        return self._to + (self._at - self._to) * decay

    def _publish(self, value: float) -> None:
        now = self._clock.now
        self._at, self._since_ns, self._to = self._position(), now, value
        # The rows that went out since the ask, its own round included, are those that are over.
        read = [i for i, item in enumerate(self._asked) if item.done()][-1]
        over = sum(t >= self._asked_ns[read] for t, _ in self.sent)
        rows = self._asked[read].chunk.rows
        self._own.append(float(rows[min(over, len(rows) - 1)].commands['arm'][0]))
        self.sent.append((now, value))

    def _open(self) -> Opened:
        with ExitStack() as stack:
            opened = self._pipeline.open(self, self._start, stack)
            opened.stack = stack.pop_all()
            return opened

    def _start(self, work: Callable[[], Chunk | None]) -> _Answer:
        chunk = work()
        if chunk is None:
            raise ValueError('the policy answers rows')
        now = self._clock.now
        delay_ns = round(self._case.delay(len(self._asked)) * 1e9)
        self._asked.append(_Answer(self._clock, now + delay_ns, chunk))
        self._asked_ns.append(now)
        return self._asked[-1]

    # The policy's scope.

    def infer(self, step: Step, plan: Any = None) -> Any:
        at = float(np.asarray(step.observation['state'])[0])
        return np.array([[at + SPEED * i / self._case.hz] for i in range(self._case.rows)])

    def observe(self, step: Step) -> Queued:
        return Queued.ACCEPTED

    def skip(self, number: int) -> None: ...

    def expect(self, next_ask: int) -> None: ...

    def retire(self) -> None: ...

    def close(self) -> None: ...


DRAINING: dict[str, Any] = {'asking': 'drain', 'handoff': 'arrival'}


def _settings(case: Case, changes: dict[str, Any]) -> Settings:
    return parse(
        {
            'input_names': ['state'],
            'inputs.state.topic': 'joint_states',
            'inputs.state.type': 'joint_state',
            'inputs.state.joints': ['joint'],
            'inputs.state.max_age_s': 0.5,
            'channel_names': ['arm'],
            'channels.arm.topic': 'commands',
            'channels.arm.type': 'float64_multi_array',
            'channels.arm.joints': ['joint'],
            'channels.arm.state': 'state',
            'channels.arm.lower': [-100.0],
            'channels.arm.upper': [100.0],
            'channels.arm.max_velocity': [MAX_VELOCITY],
            'rate_hz': case.hz,
            'preview': False,
            **changes,
        }
    )

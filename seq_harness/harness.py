"""The loop: a round takes a snapshot, asks the session, emits, and says when to come back."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from enum import Enum
import logging
import threading
from typing import Any, Protocol

from seq_harness.episode import Episode, Sampled
from seq_harness.inputs import Inputs, Snapshot
from seq_harness.observation import ObservationSpec
from seq_harness.outputs import Outputs
from seq_harness.playback.chunk import ChunkRefused
from seq_harness.playback.player import ChunkPlayer
from seq_harness.playback.session import (
    CEILING_NS,
    Commands,
    FLOOR_NS,
    require_session,
    Session,
)
from seq_harness.playback.statistics import Distribution
from seq_harness.playback.uplink import PolicyError, StateLost, WorkerLost

logger = logging.getLogger(__name__)


class Clock(Protocol):
    """The playback clock of a driver."""

    def now_ns(self) -> int:
        """Return the reading in ns; it never goes back while an episode runs."""


@dataclass
class Opened:
    """What one episode plays with; `stack` closes it in reverse order (R54, R55)."""

    session: Session
    player: ChunkPlayer
    episode: Episode
    stack: ExitStack


class State(Enum):
    """Where a harness stands."""

    IDLE = 'idle'
    WAITING = 'waiting_for_inputs'
    RUNNING = 'running'


@dataclass(frozen=True)
class StartAnswer:
    """Whether a start was accepted, and why not."""

    accepted: bool
    reason: str


@dataclass(frozen=True)
class Limits:
    """How long things may take, in ns; None for no bound."""

    episode_ns: int | None
    inputs_ns: int


class Timing:
    """Distributions of one episode that the loop alone can measure."""

    def __init__(self) -> None:
        self.lateness = Distribution()
        self.observation_age = Distribution()
        self.setpoint_age = Distribution()

    def figures(self) -> dict[str, Any]:
        """Return the distributions as plain data, in ms."""
        return {
            'lateness_ms': self.lateness.figures_ms(),
            'observation_age_ms': self.observation_age.figures_ms(),
            'setpoint_age_ms': self.setpoint_age.figures_ms(),
        }


class _Running:
    """One live episode; the paced thread's alone."""

    def __init__(self, opened: Opened, number: int, now: int) -> None:
        self.opened = opened
        self.number = number
        self.started_ns = now
        self.deadline_ns: int | None = None
        self.rounds = 0
        self.withheld = 0
        self.timing = Timing()
        self.waiting = True

    def figures(self, now: int) -> dict[str, Any]:
        player = self.opened.player
        return {
            'episode_s': round((now - self.started_ns) / 1e9, 4),
            'rounds': self.rounds,
            'withheld': self.withheld,
            'steps': self.opened.episode.steps,
            'pauses': self.opened.episode.pauses,
            **player.statistics.figures(player.held),
            **self.timing.figures(),
        }


@dataclass(frozen=True)
class Report:
    """What a harness says of its latest episode."""

    state: State
    number: int
    """The number of the episode, from 1; 0 before the first."""
    reason: str
    """Why it ended; empty while it goes on."""
    figures: dict[str, Any]


class Harness:
    """
    Run episodes round by round under whatever driver calls `round`.

    The paced thread calls `round`; any thread may call `start`, `stop`, `withhold` and `report`.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        inputs: Inputs,
        outputs: Outputs,
        spec: ObservationSpec,
        open_episode: Callable[[], Opened],
        limits: Limits,
        instruction: str,
        wake: Callable[[], None],
        on_change: Callable[[], None],
    ) -> None:
        """`wake` ends the driver's sleep; `on_change` hears of a new state, from any thread."""
        self._clock = clock
        self._inputs = inputs
        self._outputs = outputs
        self._spec = spec
        self._open_episode = open_episode
        self._limits = limits
        self._instruction = instruction  # replaced whole by any thread
        self._wake = wake
        self._on_change = on_change
        self._requests = threading.Lock()
        self._start_wanted = False  # owner: whoever holds _requests
        self._stop_wanted: str | None = None  # owner: whoever holds _requests
        self._busy = False  # owner: whoever holds _requests
        self._withheld = False  # set by any thread, never cleared while an episode runs
        self._running: _Running | None = None  # owner: the paced thread
        self._number = 0  # owner: the paced thread
        self._last = Report(State.IDLE, 0, '', {})  # replaced whole by the paced thread
        self.expected_ns: int | None = None
        """When the next round of a live episode is due: the loop's heartbeat; None when idle."""

    def instruct(self, text: str) -> None:
        """Set the instruction that the next act carries."""
        self._instruction = text

    def start(self) -> StartAnswer:
        """Ask for an episode; a second one while one is live is refused (R48)."""
        with self._requests:
            if self._busy:
                return StartAnswer(False, 'an episode is running: stop it first')
            self._busy = True
            self._withheld = False
            self._stop_wanted = None
            self._start_wanted = True
        self._wake()
        return StartAnswer(True, 'accepted')

    def stop(self, reason: str) -> bool:
        """Ask for the end of the live episode; tell whether there is one."""
        with self._requests:
            if not self._busy:
                return False
            self._stop_wanted = self._stop_wanted or reason
        self._wake()
        return True

    def withhold(self, reason: str) -> None:
        """Let nothing more out, even if the loop is stuck, and end the episode."""
        self._withheld = True
        self.stop(reason)

    @property
    def waiting(self) -> bool:
        """Whether a live episode waits for its first inputs, so that arrivals should wake it."""
        running = self._running
        return running is not None and running.waiting

    def report(self) -> Report:
        """Return the state and figures of the live episode, or of the last one."""
        running = self._running
        if running is None:
            return self._last
        state = State.WAITING if running.waiting else State.RUNNING
        return Report(state, running.number, '', running.figures(self._clock.now_ns()))

    def round(self) -> int:
        """Do one round and return the instant of the next, on the playback clock (R39)."""
        start = self._clock.now_ns()
        # Simulated time that has not begun reads 0: nothing starts and nothing is aged by it.
        running = self._running or (self._opened(start) if start else None)
        if running is None:
            self.expected_ns = None
            return start + CEILING_NS
        try:
            end, wake_ns = self._step(running, start)
        except Exception as error:
            end, wake_ns = _reason_of(error), start
        if end is not None:
            self._end(running, end)
            self.expected_ns = None
            return start + FLOOR_NS
        self.expected_ns = min(max(wake_ns, start + FLOOR_NS), start + CEILING_NS)
        return self.expected_ns

    def _opened(self, now: int) -> _Running | None:
        with self._requests:
            wanted, self._start_wanted = self._start_wanted, False
        if not wanted:
            return None
        self._number += 1
        try:
            opened = self._open_episode()
            require_session(opened.session)
        except Exception as error:
            logger.exception('the episode did not open')
            self._finish(Report(State.IDLE, self._number, _reason_of(error), {}))
            return None
        self._running = _Running(opened, self._number, now)
        self._on_change()
        return self._running

    def _step(self, running: _Running, start: int) -> tuple[str | None, int]:
        """Do a round of a live episode; return its end, if it has come, and the next instant."""
        end = self._terminal(running, start)
        if end is not None:
            return end, start
        snapshot = self._inputs.snapshot()
        missing = self._inputs.missing(snapshot)
        if running.waiting and missing:
            return self._wait_for(missing, running, start)
        stale = self._inputs.stale(snapshot, start)
        if missing or stale:
            return f'stale_input: {", ".join(missing + stale)}', start
        if running.waiting:
            running.waiting = False
            self._on_change()
        return None, self._play(running, snapshot)

    def _terminal(self, running: _Running, now: int) -> str | None:
        with self._requests:
            if self._stop_wanted is not None:
                return self._stop_wanted
        if running.opened.player.finished is not None:
            return running.opened.player.finished
        if running.deadline_ns is not None and now >= running.deadline_ns:
            return 'deadline'
        return None

    def _wait_for(self, missing: list[str], running: _Running, now: int) -> tuple[str | None, int]:
        until = running.started_ns + self._limits.inputs_ns
        if now >= until:
            return f'inputs_missing: {", ".join(missing)}', now
        return None, until

    def _play(self, running: _Running, snapshot: Snapshot) -> int:
        """Call the session, emit what it answers, and return when to come back."""
        opened = running.opened
        t = self._clock.now_ns()
        observation = self._spec.observe(snapshot, t, self._instruction)
        commands, resume_at_ns = opened.session(observation, t)
        if resume_at_ns <= t:
            raise ValueError(f'the session wants to resume at {resume_at_ns}, not after {t}')
        running.rounds += 1
        if commands:
            self._emit(running, commands)
        if running.deadline_ns is None and opened.player.loaded:
            running.deadline_ns = _after(t, self._limits.episode_ns)
        if opened.episode.sample(observation, t) is not Sampled.NOTHING:
            running.timing.observation_age.add(self._inputs.age_ns(snapshot, t))
        if opened.player.finished is not None:
            return t
        expiry_ns = self._inputs.expiry_ns(snapshot)
        wanted = (
            resume_at_ns,
            opened.episode.next_step_ns,
            running.deadline_ns,
            None if expiry_ns is None else expiry_ns + 1,
        )
        return min(instant for instant in wanted if instant is not None)

    def _emit(self, running: _Running, commands: Commands) -> None:
        """Publish the round's setpoints, unless the deadline or a stop has come since (R44)."""
        encoded = self._outputs.encode(commands)
        now = self._clock.now_ns()
        past = running.deadline_ns is not None and now >= running.deadline_ns
        if past or self._withheld or self._stop_wanted is not None:
            running.withheld += 1
            return
        self._outputs.publish(encoded)
        player = running.opened.player
        if player.last_due_ns is not None:
            running.timing.lateness.add(now - player.last_due_ns)
        if player.last_sampled_ns is not None:
            running.timing.setpoint_age.add(now - player.last_sampled_ns)

    def _end(self, running: _Running, reason: str) -> None:
        """Close the episode in reverse order; nothing is played after this (R55, R59)."""
        figures = running.figures(self._clock.now_ns())
        try:
            running.opened.stack.close()
        except Exception:
            logger.exception('closing the episode failed')
        self._running = None
        self._finish(Report(State.IDLE, running.number, reason, figures))

    def _finish(self, report: Report) -> None:
        self._last = report
        with self._requests:
            self._busy = False
            self._stop_wanted = None
        self._on_change()


def _after(t: int, length_ns: int | None) -> int | None:
    return None if length_ns is None else t + length_ns


def _reason_of(error: Exception) -> str:
    """Name the reason for which an error ends an episode."""
    if isinstance(error, WorkerLost):
        return f'worker_lost: {error}'
    if isinstance(error, StateLost):
        return f'policy_state_lost: {error}'
    if isinstance(error, PolicyError):
        return f'policy_error: {error}'
    if isinstance(error, ChunkRefused):
        return f'guard: {error}'
    logger.error('a round failed', exc_info=error)
    return f'exception: {type(error).__name__}: {error}'

"""One live episode, and what is told of it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from enum import Enum
from typing import Any

from seq_harness.episode import Episode
from seq_harness.harness.requests import Hold
from seq_harness.playback.player import ChunkPlayer
from seq_harness.playback.session import Session
from seq_harness.playback.statistics import Distribution


def _never() -> int | None:
    return None


@dataclass
class Opened:
    """What one episode plays with; `stack` closes it in reverse order (R54, R55)."""

    session: Session
    player: ChunkPlayer
    episode: Episode
    stack: ExitStack
    visible_ns: Callable[[], int | None] = _never
    """When the next answer becomes visible that is there already; None for none (R51)."""
    answered_ns: Callable[[], int | None] = _never
    """When the newest finished answer came; None before the first."""


class State(Enum):
    """Where a harness stands."""

    IDLE = 'idle'
    WAITING = 'waiting_for_inputs'
    RUNNING = 'running'
    PAUSED = Hold.PAUSED.value
    TAKEN_OVER = Hold.TAKEN_OVER.value


class Timing:
    """Distributions of one episode that the loop alone can measure."""

    def __init__(self) -> None:
        self.lateness = Distribution()
        self.observation_age = Distribution()
        self.setpoint_age = Distribution()
        self.answer_to_setpoint = Distribution()
        self.period_jitter = Distribution()

    def figures(self) -> dict[str, Any]:
        """Return the distributions as plain data, in ms."""
        return {
            'lateness_ms': self.lateness.figures_ms(),
            'observation_age_ms': self.observation_age.figures_ms(),
            'setpoint_age_ms': self.setpoint_age.figures_ms(),
            'answer_to_setpoint_ms': self.answer_to_setpoint.figures_ms(),
            'period_jitter_ms': self.period_jitter.figures_ms(),
        }


class Running:
    """One live episode; the paced thread's alone."""

    def __init__(self, opened: Opened, number: int, now: int) -> None:
        self.opened = opened
        self.number = number
        self.started_ns = now
        self.called_ns: int | None = None
        """When the session was called first: from then on the deadline counts (R43)."""
        self.deadline_ns: int | None = None
        self.rounds = 0
        self.withheld = 0
        self.timing = Timing()
        self.waiting = True
        self.hold: Hold | None = None
        self.held_since_ns = now
        self.held_ns = 0
        self.replans = 0
        self.late_ns: int | None = None
        """When the loop was so late last that what it held was dropped."""
        self.stalls = 0
        """How often it was."""
        self._last_setpoint: tuple[int, int] | None = None

    @property
    def state(self) -> State:
        if self.hold is not None:
            return State(self.hold.value)
        return State.WAITING if self.waiting else State.RUNNING

    @property
    def plays(self) -> bool:
        """Whether rows may go out: the inputs are there, and nothing holds the episode."""
        return self.hold is None and not self.waiting

    def note_setpoint(self, now: int) -> None:
        """Note when the round's setpoint went out, against when it was due and the one before."""
        player = self.opened.player
        if player.last_sampled_ns is not None:
            self.timing.setpoint_age.add(now - player.last_sampled_ns)
        due = player.last_due_ns
        if due is None:
            return
        self.timing.lateness.add(now - due)
        if self._last_setpoint is not None:
            last_now, last_due = self._last_setpoint
            self.timing.period_jitter.add(abs((now - last_now) - (due - last_due)))
        self._last_setpoint = now, due

    def note_first_setpoint(self, now: int) -> None:
        """Note that a chunk's first setpoint went out in the round that read it."""
        answered_ns = self.opened.answered_ns()
        if answered_ns is not None:
            self.timing.answer_to_setpoint.add(now - answered_ns)

    def figures(self, now: int) -> dict[str, Any]:
        player = self.opened.player
        held_ns = self.held_ns + (0 if self.hold is None else now - self.held_since_ns)
        return {
            'episode_s': round((now - self.started_ns) / 1e9, 4),
            'waited_s': round(((self.called_ns or now) - self.started_ns) / 1e9, 4),
            'held_s': round(held_ns / 1e9, 4),
            'replans': self.replans,
            'stalls': self.stalls,
            'rounds': self.rounds,
            'withheld': self.withheld,
            'steps': self.opened.episode.steps,
            'pauses': self.opened.episode.pauses,
            **player.statistics.figures(player.held, player.starving_ns(now)),
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


@dataclass(frozen=True)
class Limits:
    """How long things may take, in ns; None for no bound."""

    episode_ns: int | None
    inputs_ns: int

    def deadline_ns(self, t: int) -> int | None:
        """Return when an episode is to end whose first call is at `t`; None for never (R43)."""
        return None if self.episode_ns is None else t + self.episode_ns

"""Ask an endpoint once, and look at what it would command."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from seq_harness.playback.answer import Answer, NotAnswered
from seq_harness.playback.channels import Vector
from seq_harness.playback.chunk import Chunk
from seq_harness.playback.layers import Layers
from seq_harness.playback.player import ChunkPlayer
from seq_harness.playback.scope import chunk_of, Infer, infer_of, Scope
from seq_harness.playback.session import Commands, Observation, Session
from seq_harness.playback.uplink import Step

SPAN_NS = 150_000_000_000
"""A walk that has not ended this long after the question ends: no chunk is that long."""


@dataclass(frozen=True)
class Commanded:
    """What one call of the session commanded."""

    t_ns: int
    """When, after the question."""
    commands: Commands


@dataclass(frozen=True)
class Probed:
    """What an endpoint would command, and data to draw it by."""

    round_trip_ns: int
    """From the question to its answer."""
    commanded: tuple[Commanded, ...]
    """Every call that commanded something, the first one included (R90)."""
    finding: str
    """What is odd about it; empty if nothing is."""

    def series(self) -> dict[str, tuple[Vector, Vector]]:
        """Return the times [n], in s after the question, and the values [n, width] by channel."""
        found: dict[str, tuple[list[float], list[Vector]]] = {}
        for item in self.commanded:
            for name, value in item.commands.items():
                times, values = found.setdefault(name, ([], []))
                times.append(item.t_ns / 1e9)
                values.append(np.atleast_1d(np.asarray(value, np.float64)))
        return {
            name: (np.array(times), np.array(values)) for name, (times, values) in found.items()
        }


@dataclass
class _Once:
    """An uplink that asks once, waits for the answer, and then knows no more (R89)."""

    infer: Infer
    fps: float
    elapsed_ns: Callable[[], int]
    round_trip_ns: int = 0
    step: Step | None = None
    answers: list[_Known] = field(default_factory=list)
    asked_again: bool = False

    def ask(self, observation: Observation, t: int, *_: Any) -> Answer[Chunk | None] | None:
        """Start the one question; None for each further one."""
        if self.answers:
            self.asked_again = True
            return None
        self.answers.append(_Known())
        self.step = Step(0, t, observation)
        return self.answers[0]

    @property
    def awaited(self) -> bool:
        """Whether the question is out and its answer is not there."""
        return bool(self.answers) and not self.answers[0].there

    def commit(self, at_ns: int) -> int:
        """Let the next ask fall due as planned."""
        return at_ns

    def wait(self) -> None:
        """Wait for the round trip; the endpoint's own time-out bounds it (R91)."""
        if self.step is None:
            raise NotAnswered('nothing was asked')
        began_ns = self.elapsed_ns()
        self.answers[0].chunk = chunk_of(self.infer(self.step), self.fps)
        self.round_trip_ns = self.elapsed_ns() - began_ns
        self.answers[0].there = True


@dataclass
class _Known:
    there: bool = False
    chunk: Chunk | None = None

    def done(self) -> bool:
        return self.there

    def result(self) -> Chunk | None:
        if not self.there:
            raise NotAnswered('the endpoint has not been waited for')
        return self.chunk


def probe(
    endpoint: Scope,
    layers: Layers,
    observation: Observation,
    *,
    fps: float,
    elapsed_ns: Callable[[], int],
    log: Callable[[Observation], None] = lambda observation: None,
) -> Probed:
    """
    Ask `endpoint` once about a recorded observation, and walk the clock along the answer (R89).

    The observation is frozen and logged once (R93). `elapsed_ns` reads a steady clock, which times
    the round trip; `fps` is the rate of rows without stamps. Everything is closed before this
    returns or raises (R94), the session before the endpoint (R60).

    Raises
    ------
    NotASession
        No layer turns chunks into commands; the endpoint is not opened.
    Exception
        Whatever the endpoint raises, its time-out among it.

    """
    layers.require_player()
    log(observation)
    with endpoint as calls:
        uplink = _Once(layers.wrap_infer(infer_of(calls)), fps, elapsed_ns)
        session, player = layers.open_session(uplink)
        try:
            commanded = _walk(session, player, uplink, observation)
        finally:
            session.close()
    finding = '' if commanded else _why_nothing(uplink, player)
    return Probed(uplink.round_trip_ns, tuple(commanded), finding)


def _walk(
    session: Session, player: ChunkPlayer, uplink: _Once, observation: Observation
) -> list[Commanded]:
    """Call the session until it would ask again and holds no more rows."""
    commanded: list[Commanded] = []
    t = 0
    while t <= SPAN_NS + uplink.round_trip_ns and player.finished is None:
        commands, resume_at_ns = session(observation, t)
        if commands:
            commanded.append(Commanded(t, commands))
        elif uplink.asked_again and player.held == 0:
            break
        t = resume_at_ns
        if uplink.awaited:
            uplink.wait()
            t = max(t, uplink.round_trip_ns)
    return commanded


def _why_nothing(uplink: _Once, player: ChunkPlayer) -> str:
    """Say why an endpoint commanded nothing (R92)."""
    if not uplink.answers:
        return 'the endpoint was not asked: a layer above the player held it back'
    chunk = uplink.answers[0].chunk
    if chunk is None:
        return 'the endpoint answered nothing new'
    if not chunk.rows:
        return 'the endpoint answered a chunk without rows'
    reason = player.statistics.last_refusal or player.finished or 'all were dropped'
    return f'no row of the chunk was played: {reason}'

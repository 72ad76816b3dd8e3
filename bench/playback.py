"""
Time a round of the player that pops a row, one that joins an ensemble, and what an ask costs.

Seven joints and a gripper, the guard and the statistics on, with 50 and with 5000 rows held. The
two are measured by turns in one run, so that their ratio holds on a noisy machine. The ensemble is
of chunks of 100 rows at 50 Hz and 14 joints, asked for with every row: 100 of them overlap.
"""

from __future__ import annotations

import argparse
import json
import statistics
import threading
import time

import numpy as np
from seq_harness.client.runtime import Runtime
from seq_harness.playback.ahead import Ahead
from seq_harness.playback.answer import Answer
from seq_harness.playback.asking import Drain
from seq_harness.playback.chunk import Chunk
from seq_harness.playback.guard import Guard, Limits
from seq_harness.playback.handoff import ArriveAtStart
from seq_harness.playback.modes import Mode, parts_of
from seq_harness.playback.player import ChunkPlayer
from seq_harness.playback.session import Observation

PERIOD_NS = 10_000_000
BLOCK, BLOCKS = 200, 40
ENSEMBLE_NS, ENSEMBLE_ROWS, ENSEMBLE_JOINTS = 20_000_000, 100, 14
JOINTS = {'arm': 7, 'gripper': 1}


class OneChunk:
    """An uplink whose only answer is there at once."""

    def __init__(self, chunk: Chunk) -> None:
        self._chunk = chunk

    def ask(
        self, observation: Observation, t: int, ahead: Ahead | None = None
    ) -> Answer[Chunk | None]:
        return self

    def commit(self, at_ns: int) -> int:
        return at_ns

    def done(self) -> bool:
        return True

    def result(self) -> Chunk:
        return self._chunk


def limits(joints: int) -> Limits:
    ones = np.ones(joints)
    names = tuple(f'joint_{number}' for number in range(joints))
    return Limits(names, -ones, ones, 100 * ones, ones)


def player_holding(rows: int) -> ChunkPlayer:
    """Return a player that has just popped the first of `rows` + 1 rows."""
    commands = [
        {name: np.full(width, (i % 2) / 100) for name, width in JOINTS.items()}
        for i in range(rows + 1)
    ]
    zeros = {name: np.zeros(width) for name, width in JOINTS.items()}
    player = ChunkPlayer(
        OneChunk(Chunk.at_rate(commands, 1e9 / PERIOD_NS)),
        asking=Drain(),
        handoff=ArriveAtStart(),
        guard=Guard({name: limits(width) for name, width in JOINTS.items()}, PERIOD_NS),
        measured=lambda observation: zeros,
    )
    player({}, 0)
    return player


def block_us(held: int) -> list[float]:
    """Return how long each round of a block took, in us, with about `held` rows held."""
    player = player_holding(held + BLOCK // 2)
    times = []
    for i in range(1, min(BLOCK, held) + 1):
        start = time.perf_counter_ns()
        player({}, i * PERIOD_NS)
        times.append((time.perf_counter_ns() - start) / 1e3)
    return times


def starts_us(count: int) -> list[float]:
    """Return how long the runtime took to take each of so many calls, in us."""
    times = []
    with Runtime() as runtime:
        for _ in range(count):
            done = threading.Event()
            start = time.perf_counter_ns()
            runtime.start(lambda: None, on_done=done.set)
            times.append((time.perf_counter_ns() - start) / 1e3)
            done.wait()
    return times


class Chunks(OneChunk):
    """An uplink that answers every question at once, with another chunk."""

    def __init__(self) -> None:
        self._random = np.random.default_rng(0)
        self._chunk = self._made()

    def ask(
        self, observation: Observation, t: int, ahead: Ahead | None = None
    ) -> Answer[Chunk | None]:
        self._chunk = self._made()
        return self

    def _made(self) -> Chunk:
        values = self._random.uniform(-0.5, 0.5, (ENSEMBLE_ROWS, ENSEMBLE_JOINTS))
        return Chunk.at_rate([{'arm': row} for row in values], 1e9 / ENSEMBLE_NS)


def ensemble_ms() -> list[float]:
    """Return how long each round took that loads a chunk into a full ensemble, in ms."""
    mode = Mode(asking='every', every_rows=1, handoff='ensemble')
    player = ChunkPlayer(
        Chunks(),
        **parts_of(mode, ENSEMBLE_NS),
        guard=Guard({'arm': limits(ENSEMBLE_JOINTS)}, ENSEMBLE_NS),
        measured=lambda observation: {'arm': np.zeros(ENSEMBLE_JOINTS)},
    )
    times = []
    for i in range(3 * ENSEMBLE_ROWS):
        start = time.perf_counter_ns()
        player({}, i * ENSEMBLE_NS)
        times.append((time.perf_counter_ns() - start) / 1e6)
    if player.statistics.chunks < 3 * ENSEMBLE_ROWS:
        raise RuntimeError(f'expected a chunk a round, {player.statistics.chunks} were loaded')
    return times[ENSEMBLE_ROWS:]


def main() -> None:
    """Print a table, and the figures as one JSON object."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    few: list[float] = []
    many: list[float] = []
    for _ in range(BLOCKS):
        few += block_us(50)
        many += block_us(5000)
    starts = starts_us(BLOCK * BLOCKS)
    print(f'{"rows held":>10}{"p50 us":>10}{"p99 us":>10}')
    for name, times in (('50', few), ('5000', many), ('an ask', starts)):
        print(f'{name:>10}{statistics.median(times):>10.1f}{np.percentile(times, 99):>10.1f}')
    loads = ensemble_ms()
    print(f'a chunk loaded into an ensemble: {statistics.median(loads):.2f} ms')
    figures = {
        'round_us_p50': round(statistics.median(few), 2),
        'growth_50_to_5000': round(statistics.median(many) / statistics.median(few), 3),
        'start_us_p50': round(statistics.median(starts), 2),
        'ensemble_load_ms_p50': round(statistics.median(loads), 3),
    }
    print(json.dumps(figures))


if __name__ == '__main__':
    main()

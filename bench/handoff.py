"""
Compare how modes of playing join chunks: steps, jerk, tracking and idle time.

A simulated arm follows a smooth reference by the chunks of a policy that takes its time. The task,
its noise and its delays are the same for all: fixed seeds, answers after 50, 150 and 400 ms on
average. Two ways of other clients are reproduced beside this package's modes: a broker that plays
a chunk and then blocks for the next, and a queue that asks while it is at most half full and
averages what overlaps, 0.3 old and 0.7 new, by number of row. Prints a table, and the figures as
one JSON object; with short chunks and slow answers too, as `_going_on` describes, and with --node
the same on the real node.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
import itertools
import json
import math

from _short_chunks import short_chunks
import numpy as np
from seq_harness.playback.ahead import Ahead
from seq_harness.playback.answer import NotAnswered
from seq_harness.playback.chunk import Chunk
from seq_harness.playback.modes import Mode, parts_of
from seq_harness.playback.player import ChunkPlayer
from seq_harness.playback.rotations import Vector
from seq_harness.playback.session import Observation

HZ, ROWS, JOINTS = 30.0, 50, 6
PERIOD_NS = round(1e9 / HZ)
SECONDS = 30
SEEDS = (1, 2, 3)
DELAYS_MS = (50, 150, 400)
JITTER = 0.1
"""Standard deviation of a delay, as a share of its mean."""

START_S = 4.0
"""How long the motion takes to reach its pace."""

ARM_LAG_S = 0.06
"""Time constant with which the arm follows its commands."""
SETTLE_S = 0.3
"""Time constant with which the policy leads the arm from where it is to the reference."""
DRIFT_RAD = 0.005
"""Standard deviation of the policy's error at the end of a chunk; it grows from the start."""


class Task:
    """A reference, a policy and an arm; every draw comes from the seed."""

    def __init__(self, seed: int, delay_ms: float) -> None:
        rng = np.random.default_rng(seed)
        self._amplitude = rng.uniform(0.1, 0.3, (JOINTS, 3))
        self._hz = rng.uniform(0.05, 0.4, (JOINTS, 3))
        self._phase = rng.uniform(0, 2 * math.pi, (JOINTS, 3))
        self._rng = rng
        self._delay_ms = delay_ms
        self._position = self.nominal(0)
        self._command = self._position
        self._since_ns = 0
        self.log: list[tuple[int, Vector]] = []
        self.joins: list[int] = []
        """Numbers of the commands that are the first ones of a chunk."""

    def reference(self, t_ns: float) -> Vector:
        """Return where a perfect policy commands the joints to be."""
        moving = self._moving_s(t_ns)
        angle = 2 * math.pi * self._hz * moving + self._phase
        return np.asarray((self._amplitude * np.sin(angle)).sum(axis=1))

    def nominal(self, t_ns: float) -> Vector:
        """Return where the arm would be, had it always been commanded the reference."""
        return self.reference(t_ns - ARM_LAG_S * 1e9)

    @staticmethod
    def _moving_s(t_ns: float) -> float:
        """Return the time of the motion, which starts from rest and reaches its pace smoothly."""
        t = max(0.0, t_ns / 1e9)
        x = min(1.0, t / START_S)
        return START_S * x**3 * (1 - x / 2) + max(0.0, t - START_S)

    def position(self, t_ns: int) -> Vector:
        """Return where the arm is."""
        decay = math.exp(-(t_ns - self._since_ns) / 1e9 / ARM_LAG_S)
        return self._command + (self._position - self._command) * decay

    def send(self, t_ns: int, command: Vector) -> None:
        """Command the arm from `t_ns` on."""
        self._position, self._since_ns = self.position(t_ns), t_ns
        self._command = command
        self.log.append((t_ns, command))

    def joined(self) -> None:
        """Note that the next command is the first of a chunk."""
        if self.log and (not self.joins or self.joins[-1] != len(self.log)):
            self.joins.append(len(self.log))

    def rows(self, t_ns: int) -> list[Vector]:
        """
        Return the policy's answer to the observation of `t_ns`.

        As with a policy that was trained on reached positions, its rows start where the arm is.
        """
        error = self.position(t_ns) - self.reference(t_ns)
        drift = self._rng.normal(0, DRIFT_RAD, JOINTS)
        return [
            self.reference(t_ns + i * PERIOD_NS)
            + error * math.exp(-i / HZ / SETTLE_S)
            + drift * (i / (ROWS - 1))
            for i in range(ROWS)
        ]

    def delay_ns(self) -> int:
        """Return how long the next answer takes."""
        drawn = self._rng.normal(self._delay_ms, JITTER * self._delay_ms)
        return round(max(drawn, 0.25 * self._delay_ms) * 1e6)


def the_reference(task: Task, end_ns: int) -> None:
    """Command the reference itself, without a policy: what the motion's own steps come to."""
    for number, t in enumerate(range(0, end_ns, PERIOD_NS)):
        if number % (ROWS // 2) == 0:
            task.joined()
        task.send(t, task.reference(t))


def blocking_broker(task: Task, end_ns: int) -> None:
    """Play a chunk to its end, then block for the next."""
    t = 0
    while t < end_ns:
        rows = task.rows(t)
        t += task.delay_ns()
        task.joined()
        for row in rows:
            task.send(t, row)
            t += PERIOD_NS


class QueueClient:
    """
    A queue of rows by number; asks in every tick in which it is at most half full.

    The server keeps the newest observation only, and thinks about one at a time. A row is numbered
    from the last one performed when its observation was taken; what is numbered as performed is
    dropped, what overlaps is averaged.
    """

    def __init__(self, task: Task) -> None:
        self._task = task
        self._queue: dict[int, Vector] = {}
        self._latest = -1
        self._newest: tuple[int, int] | None = None
        self._busy: tuple[int, int, list[Vector]] | None = None
        self._asked: set[int] = set()
        """Numbers that the server has answered, or is about to: it takes none of them twice."""

    def run(self, end_ns: int) -> None:
        t = 0
        while t < end_ns:
            self._serve(t)
            if self._queue:
                self._latest = min(self._queue)
                self._task.send(t, self._queue.pop(self._latest))
            number = max(self._latest, 0)
            if len(self._queue) <= ROWS / 2 and number not in self._asked:
                self._newest = (t, number)
            self._serve(t)
            t += PERIOD_NS

    def _serve(self, t: int) -> None:
        """Let the server finish what is ready by `t`, and take up the newest observation."""
        ready = t
        if self._busy is not None:
            if self._busy[0] > t:
                return
            ready, first, rows = self._busy
            self._busy = None
            self._aggregate(first, rows)
        if self._newest is not None:
            at, number = self._newest
            self._newest = None
            self._asked.add(number)
            self._busy = (max(ready, at) + self._task.delay_ns(), number, self._task.rows(at))

    def _aggregate(self, first: int, rows: list[Vector]) -> None:
        queue = {}
        for number, row in enumerate(rows, first):
            if number > self._latest:
                old = self._queue.get(number)
                queue[number] = row if old is None else 0.3 * old + 0.7 * row
        self._queue = queue
        self._task.joined()


@dataclass
class _Answer:
    """An answer that is there at an instant of the simulated clock."""

    clock: Clock
    ready_ns: int
    chunk: Chunk

    def done(self) -> bool:
        return self.clock.now >= self.ready_ns

    def result(self) -> Chunk:
        if not self.done():
            raise NotAnswered
        return self.chunk


@dataclass
class Clock:
    """The simulated clock, in ns."""

    now: int = 0


class SimulatedUplink:
    """Asks the task's policy; its answers take their time on the simulated clock."""

    def __init__(self, task: Task, clock: Clock) -> None:
        self._task = task
        self._clock = clock
        self.ready_ns: int | None = None

    def ask(self, observation: Observation, t: int, ahead: Ahead | None = None) -> _Answer:
        rows = self._task.rows(t)
        if ahead is not None:
            rows = honoured(rows, [np.asarray(row['arm']) for row in ahead.prefix], ahead)
        chunk = Chunk.at_rate([{'arm': row} for row in rows], HZ)
        self.ready_ns = t + self._task.delay_ns()
        return _Answer(self._clock, self.ready_ns, chunk)

    def commit(self, at_ns: int) -> int:
        return at_ns


def honoured(rows: list[Vector], prefix: list[Vector], ahead: Ahead) -> list[Vector]:
    """Keep to the rows that will be executed, and leave them with weights that fall off."""
    out = list(rows)
    for i, row in enumerate(prefix[: len(rows)]):
        beyond = i - ahead.delay_rows + 1
        span = len(prefix) - ahead.delay_rows + 1
        weight = 1.0 if beyond <= 0 else (1 - beyond / span) ** 2
        out[i] = weight * row + (1 - weight) * rows[i]
    return out


def played(mode: Mode) -> Callable[[Task, int], None]:
    """Return a run of this package's player in a mode."""

    def run(task: Task, end_ns: int) -> None:
        clock = Clock()
        uplink = SimulatedUplink(task, clock)
        player = ChunkPlayer(uplink, **parts_of(mode, PERIOD_NS))
        answers = None
        while clock.now < end_ns:
            commands, resume = player({}, clock.now)
            if commands:
                if player.last_sampled_ns != answers:
                    answers = player.last_sampled_ns
                    task.joined()
                task.send(clock.now, commands['arm'])
            ready = uplink.ready_ns
            wakes = ready is not None and clock.now < ready < resume
            clock.now = ready if wakes and ready is not None else resume

    return run


RUNS: dict[str, Callable[[Task, int], None]] = {
    'the reference': the_reference,
    'blocking broker': blocking_broker,
    'queue threshold': lambda task, end_ns: QueueClient(task).run(end_ns),
    'lead + continue': played(Mode()),
    'continue, no seam': played(Mode(seam_rows=0)),
    'drain + arrival': played(Mode(asking='drain', handoff='arrival')),
    'lead + arrival': played(Mode(handoff='arrival')),
    'lead + observation': played(Mode(handoff='observation')),
    'lead + append': played(Mode(handoff='append')),
    'threshold': played(Mode(asking='threshold')),
    'every 4': played(Mode(asking='every', every_rows=4)),
    'rtc': played(Mode(asking='rtc', every_rows=8)),
    'crossfade': played(Mode(handoff='crossfade')),
    'velocity seam': played(Mode(handoff='velocity_seam')),
    'ensemble': played(Mode(asking='every', every_rows=1, handoff='ensemble')),
    'aggregate': played(Mode(asking='threshold', handoff='aggregate')),
}
BROKER, QUEUE, DEFAULT = 'blocking broker', 'queue threshold', 'lead + continue'

AT_MOST_WORSE = 1.1

COLUMNS = ('join_step_mrad', 'jerk_rad_s3', 'tracking_mrad', 'idle_s')
"""What modes are compared by."""

SHOWN = (*COLUMNS, 'whole_step_mrad')
"""And beside them the whole step at a join, which holds the motion's own step too."""


def figures(task: Task, end_ns: int) -> list[float]:
    """
    Return the columns of one run.

    A join step is how far the first command of a chunk is from where the two before it lead; the
    worst joint counts. The whole step is from the command before it, the motion's own included.
    """
    instants = [t for t, _ in task.log]
    sent = [command for _, command in task.log]
    steps = [
        float(np.abs(sent[i] - 2 * sent[i - 1] + sent[i - 2]).max())
        for i in task.joins
        if 2 <= i < len(sent)
    ]
    whole = [float(np.abs(sent[i] - sent[i - 1]).max()) for i in task.joins if 2 <= i < len(sent)]
    start = instants[0]
    grid = np.arange(start, end_ns, PERIOD_NS)
    held = np.searchsorted(instants, grid, side='right') - 1
    commands = np.array([task.log[i][1] for i in held])
    jerk = np.diff(commands, n=3, axis=0) * HZ**3
    idle = sum(max(0, b - a - PERIOD_NS) for a, b in itertools.pairwise(instants))
    return [
        1e3 * float(np.mean(steps)),
        float(np.sqrt(np.mean(jerk**2))),
        1e3 * tracking_error(task, start, end_ns),
        idle / 1e9,
        1e3 * float(np.mean(whole)),
    ]


def tracking_error(task: Task, start_ns: int, end_ns: int) -> float:
    """Return the RMS distance of the arm from where the reference would have it, in rad."""
    follower = Task.__new__(Task)
    follower.__dict__.update(task.__dict__)
    follower._position, follower._command, follower._since_ns = task.nominal(0), task.nominal(0), 0
    errors, log, at = [], list(task.log), 0
    follower.log = []
    for t in range(0, end_ns, PERIOD_NS // 5):
        while at < len(log) and log[at][0] <= t:
            follower.send(*log[at])
            at += 1
        if t >= start_ns:
            errors.append(follower.position(t) - task.nominal(t))
    return float(np.sqrt(np.mean(np.square(errors))))


def measured(run: Callable[[Task, int], None], delay_ms: float) -> list[float]:
    """Return the columns of a way of playing, averaged over the seeds."""
    end_ns = SECONDS * 1_000_000_000
    results = []
    for seed in SEEDS:
        task = Task(seed, delay_ms)
        run(task, end_ns)
        results.append(figures(task, end_ns))
    return [float(value) for value in np.mean(results, axis=0)]


def verdict(means: dict[str, dict[str, float]]) -> dict[str, dict[str, object]]:
    """Say in which columns the default is better than each other client, and where it is worse."""
    ours = means[DEFAULT]
    return {
        other: {
            'better': [name for name in COLUMNS if ours[name] < means[other][name]],
            'more_than_10_percent_worse': [
                name for name in COLUMNS if ours[name] > AT_MOST_WORSE * means[other][name]
            ],
        }
        for other in (BROKER, QUEUE)
    }


def main() -> None:
    """Print a table, and the figures as one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--node', action='store_true', help='run short chunks on the node, too')
    node = parser.parse_args().node
    print(f'{"mode":<20}{"delay ms":>9}' + ''.join(f'{name:>16}' for name in SHOWN))
    means: dict[str, dict[str, float]] = {}
    for name, run in RUNS.items():
        table = {delay: measured(run, delay) for delay in DELAYS_MS}
        for delay, values in table.items():
            print(f'{name:<20}{delay:>9}' + ''.join(f'{value:>16.2f}' for value in values))
        mean = np.mean(list(table.values()), axis=0)
        means[name] = {
            column: round(float(value), 3) for column, value in zip(SHOWN, mean, strict=True)
        }
    print()
    for name, row in means.items():
        print(f'{name:<20}{"mean":>9}' + ''.join(f'{value:>16.2f}' for value in row.values()))
    short = short_chunks(node)
    print(json.dumps({'means': means, 'default': verdict(means), 'short_chunks': short}))


if __name__ == '__main__':
    main()

"""
Run the demo's processes for long, and look at what they take.

By turns an episode of the demo plays to its end, and others are interrupted: stopped while an act
is under way, held and gone on with, cut from their worker. What the processes hold is looked at
between episodes; growth counts from the tenth minute on, or from the half of a shorter run.

  scripts/bench soak [--minutes 30]
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
import json
from pathlib import Path
import re
import statistics
import sys
import tempfile
import time

from injections.processes import OURS, Processes
from injections.rig import BENCH
import numpy as np
from seq_harness.ros.watcher import Watcher

ROOT = BENCH.parent
REACH = 'seq_harness.worker.policies.reach:Reach'
REACHED = 'policy:targets_reached'
WARM_MINUTES = 10.0
"""Until when caches fill, and the allocator finds its size."""

WINDOW_S = 60.0
"""Over how long the ends of a growth are taken."""

READY_S, EPISODE_S, ANSWER_S = 60.0, 60.0, 20.0
MOVES_S = 0.3
"""How long an episode plays before it is interrupted: within an act, as like as not."""

COMPARED = 5
"""Episodes at each end whose lateness is compared."""

AT_MOST_MB = 5.0


@dataclass(frozen=True)
class Held:
    """What the processes held at an instant, between two episodes."""

    at_s: float
    node_mb: float
    worker_mb: float
    descriptors: int
    """Of both."""


class Soak:
    """The processes of a soak, and what was seen of them."""

    def __init__(self, processes: Processes, watcher: Watcher) -> None:
        """Start everything, with a proxy between the harness and its worker."""
        self._processes = processes
        self._watcher = watcher
        self.held: list[Held] = []
        self.late_ms: list[float] = []
        """The 99th percentile of how late setpoints were, of each episode that was not cut."""
        self.episodes = 0
        self.odd: Counter[str] = Counter()
        """Ends that were not meant, as a machine that is too busy makes them."""
        self._began = time.monotonic()
        processes.start('sim_arm', [*OURS, 'sim-arm'])
        processes.start('worker', [*OURS, 'worker', REACH, '--port', '0'])
        port = self._said('worker', r'serving \S+ on ws://[^:]+:(\d+)')
        variables = {'PYTHONPATH': f'{BENCH}:{ROOT / "test"}'}
        proxy = [sys.executable, '-m', 'injections.proxy', port]
        processes.start('proxy', proxy, variables=variables, cwd=BENCH)
        url = 'ws://127.0.0.1:' + self._said('proxy', r'listening on (\d+)')
        file = str(ROOT / 'config' / 'demo.yaml')
        words = ['--ros-args', '--params-file', file, '-p', f'worker_url:={url}']
        processes.start('harness', [*OURS, 'harness', *words])
        self._until(lambda: watcher.ready, READY_S, 'a ready harness')
        self._until(lambda: not watcher.figures['missing_inputs'], ANSWER_S, 'the inputs')

    def turn(self) -> None:
        """Play one episode to its end, then interrupt one of each kind."""
        self._start()
        self._ended(EPISODE_S, REACHED)
        self.late_ms.append(float(self._watcher.figures['lateness_ms']['p99']))
        for interrupted in (self._stopped, self._stopped_at_once, self._paused, self._cut) * 2:
            self._start()
            interrupted()

    def _stopped_at_once(self) -> None:
        self._call('stop')
        self._ended(ANSWER_S, 'stop')

    def _stopped(self) -> None:
        self._play()
        self._stopped_at_once()

    def _paused(self) -> None:
        self._play()
        for name in ('pause', 'resume', 'replan'):
            self._call(name)
        self._stopped()

    def _cut(self) -> None:
        self._play()
        self._processes.tell('proxy', drop='reset')
        self._play()
        if self._watcher.live:
            self._call('stop')
        self._ended(ANSWER_S, r'stop|policy_state_lost: .*')

    def _play(self) -> None:
        until = time.monotonic() + MOVES_S
        self._until(lambda: time.monotonic() > until, ANSWER_S, 'a while')

    def _start(self) -> None:
        refused = ['']

        def accepted() -> bool:
            refused[0] = self._watcher.call('start', self._check)
            return not refused[0]

        self._until(accepted, ANSWER_S, f'a start: {refused[0]}')
        self._until(lambda: self._watcher.live, ANSWER_S, 'an episode')
        self.episodes += 1

    def _ended(self, within_s: float, expected: str) -> None:
        watcher = self._watcher
        self._until(lambda: bool(watcher.reason), within_s, 'the end of the episode')
        if not re.fullmatch(expected, watcher.reason):
            self.odd[watcher.reason] += 1
        self.held.append(
            Held(
                time.monotonic() - self._began,
                self._resident_mb('harness'),
                self._resident_mb('worker'),
                self._descriptors('harness') + self._descriptors('worker'),
            )
        )

    def _call(self, name: str) -> None:
        self._watcher.call(name, self._check)

    def _until(self, condition: Callable[[], bool], within_s: float, what: str) -> None:
        self._watcher.wait(condition, within_s, what, self._check)

    def _check(self) -> None:
        for name in ('sim_arm', 'worker', 'harness'):
            if name in self._processes and not self._processes.runs(name):
                raise RuntimeError(f'{name} has ended:\n{self._processes.said(name)[-2000:]}')

    def _said(self, name: str, pattern: str) -> str:
        found: list[str] = []

        def said() -> bool:
            found[:] = re.findall(pattern, self._processes.said(name))
            return bool(found)

        self._until(said, READY_S, name)
        return found[-1]

    def _resident_mb(self, name: str) -> float:
        status = Path(f'/proc/{self._processes.pid(name)}/status').read_text()
        return int(re.findall(r'VmRSS:\s+(\d+)', status)[0]) / 1024

    def _descriptors(self, name: str) -> int:
        return len(list(Path(f'/proc/{self._processes.pid(name)}/fd').iterdir()))


def figures(
    held: Sequence[Held], late_ms: Sequence[float], episodes: int, odd: int
) -> dict[str, float]:
    """Return what is held to a bar, of what was seen in the order of time."""
    end_s = held[-1].at_s
    warm_s = min(WARM_MINUTES * 60, end_s / 2)
    later = [each for each in held if each.at_s >= warm_s]
    window_s = min(WINDOW_S, (end_s - warm_s) / 3)
    first = [each for each in later if each.at_s <= warm_s + window_s] or later[:1]
    last = [each for each in later if each.at_s >= end_s - window_s]

    def growth(value: Callable[[Held], float]) -> float:
        return statistics.median(map(value, last)) - statistics.median(map(value, first))

    minutes = [each.at_s / 60 for each in later]
    slope = np.polyfit(minutes, [each.node_mb for each in later], 1)[0] if len(later) > 1 else 0.0
    ends = min(COMPARED, max(1, len(late_ms) // 2))
    ratio = statistics.median(late_ms[-ends:]) / statistics.median(late_ms[:ends])
    return {
        'minutes': round(end_s / 60, 2),
        'episodes': episodes,
        'node_growth_mb': round(growth(lambda each: each.node_mb), 2),
        'worker_growth_mb': round(growth(lambda each: each.worker_mb), 2),
        'node_slope_mb_min': round(float(slope), 3),
        'fd_growth': round(growth(lambda each: each.descriptors)),
        'lateness_p99_ratio': round(ratio, 3),
        'odd_ends': odd,
    }


def main() -> int:
    """Print a line a minute, and the figures as one JSON object; 1 where a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument('--minutes', type=float, default=30.0, help='how long to go on')
    options = parser.parse_args()
    end = time.monotonic() + options.minutes * 60
    print(f'{"minute":>8}{"episodes":>10}{"node MB":>10}{"worker MB":>11}{"files":>8}', flush=True)
    with (
        tempfile.TemporaryDirectory(prefix='soak-') as folder,
        Processes(Path(folder)) as processes,
        Watcher() as watcher,
    ):
        soak, told = Soak(processes, watcher), 0.0
        while time.monotonic() < end or not soak.held:
            soak.turn()
            now = soak.held[-1]
            if now.at_s >= told:
                told = now.at_s + 60.0
                print(
                    f'{now.at_s / 60:>8.1f}{soak.episodes:>10}{now.node_mb:>10.1f}'
                    f'{now.worker_mb:>11.1f}{now.descriptors:>8}',
                    flush=True,
                )
    found = figures(soak.held, soak.late_ms, soak.episodes, soak.odd.total())
    for reason, count in soak.odd.items():
        print(f'{count} ended by {reason}')
    print(json.dumps(found))
    grown = max(found['node_growth_mb'], found['worker_growth_mb'])
    return 0 if grown <= AT_MOST_MB and found['fd_growth'] <= 0 else 1


if __name__ == '__main__':
    sys.exit(main())

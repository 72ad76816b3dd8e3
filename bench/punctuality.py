"""
Measure how punctual setpoints are beside two cameras and a 500 Hz joint state.

Compared by turns, in a process each: a bare absolute sleeper, a node that publishes from a
re-armed rclpy timer, and the harness node with a worker; rows at 100 Hz, with SCHED_FIFO and
without. Prints a table, and the medians of the blocks as one JSON object.

  scripts/bench punctuality [--block-s 10.2] [--blocks 6]
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
import json
import os
from pathlib import Path
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any

HERE = Path(__file__).parent
PRIORITY = 20
WORKER_PATTERN = re.compile(r'serving \S+ on (ws://\S+)')
SUBJECTS = ('sleeper', 'timer', 'ours')

Blocks = dict[str, list[dict[str, Any]]]


@contextmanager
def child(*command: str) -> Iterator[Path]:
    """Run a Python command beside the measurements; yields the file of what it prints."""
    with tempfile.NamedTemporaryFile('w+', suffix='.log') as log:
        environment = {**os.environ, 'PYTHONUNBUFFERED': '1'}
        environment['PYTHONPATH'] = f'{HERE}{os.pathsep}{environment.get("PYTHONPATH", "")}'
        process = subprocess.Popen(
            [sys.executable, *command], stdout=log, stderr=subprocess.STDOUT, env=environment
        )
        try:
            yield Path(log.name)
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(10.0)


@contextmanager
def worker(rows: int) -> Iterator[str]:
    """Serve the policy with that many rows a chunk; yields its URL."""
    command = ['worker', '_watching:Watching', '--port', '0', '--set', f'rows={rows}']
    with child('-m', 'seq_harness.cli.main', *command) as log:
        until = time.monotonic() + 20.0
        while not (found := WORKER_PATTERN.search(log.read_text())):
            if time.monotonic() > until:
                raise TimeoutError(f'the worker did not start:\n{log.read_text()}')
            time.sleep(0.05)
        yield found.group(1)


def measure(name: str, seconds: float, priority: int, *more: str) -> dict[str, Any]:
    """Run one block of a subject and return its figures."""
    command = [sys.executable, str(HERE / '_subjects.py'), name, str(seconds), str(priority)]
    done = subprocess.run([*command, *more], stdout=subprocess.PIPE, check=True, timeout=90.0)
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return figures


def interleaved(options: argparse.Namespace, priority: int) -> Blocks:
    """Measure blocks of every subject by turns."""
    blocks: Blocks = {name: [] for name in SUBJECTS}
    with worker(50) as url:
        for _ in range(options.blocks):
            for name in SUBJECTS:
                more = (url, 'lead') if name == 'ours' else ()
                blocks[name].append(measure(name, options.block_s, priority, *more))
    return blocks


def median(blocks: list[dict[str, Any]], figure: str) -> float:
    return float(statistics.median(block[figure] for block in blocks))


def table(title: str, blocks: Blocks) -> None:
    """Print the medians of the blocks."""
    print(f'{title:<10}{"p50 us":>10}{"p99 us":>10}{"max us":>10}{"CPU":>8}{"deadlines":>11}')
    for name, found in blocks.items():
        cells = [f'{median(found, key):>10.1f}' for key in ('p50_us', 'p99_us', 'max_us')]
        count = sum(block['count'] for block in found)
        print(f'{name:<10}{"".join(cells)}{median(found, "cpu"):>8.3f}{count:>11}')


def absolute(blocks: Blocks) -> dict[str, float]:
    return {
        f'{name}_{figure}': round(median(found, figure), 2)
        for name, found in blocks.items()
        for figure in ('p50_us', 'p99_us', 'cpu')
    }


def main() -> None:
    """Measure, print a table, and the figures as one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--block-s', type=float, default=10.2, help='seconds a block')
    parser.add_argument('--blocks', type=int, default=6, help='blocks of each subject')
    options = parser.parse_args()
    with child(str(HERE / '_subjects.py'), 'cameras'):
        fifo = interleaved(options, PRIORITY)
        plain = interleaved(options, 0)
        with worker(2) as url:
            answers = [
                measure('ours', options.block_s, PRIORITY, url, 'drain')
                for _ in range(max(1, options.blocks // 2))
            ]
    table('SCHED_FIFO', fifo)
    table('plain', plain)
    print(f'scheduling: {fifo["ours"][0]["scheduling"]}')
    print(json.dumps(figures_of(fifo, plain, answers)))


def figures_of(fifo: Blocks, plain: Blocks, answers: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the ratios that are held to a bar, and the absolute figures."""

    def ratio(blocks: Blocks, figure: str, other: str) -> float:
        return round(median(blocks['ours'], figure) / median(blocks[other], figure), 4)

    return {
        'fifo': {
            'p99_ratio_timer': ratio(fifo, 'p99_us', 'timer'),
            'p50_ratio_sleeper': ratio(fifo, 'p50_us', 'sleeper'),
            **absolute(fifo),
        },
        'plain': {
            'p50_ratio_timer': ratio(plain, 'p50_us', 'timer'),
            'p99_ratio_timer': ratio(plain, 'p99_us', 'timer'),
            **absolute(plain),
        },
        'answer_to_setpoint_p99_ms': median(answers, 'answer_p99_ms'),
        'answer_to_setpoint_p50_ms': median(answers, 'answer_p50_ms'),
        'answers': sum(block['answers'] for block in answers),
    }


if __name__ == '__main__':
    main()

"""
Time the worker wire on loopback, and serve many robots from one worker.

One client sends observations of 200 KB and gets 1.4 KB back: over the wire, and as a plain
exchange of the same bytes between the websockets library's own client and server, by turns in one
run, so that their ratio holds on a noisy machine. Then 32 robots act at 20 Hz with observations
of 20 KB each, while the worker's memory is watched.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
import json
import os
import subprocess
import sys
import threading
import time
from typing import Any

from _workers import serving, Still, WorkerProcess
import numpy as np
from seq_harness.client.registry import policy_at
from seq_harness.contract.msgpack import pack
from seq_harness.playback.uplink import Step
from websockets.sync.client import ClientConnection, connect

LARGE_BYTES, SMALL_BYTES, ANSWER_BYTES = 200_000, 20_000, 1_400
ROUNDS, ACTS = 8, 150
"""Turns of the two, and round trips of each."""
WARM = 10
"""Round trips of a turn that are not counted."""

ROBOTS, HZ = 32, 20.0
SETTLE_S, WATCHED_S = 10.0, 60.0
SAMPLE_S = 1.0

BARE_SERVER = f"""
from websockets.sync.server import serve

def answer(socket):
    for message in socket:
        socket.send(bytes({ANSWER_BYTES}))

with serve(answer, '127.0.0.1', 0, compression=None, max_size=None) as server:
    print(server.socket.getsockname()[1], flush=True)
    server.serve_forever()
"""


def quiet(text: str) -> None:
    """Keep what is said of the worker to the benchmark."""


def observation(nbytes: int) -> dict[str, Any]:
    """Return an observation that takes about so many bytes, an image for the most part."""
    state = np.zeros(64, np.float32)
    image = np.frombuffer(os.urandom(nbytes - 600), np.uint8)
    return {'front': image.reshape(-1, 10, 10), 'state': state, 'prompt': 'pick up the block'}


@contextmanager
def bare_exchange() -> Iterator[ClientConnection]:
    """Connect the websockets library to itself, in two processes."""
    process = subprocess.Popen(
        [sys.executable, '-c', BARE_SERVER], stdout=subprocess.PIPE, text=True
    )
    try:
        if process.stdout is None:
            raise RuntimeError('the server has no output')
        port = int(process.stdout.readline())
        with connect(f'ws://127.0.0.1:{port}', compression=None, max_size=None) as socket:
            yield socket
    finally:
        process.kill()
        process.wait()


def timed_ms(call: Callable[[], object], acts: int) -> list[float]:
    """Return how long each call took, in ms, without the first few."""
    times = []
    for _ in range(WARM + acts):
        start_ns = time.perf_counter_ns()
        call()
        times.append((time.perf_counter_ns() - start_ns) / 1e6)
    return times[WARM:]


def round_trips_ms(rounds: int) -> tuple[list[float], list[float]]:
    """Return the times of the wire's round trips and of the plain ones."""
    seen = observation(LARGE_BYTES)
    message = pack(seen)
    ours: list[float] = []
    bare: list[float] = []
    with serving(Still) as worker, bare_exchange() as socket:
        policy = policy_at(worker.url, on_state=quiet)
        policy.connect()
        scope = policy.open_episode(lambda: 0)
        numbers = iter(range(10**9))

        def exchange() -> None:
            socket.send(message)
            socket.recv()

        for _ in range(rounds):
            bare += timed_ms(exchange, ACTS)
            ours += timed_ms(lambda: scope.infer(Step(next(numbers), 0, seen)), ACTS)
        policy.close()
    return ours, bare


@dataclass
class Fleet:
    """What the robots met."""

    times_ms: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)


def drive(url: str, phase_s: float, until_s: float, fleet: Fleet) -> None:
    """Act at `HZ` until a time on the monotonic clock, and tell the fleet's times."""
    seen, times, failures = observation(SMALL_BYTES), [], []
    policy = policy_at(url, on_state=quiet)
    try:
        policy.connect()
        scope = policy.open_episode(time.monotonic_ns)
        due_s = time.monotonic() + phase_s
        number = 0
        while (now_s := time.monotonic()) < until_s:
            if due_s > now_s:
                time.sleep(due_s - now_s)
            due_s += 1 / HZ
            start_s = time.perf_counter()
            scope.infer(Step(number, time.monotonic_ns(), seen))
            times.append((time.perf_counter() - start_s) * 1e3)
            number += 1
    except Exception as error:
        failures.append(repr(error))
    finally:
        policy.close()
    with fleet.lock:
        fleet.times_ms += times
        fleet.failures += failures


def watched_mb(worker: WorkerProcess, settle_s: float, watched_s: float) -> list[float]:
    """Return the worker's memory once a second, after it has settled."""
    time.sleep(settle_s)
    until_s = time.monotonic() + watched_s
    held = [worker.resident_mb()]
    while time.monotonic() < until_s:
        time.sleep(SAMPLE_S)
        held.append(worker.resident_mb())
    return held


def many_robots(settle_s: float, watched_s: float) -> tuple[Fleet, float]:
    """Return what the robots met, and by how many MB the worker grew."""
    fleet = Fleet()
    with serving(Still) as worker:
        until_s = time.monotonic() + settle_s + watched_s + 1.0
        robots = [
            threading.Thread(target=drive, args=(worker.url, i / HZ / ROBOTS, until_s, fleet))
            for i in range(ROBOTS)
        ]
        for robot in robots:
            robot.start()
        held = watched_mb(worker, settle_s, watched_s)
        for robot in robots:
            robot.join()
    return fleet, max(held) - held[0]


def main() -> None:
    """Print a table, and the figures as one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument('--seconds', type=float, default=WATCHED_S, help='robots act this long')
    parser.add_argument('--rounds', type=int, default=ROUNDS, help='turns of wire and exchange')
    options = parser.parse_args()
    ours, bare = round_trips_ms(options.rounds)
    print(f'{"200 KB out, 1.4 KB back":<30}{"p50 ms":>10}{"p99 ms":>10}')
    for name, times in (('the wire', ours), ('a bare websockets exchange', bare)):
        print(f'{name:<30}{np.median(times):>10.3f}{np.percentile(times, 99):>10.3f}')
    settle_s = min(SETTLE_S, options.seconds)
    fleet, growth_mb = many_robots(settle_s, options.seconds)
    p50_ms, p99_ms = np.percentile(fleet.times_ms, (50, 99))
    print(f'{f"{ROBOTS} robots at {HZ:g} Hz, 20 KB":<30}{p50_ms:>10.3f}{p99_ms:>10.3f}')
    for failure in fleet.failures[:5]:
        print(failure)
    figures = {
        'rtt_p50_ratio': round(float(np.median(ours) / np.median(bare)), 3),
        'rtt_p50_ms': round(float(np.median(ours)), 3),
        'bare_p50_ms': round(float(np.median(bare)), 3),
        'robots': ROBOTS,
        'acts': len(fleet.times_ms),
        'failed': len(fleet.failures),
        'act_p50_ms': round(float(p50_ms), 2),
        'act_p99_ms': round(float(p99_ms), 2),
        'growth_mb': round(growth_mb, 2),
    }
    print(json.dumps(figures))


if __name__ == '__main__':
    main()

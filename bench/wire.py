"""
Time the worker wire on loopback, and serve many robots from one worker.

One client sends observations of 200 KB and gets 1.4 KB back: over the wire, and as a plain
exchange of the same bytes between the websockets library's own client and server, by turns in one
run, so that their ratio holds on a noisy machine. A third turn is that client against the server
that the worker stands on, with each message handed to another thread and back, as an inference
must be: what the machine takes of an act before anything is packed, read or checked. Then 32
robots act at 20 Hz with observations of 20 KB each, while the worker's memory is watched.
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

THREADED_SERVER = f"""
import asyncio
import queue
import threading

from aiohttp import web

calls = queue.SimpleQueue()

def infer():
    while True:
        calls.get()()

async def answer(request):
    socket = web.WebSocketResponse(compress=False, max_msg_size=0)
    await socket.prepare(request)
    loop = asyncio.get_running_loop()
    async for message in socket:
        inferred = loop.create_future()
        calls.put(lambda: loop.call_soon_threadsafe(inferred.set_result, None))
        await inferred
        await socket.send_bytes(bytes({ANSWER_BYTES}))
    return socket

async def main():
    app = web.Application()
    app.router.add_get('/', answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, '127.0.0.1', 0)
    await site.start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()

threading.Thread(target=infer, daemon=True).start()
asyncio.run(main())
"""


def quiet(text: str) -> None:
    """Keep what is said of the worker to the benchmark."""


def observation(nbytes: int) -> dict[str, Any]:
    """Return an observation that takes about so many bytes, an image for the most part."""
    state = np.zeros(64, np.float32)
    image = np.frombuffer(os.urandom(nbytes - 600), np.uint8)
    return {'front': image.reshape(-1, 10, 10), 'state': state, 'prompt': 'pick up the block'}


@contextmanager
def exchange_with(server: str) -> Iterator[ClientConnection]:
    """Connect the websockets library's client to a server in another process."""
    process = subprocess.Popen([sys.executable, '-c', server], stdout=subprocess.PIPE, text=True)
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


@dataclass
class RoundTrips:
    """The times of round trips in ms, by what they went over."""

    wire: list[float] = field(default_factory=list)
    bare: list[float] = field(default_factory=list)
    threaded: list[float] = field(default_factory=list)


def round_trips(rounds: int) -> RoundTrips:
    """Time the wire, the plain exchange and the one through another thread, by turns."""
    seen = observation(LARGE_BYTES)
    message = pack(seen)
    times = RoundTrips()
    with (
        serving(Still) as worker,
        exchange_with(BARE_SERVER) as bare,
        exchange_with(THREADED_SERVER) as threaded,
    ):
        policy = policy_at(worker.url, on_state=quiet)
        policy.connect()
        scope = policy.open_episode(lambda: 0)
        numbers = iter(range(10**9))

        def exchange(socket: ClientConnection) -> None:
            socket.send(message)
            socket.recv()

        for _ in range(rounds):
            times.bare += timed_ms(lambda: exchange(bare), ACTS)
            times.threaded += timed_ms(lambda: exchange(threaded), ACTS)
            times.wire += timed_ms(lambda: scope.infer(Step(next(numbers), 0, seen)), ACTS)
        policy.close()
    return times


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
    load_before = os.getloadavg()[0]
    times = round_trips(options.rounds)
    print(f'{"200 KB out, 1.4 KB back":<30}{"p50 ms":>10}{"p99 ms":>10}')
    for name, taken in (
        ('the wire', times.wire),
        ('a bare websockets exchange', times.bare),
        ('one through another thread', times.threaded),
    ):
        print(f'{name:<30}{np.median(taken):>10.3f}{np.percentile(taken, 99):>10.3f}')
    wire_ms, bare_ms, threaded_ms = (
        float(np.median(taken)) for taken in (times.wire, times.bare, times.threaded)
    )
    settle_s = min(SETTLE_S, options.seconds)
    fleet, growth_mb = many_robots(settle_s, options.seconds)
    p50_ms, p99_ms = np.percentile(fleet.times_ms, (50, 99))
    print(f'{f"{ROBOTS} robots at {HZ:g} Hz, 20 KB":<30}{p50_ms:>10.3f}{p99_ms:>10.3f}')
    for failure in fleet.failures[:5]:
        print(failure)
    figures = {
        'rtt_p50_ratio': round(wire_ms / bare_ms, 3),
        'rtt_p50_ms': round(wire_ms, 3),
        'bare_p50_ms': round(bare_ms, 3),
        'threaded_p50_ms': round(threaded_ms, 3),
        'robots': ROBOTS,
        'acts': len(fleet.times_ms),
        'failed': len(fleet.failures),
        'act_p50_ms': round(float(p50_ms), 2),
        'act_p99_ms': round(float(p99_ms), 2),
        'growth_mb': round(growth_mb, 2),
        'load_before': round(load_before, 2),
        'load_after': round(os.getloadavg()[0], 2),
    }
    print(json.dumps(figures))


if __name__ == '__main__':
    main()

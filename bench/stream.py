"""
Time acts whose observations went ahead of them, and acts that carry them all.

The policy reads every observation: 24 frames of 54 KB between two acts. The link is emulated, at
25 Mbit/s and 40 ms there and back. Both are measured in one run.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
import json
import os
import time
from typing import Any
from urllib.parse import urlsplit

from _link import slow_link
from _workers import Batch, Every, serving
import numpy as np
from seq_harness.client.registry import Policy, policy_at
from seq_harness.playback.uplink import Queued, Step

FRAMES, FRAME_BYTES, HZ = 24, 54_000, 30.0
BITS_PER_S, ROUND_TRIP_S = 25e6, 0.040
ACTS = 15


def frame() -> dict[str, Any]:
    """Return an observation as large as an encoded camera frame."""
    return {'front': os.urandom(FRAME_BYTES), 'state': np.zeros(7, np.float32)}


@contextmanager
def far_policy(policy: type) -> Iterator[Policy]:
    """Connect to a policy behind the link."""
    with serving(policy) as worker:
        port = urlsplit(worker.url).port or 0
        with slow_link(port, BITS_PER_S, ROUND_TRIP_S) as near:
            client = policy_at(f'ws://127.0.0.1:{near}', on_state=lambda text: None)
            client.connect()
            try:
                yield client
            finally:
                client.close()


def streamed_ms(acts: int) -> list[float]:
    """Return how long acts take whose frames were sent as they were made."""
    times = []
    with far_policy(Every) as policy:
        scope = policy.open_episode(time.monotonic_ns)
        number = 0
        for act in range(acts + 1):
            for _ in range(FRAMES if act else 0):
                time.sleep(1 / HZ)
                if scope.observe(Step(number, time.monotonic_ns(), frame())) is Queued.FULL:
                    raise RuntimeError('the stream is full: the link is slower than the frames')
                number += 1
            start_s = time.perf_counter()
            outputs = scope.infer(Step(number, time.monotonic_ns(), frame()))
            times.append((time.perf_counter() - start_s) * 1e3)
            number += 1
            expect_read(outputs, FRAMES + 1 if act else 1)
    return times[1:]


def carried_ms(acts: int) -> list[float]:
    """Return how long acts take that carry all frames themselves."""
    times = []
    with far_policy(Batch) as policy:
        scope = policy.open_episode(time.monotonic_ns)
        for number in range(acts + 1):
            seen = {'observations': [frame() for _ in range(FRAMES + 1)]}
            start_s = time.perf_counter()
            outputs = scope.infer(Step(number, time.monotonic_ns(), seen))
            times.append((time.perf_counter() - start_s) * 1e3)
            expect_read(outputs, FRAMES + 1)
    return times[1:]


def expect_read(outputs: Any, frames: int) -> None:
    """Check that the policy read as many observations as were made."""
    if outputs['read'] != frames:
        raise RuntimeError(f'the policy read {outputs["read"]} observations of {frames}')


def main() -> None:
    """Print a table, and the figures as one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument('--acts', type=int, default=ACTS, help='acts of each kind')
    options = parser.parse_args()
    stream, carried = streamed_ms(options.acts), carried_ms(options.acts)
    print(f'{f"{FRAMES} frames of {FRAME_BYTES // 1000} KB":<32}{"p50 ms":>10}{"p99 ms":>10}')
    for name, times in (('sent ahead of the act', stream), ('all in the act', carried)):
        print(f'{name:<32}{np.median(times):>10.1f}{np.percentile(times, 99):>10.1f}')
    p50_stream, p50_all = float(np.median(stream)), float(np.median(carried))
    figures = {
        'act_p50_ms_stream': round(p50_stream, 2),
        'act_p50_ms_all_in_act': round(p50_all, 2),
        'ratio': round(p50_stream / p50_all, 4),
    }
    print(json.dumps(figures))


if __name__ == '__main__':
    main()

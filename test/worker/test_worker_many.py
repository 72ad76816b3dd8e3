"""Many clients at once, and what stays behind after many acts."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
import gc
import resource
import tracemalloc
from typing import Any

import numpy as np
from seq_harness.contract.own_io import Observations, Stream
from seq_harness.worker.running import served
from support.waiting import PATIENCE_S
from worker.worker_wire import client_of

CLIENTS = 32
ACTS = 10


class Sums:
    """Sum what every act reads, so that a frame of another episode is noticed."""

    observations = Observations({'value': Stream(every=1), 'who': Stream()})

    def infer(self, inputs: Any) -> Any:
        observations = inputs['observations']
        return {
            'sum': sum(int(o['value'][0]) for o in observations),
            'who': observations[-1]['who'],
        }


def drive(url: str, who: int) -> None:
    with client_of(url) as client, client_of(url) as stream:
        client.connect()
        episode = f'episode {who}'
        for act in range(ACTS):
            first = act * 3
            frames = {
                n: {'value': np.array([who * 1000 + n]), 'who': who} for n in (first, first + 1)
            }
            own = {'value': np.array([who * 1000 + first + 2]), 'who': who}
            asked = client.send('act', {'inputs': own, 'episode_id': episode, 'seq': first + 2})
            stream.observe(episode, frames)
            outputs = client.receive(asked).outputs
            assert outputs == {'sum': 3 * who * 1000 + 3 * first + 3, 'who': who}


def test_32_clients_are_each_answered_with_their_own_observations() -> None:
    with served(Sums()) as url, ThreadPoolExecutor(CLIENTS) as pool:
        for done in [pool.submit(drive, url, who) for who in range(CLIENTS)]:
            done.result(timeout=PATIENCE_S * 3)


class Tail:
    observations = Observations({'frame': Stream(at=[-3, 0])})

    def infer(self, inputs: Any) -> Any:
        return {'actions': np.zeros((16, 6), np.float32)}


def test_memory_does_not_grow_with_the_acts_of_an_episode() -> None:
    frame = bytes(100_000)

    def run(client: Any, first: int, acts: int) -> None:
        for n in range(first, first + acts):
            client.observe('e', {2 * n: {'frame': frame}})
            body = {'episode_id': 'e', 'seq': 2 * n + 1, 'request_id': f'r-{n}'}
            assert client.act({'frame': frame}, **body).status == 200

    with served(Tail()) as url, client_of(url) as client:
        client.connect()
        run(client, 0, 50)
        tracemalloc.start()
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        run(client, 50, 300)
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
    assert grown < 600_000, grown


def test_episodes_that_end_leave_nothing() -> None:
    frame = bytes(1_000_000)
    with served(Tail()) as url, client_of(url) as client:
        client.connect()
        for n in range(20):
            client.act({'frame': frame}, episode_id=f'e{n}', seq=0)
            client.ask('episode_end', {'episode_id': f'e{n}'})
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for n in range(200):
            client.act({'frame': frame}, episode_id=f'e{n}', seq=0)
            client.ask('episode_end', {'episode_id': f'e{n}'})
        grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak
    assert grown_kib < 20_000, grown_kib

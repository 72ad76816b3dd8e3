"""
Answer acts with malformed messages, over every wire, and look at what the robot's side tells.

A server of each wire answers well, then with bytes of that answer changed: flipped, cut, doubled,
or replaced by heads of other values. Each act must end by outputs or by an error of the client's
own kinds, in time.

  scripts/bench answers [--each 1000] [--only WIRE]
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
import json
import random
import sys
import time
from typing import Any

from client.scripted_worker import ScriptedWorker
import numpy as np
from seq_harness.client.registry import Policy, policy_at
from seq_harness.contract import wire
from seq_harness.contract.msgpack import pack
from seq_harness.playback.uplink import (
    ActAbandoned,
    PolicyError,
    PolicyScope,
    StateLost,
    Step,
    WorkerLost,
)
from servers.positronic_scripted import command, JOINTS, Meeting, meetings, META, ready
from servers.scripted import packed, scripted
from websockets.sync.server import ServerConnection

NAMED = (ActAbandoned, PolicyError, StateLost, WorkerLost)
OPTIONS: dict[str, Any] = {
    'connect_timeout_s': 20.0,
    'act_timeout_s': 0.3,
    'max_request_age_s': 0.3,
    'reconnect_s': 1.0,
}
WITHIN_S = 3.0
"""By when an act must have ended: its own time, the reconnects, and the load of the machine."""

HEADS = (
    b'\x80',
    b'\xc1',
    b'\xc7\xff\x01',
    b'\xdd\xff\xff\xff\xff',
    b'\xdf\xff\xff\xff\xff',
    b'\xc0',
)

ROBOARENA = {
    'image_resolution': [48, 64],
    'needs_wrist_camera': False,
    'n_external_cameras': 1,
    'needs_stereo_camera': False,
    'needs_session_id': True,
    'action_space': 'joint_position',
}
SEEN = {
    'exterior_1': np.zeros((48, 64, 3), np.uint8),
    'joints': np.zeros(7, np.float32),
    'gripper': np.zeros(1, np.float32),
    'cartesian': np.zeros(6, np.float32),
    'prompt': 'stack',
}

Mutate = Callable[[bytes], bytes]


def _unsaid(text: str) -> None:
    """Leave out what the client says of its connection."""


class Mutator:
    """Changes messages once it is armed; leaves them as they are before."""

    def __init__(self, seed: int) -> None:
        """Draw from a seed, so that a run can be had again."""
        self._rng = random.Random(seed)
        self.armed = False

    def __call__(self, body: bytes) -> bytes:
        """Return the message, changed in one place or a few."""
        if not self.armed:
            return body
        rng, out = self._rng, bytearray(body)
        for _ in range(rng.choice((1, 1, 2, 4))):
            at, kind = rng.randrange(len(out) + 1), rng.randrange(5)
            if kind == 0:
                out[at : at + 1] = bytes([rng.randrange(256)])
            elif kind == 1:
                del out[at : at + rng.randint(1, 8)]
            elif kind == 2:
                out[at:at] = rng.choice(HEADS)
            elif kind == 3:
                out[at:at] = out[max(0, at - 16) : at]
            elif rng.random() < 0.3:
                del out[at:]
        return bytes(out)


class MutatedWorker(ScriptedWorker):
    """A worker whose answers to acts are changed."""

    mutate: Mutate

    def _send(self, ws: ServerConnection, number: int, answer: tuple[int, Any]) -> None:
        status, body = answer
        told = {**body, wire.KEY_INSTANCE: self.instance}
        message = {wire.KEY_ID: number, wire.KEY_STATUS: status, wire.KEY_BODY: told}
        data = pack(message)
        ws.send(self.mutate(data) if wire.KEY_OUTPUTS in body else data)


@contextmanager
def _ours(mutate: Mutate) -> Iterator[Policy]:
    worker = MutatedWorker()
    worker.mutate = mutate
    try:
        yield policy_at(worker.url, on_state=_unsaid, **OPTIONS)
    finally:
        worker.stop()


@contextmanager
def _openpi(mutate: Mutate) -> Iterator[Policy]:
    answer = packed({'actions': np.zeros((4, 6), np.float32)})
    with scripted(lambda connection, message: mutate(answer)) as server:
        url = f'openpi+ws://127.0.0.1:{server.port}'
        yield policy_at(url, on_state=_unsaid, **OPTIONS, server={'keeps_state': False})


@contextmanager
def _roboarena(mutate: Mutate) -> Iterator[Policy]:
    answer = packed(np.zeros((4, 8), np.float32))

    def answered(connection: ServerConnection, message: dict[str, Any]) -> Any:
        return mutate(answer) if message.get('endpoint') == 'infer' else 'reset successful'

    with scripted(answered, ROBOARENA) as server:
        url = f'roboarena+ws://127.0.0.1:{server.port}'
        yield policy_at(url, on_state=_unsaid, **OPTIONS, server={'keeps_state': False})


@contextmanager
def _positronic(mutate: Mutate) -> Iterator[Policy]:
    answer = packed({'result': [command(0), command(1)], 'timing': {'served_ms': 1.5}})

    def speak(connection: ServerConnection) -> None:
        connection.send(packed(ready(META)))
        while True:
            asked = meeting.server.take(connection)
            ends = isinstance(asked, dict) and asked.get('end_session')
            goodbye = packed({'session_id': 'abc', 'end_session': True})
            connection.send(goodbye if ends else mutate(answer))

    with meetings() as made:
        meeting: Meeting = made
        yield meeting.meet(speak, **OPTIONS)


WIRES: dict[str, tuple[Callable[[Mutate], Any], dict[str, Any]]] = {
    'ours, websocket': (_ours, {'state': JOINTS}),
    'openpi': (_openpi, {'state': JOINTS, 'prompt': 'reach'}),
    'roboarena': (_roboarena, SEEN),
    'positronic': (_positronic, {'state': JOINTS}),
}


def act(scope: PolicyScope, number: int, seen: dict[str, Any]) -> str:
    """Ask once; return how it ended."""
    began = time.monotonic()
    try:
        scope.infer(Step(number, time.monotonic_ns(), seen))
        ended = 'answered'
    except NAMED as error:
        ended = type(error).__name__
    except Exception as error:
        ended = f'UNNAMED {type(error).__name__}: {error}'[:160]
    return ended if time.monotonic() - began < WITHIN_S else f'UNNAMED late: {ended}'


def tried(name: str, each: int) -> Counter[str]:
    """Return how acts over a wire ended."""
    serve, seen = WIRES[name]
    mutator, ends = Mutator(len(name)), Counter[str]()
    with serve(mutator) as policy:
        policy.connect()
        scope, number = policy.open_episode(time.monotonic_ns), 0
        for _ in range(each):
            mutator.armed = True
            ended = act(scope, number, seen)
            ends[ended] += 1
            number += 1
            if ended in ('StateLost', 'WorkerLost') or ended.startswith('UNNAMED'):
                mutator.armed = False
                scope.close()
                scope, number = policy.open_episode(time.monotonic_ns), 0
        scope.close()
        policy.close()
    return ends


def main() -> int:
    """Print a table, and the figures as one JSON object; 1 where an end has no name."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument('--each', type=int, default=1000, help='messages over each wire')
    parser.add_argument('--only', default='', metavar='WIRE', help='wires whose name holds it')
    options = parser.parse_args()
    figures: dict[str, Any] = {}
    unnamed = 0
    for name in WIRES:
        if options.only in name:
            ends = tried(name, options.each)
            figures[name] = dict(ends)
            unnamed += sum(count for end, count in ends.items() if end.startswith('UNNAMED'))
            print(f'{name:<18}{ends.total():>8}  {dict(ends.most_common())}', flush=True)
    print(json.dumps({'wires': figures, 'unnamed': unnamed}))
    return 1 if unnamed else 0


if __name__ == '__main__':
    sys.exit(main())

"""Every wire, with a server that takes acts and never answers one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, ExitStack
from dataclasses import dataclass
import threading
from typing import Any

from client.scripted_http import ScriptedHttp
from client.scripted_worker import ScriptedWorker, Silence
import numpy as np
from seq_harness.client.embedded import EmbeddedPolicy
from seq_harness.client.registry import policy_at
from seq_harness.contract import Actions, Observations, Stream, wire
from servers.positronic_scripted import meetings, META, ready
from servers.scripted import packed, scripted
from servers.scripted import Silence as NoAnswer
from support.waiting import PATIENCE_S
from websockets.sync.server import ServerConnection

STREAMED = {'observations': {'streams': {'image': {'at': [-2, 0]}, 'state': {}}}}
"""A declaration under which observations travel beside the acts, and are kept."""

MANY = 1000

Seen = dict[str, Any]


@dataclass(frozen=True)
class Unanswered:
    """A policy whose server answers no act."""

    policy: Any
    await_act: Callable[[], object]
    """Return once a further act has arrived."""
    observation: Callable[[], Seen]
    """Make an observation of arrays that nobody else holds."""
    let_go: Callable[[], object] = lambda: None
    """Let a policy that cannot be interrupted end its act."""


Meet = Callable[..., AbstractContextManager[Unanswered]]


def seen() -> Seen:
    """Return what most of these policies read."""
    return {'image': np.zeros((48, 64, 3), np.uint8), 'state': np.zeros(6, np.float32)}


@contextmanager
def websocket(**options: Any) -> Iterator[Unanswered]:
    """Meet a worker over the websocket."""
    worker = ScriptedWorker(STREAMED)
    worker.script(wire.ACT, *(Silence() for _ in range(MANY)))
    with ExitStack() as stack:
        stack.callback(worker.stop)
        policy = policy_at(worker.url, **options)
        stack.callback(policy.close)
        yield Unanswered(policy, lambda: worker.next(wire.ACT), seen)


@contextmanager
def http(**options: Any) -> Iterator[Unanswered]:
    """Meet a worker over HTTP."""
    worker = ScriptedHttp(STREAMED)
    worker.script(wire.PATH_ACT, *(Silence() for _ in range(MANY)))
    with ExitStack() as stack:
        stack.callback(worker.stop)
        policy = policy_at(worker.url, **options)
        stack.callback(policy.close)
        yield Unanswered(policy, lambda: worker.next(wire.PATH_ACT), seen)


@contextmanager
def openpi(**options: Any) -> Iterator[Unanswered]:
    """Meet a server of openpi's wire."""
    arrived = threading.Semaphore(0)

    def take(connection: ServerConnection, message: Seen) -> NoAnswer:
        arrived.release()
        return NoAnswer()

    with scripted(take) as server, ExitStack() as stack:
        policy = policy_at(f'openpi+ws://127.0.0.1:{server.port}', **options)
        stack.callback(policy.close)
        yield Unanswered(policy, lambda: arrived.acquire(timeout=PATIENCE_S), seen)


@contextmanager
def roboarena(**options: Any) -> Iterator[Unanswered]:
    """Meet a server of roboarena's wire."""
    arrived = threading.Semaphore(0)

    def take(connection: ServerConnection, message: Seen) -> str | NoAnswer:
        if message['endpoint'] == 'reset':
            return 'reset successful'
        arrived.release()
        return NoAnswer()

    def observation() -> Seen:
        frames = {name: np.zeros((48, 64, 3), np.uint8) for name in ('wrist', 'exterior_1')}
        sizes = {'joints': 7, 'gripper': 1, 'cartesian': 6}
        state = {name: np.zeros(size, np.float32) for name, size in sizes.items()}
        return {**frames, **state, 'prompt': 'stack'}

    greeting = {'needs_session_id': True, 'image_resolution': [24, 32]}
    with scripted(take, greeting) as server, ExitStack() as stack:
        policy = policy_at(f'roboarena+ws://127.0.0.1:{server.port}', **options)
        stack.callback(policy.close)
        yield Unanswered(policy, lambda: arrived.acquire(timeout=PATIENCE_S), observation)


@contextmanager
def positronic(**options: Any) -> Iterator[Unanswered]:
    """Meet a positronic server."""
    arrived = threading.Semaphore(0)

    def speak(connection: ServerConnection) -> None:
        connection.send(packed(ready(META)))
        while True:
            message = connection.recv(decode=False)
            if b'end_session' in message:
                connection.send(packed({'session_id': 'abc', 'end_session': True}))
            else:
                arrived.release()

    with meetings() as met:
        policy = met.meet(speak, **options)
        yield Unanswered(policy, lambda: arrived.acquire(timeout=PATIENCE_S), seen)


class Slow:
    """A policy that thinks until it is let go."""

    observations = Observations({'image': Stream(at=[-2, 0]), 'state': Stream()})
    actions = Actions(key='actions', hz=10.0)

    def __init__(self) -> None:
        self.arrived = threading.Semaphore(0)
        self.go = threading.Semaphore(0)

    def infer(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Wait, and answer rows."""
        self.arrived.release()
        self.go.acquire(timeout=PATIENCE_S)
        return {'actions': np.zeros((4, 6))}


@contextmanager
def embedded(**options: Any) -> Iterator[Unanswered]:
    """Meet a policy in this process, which nobody can interrupt."""
    slow = Slow()
    with ExitStack() as stack:
        policy = EmbeddedPolicy(slow, **options)
        stack.callback(policy.close)
        yield Unanswered(
            policy, lambda: slow.arrived.acquire(timeout=PATIENCE_S), seen, slow.go.release
        )


WIRES: dict[str, Meet] = {
    'websocket': websocket,
    'http': http,
    'openpi': openpi,
    'roboarena': roboarena,
    'positronic': positronic,
    'embedded': embedded,
}

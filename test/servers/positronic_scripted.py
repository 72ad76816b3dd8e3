"""Positronic servers that speak as a test tells them, and the robots that meet them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, ExitStack, suppress
import queue
import ssl
import threading
import time
from typing import Any

import msgpack  # type: ignore[import-untyped]
import numpy as np
from seq_harness.client.positronic import PositronicPolicy
from seq_harness.playback.uplink import Step
from servers.scripted import packed
from support.waiting import PATIENCE_S
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.sync.server import serve, ServerConnection

SCHEDULE = {'seq': [{'name': 'stop_on_fault'}, {'name': 'chunked_schedule'}]}
META = {'action_fps': 20.0, 'local_stack': SCHEDULE, 'type': 'scripted'}
JOINTS = np.arange(6, dtype=np.float32)
IMAGE = np.full((48, 64, 3), 100, np.uint8)

Speak = Callable[[ServerConnection], None]


class Server:
    """Speaks as a test tells it; keeps what came, unpacked."""

    def __init__(self, speak: Speak, statuses: list[int]) -> None:
        self.came: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.requests: list[Request] = []
        self._speak = speak
        self._statuses = statuses

    def admit(self, connection: ServerConnection, request: Request) -> Response | None:
        self.requests.append(request)
        return connection.respond(self._statuses.pop(0), 'no\n') if self._statuses else None

    def converse(self, connection: ServerConnection) -> None:
        with suppress(ConnectionClosed):
            self._speak(connection)

    def take(self, connection: ServerConnection) -> Any:
        """Return the next message, and keep it for the test."""
        message = msgpack.unpackb(connection.recv(PATIENCE_S), strict_map_key=False)
        self.came.put(message)
        return message

    def next(self) -> Any:
        """Return a message that came, in its turn."""
        return self.came.get(timeout=PATIENCE_S)


class Meeting:
    """Scripted servers, and the robots that meet them; all end with the test."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self.told: list[str] = []
        self.server: Server

    def meet(
        self,
        speak: Speak,
        statuses: tuple[int, ...] = (),
        secure: ssl.SSLContext | None = None,
        **options: Any,
    ) -> Any:
        """Return a policy of a server that speaks so, in TLS where `secure` is its side of it."""
        self.server = Server(speak, list(statuses))
        listening = self._stack.enter_context(
            serve(
                self.server.converse,
                '127.0.0.1',
                0,
                process_request=self.server.admit,
                ssl=secure,
            )
        )
        serving = threading.Thread(target=listening.serve_forever)
        serving.start()
        self._stack.callback(serving.join, PATIENCE_S)
        self._stack.callback(listening.shutdown)
        scheme, port = 'ws' if secure is None else 'wss', listening.socket.getsockname()[1]
        policy = PositronicPolicy(
            f'positronic+{scheme}://127.0.0.1:{port}',
            on_state=self.told.append,
            **{'connect_timeout_s': PATIENCE_S, 'reconnect_s': 2.0, **options},
        )
        self._stack.callback(policy.close)
        return policy

    def serves(
        self, *results: Any, meta: Mapping[str, Any] = META, protocol: int = 2, **options: Any
    ) -> Any:
        """Return a policy whose server answers so, and then keeps silent."""

        def speak(connection: ServerConnection) -> None:
            connection.send(packed(ready(meta, protocol)))
            for result in results:
                self.server.take(connection)
                connection.send(packed({'result': result, 'timing': {'served_ms': 1.5}}))
            if self.server.take(connection).get('end_session'):
                connection.send(packed({'session_id': 'abc', 'end_session': True}))
            connection.recv(PATIENCE_S)

        return self.meet(speak, **options)


@contextmanager
def meetings() -> Iterator[Meeting]:
    """Let servers and robots meet until the block ends."""
    with ExitStack() as stack:
        yield Meeting(stack)


def ready(meta: Mapping[str, Any], protocol: int = 2) -> dict[str, Any]:
    said = {'status': 'ready', 'meta': dict(meta)}
    return said if protocol == 1 else {**said, 'protocol_version': protocol, 'session_id': 'abc'}


def step(**more: Any) -> Step:
    return Step(0, time.monotonic_ns(), {'state': JOINTS, **more})


def asked(policy: Any, **more: Any) -> Any:
    policy.connect()
    return policy.open_episode(time.monotonic_ns).infer(step(**more))


def command(number: int, **fields: Any) -> dict[str, Any]:
    told = {b'__cmd__': {'type': 'joint_pos', 'positions': JOINTS, **fields}}
    return {'robot_command': told, 'target_grip': 0.5, 'timestamp': number / 20}

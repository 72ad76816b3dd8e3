"""A server that does on a real socket what a test tells it; it packs messages by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
import queue
import threading
from typing import Any

import msgpack  # type: ignore[import-untyped]
import numpy as np
from support.waiting import PATIENCE_S
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.sync.server import serve, ServerConnection

Handler = Callable[[ServerConnection, dict[str, Any]], Any]
"""Called with each message; what it returns is sent, a text or what is packed."""


class Silence:
    """What a handler returns that has answered by itself, or never will."""


class Scripted:
    """What a test looks at: the port, what each handshake said, and the messages."""

    def __init__(self, greeting: Any, handler: Handler, statuses: Sequence[int]) -> None:
        self.greeting = greeting
        self.handler = handler
        self.statuses = list(statuses)
        """What the next handshakes are refused with."""
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.connections: queue.SimpleQueue[ServerConnection] = queue.SimpleQueue()
        self.messages: list[dict[str, Any]] = []
        self.port = 0

    def refuse(self, connection: ServerConnection, request: Request) -> Response | None:
        self.paths.append(request.path)
        self.headers.append({name.lower(): value for name, value in request.headers.raw_items()})
        return connection.respond(self.statuses.pop(0), 'no\n') if self.statuses else None

    def converse(self, connection: ServerConnection) -> None:
        self.connections.put(connection)
        greeting = self.greeting
        if isinstance(greeting, int):
            connection.close(greeting, 'not here')
            return
        connection.send(greeting if isinstance(greeting, (bytes, str)) else packed(greeting))
        try:
            for came in connection:
                message = msgpack.unpackb(came, object_hook=_array)
                self.messages.append(message)
                answer = self.handler(connection, message)
                if not isinstance(answer, Silence):
                    raw = isinstance(answer, (bytes, str))
                    connection.send(answer if raw else packed(answer))
        except ConnectionClosed:
            pass


@contextmanager
def scripted(
    handler: Handler, greeting: Any = (), *, statuses: Sequence[int] = (), **options: Any
) -> Iterator[Scripted]:
    """
    Serve until the block ends; `options` are those of websockets.

    A `greeting` that is a number is the code of a close in its place.
    """
    server = Scripted(dict(greeting) if not isinstance(greeting, (bytes, str, int)) else greeting,
                      handler, statuses)  # fmt: skip
    with serve(
        server.converse,
        '127.0.0.1',
        0,
        compression=None,
        max_size=None,
        process_request=server.refuse,
        **options,
    ) as listening:
        server.port = listening.socket.getsockname()[1]
        serving = threading.Thread(target=listening.serve_forever)
        serving.start()
        try:
            yield server
        finally:
            listening.shutdown()
            while not server.connections.empty():
                server.connections.get().close()
            serving.join(PATIENCE_S)


def packed(value: Any) -> bytes:
    """Pack with arrays in openpi's envelopes."""
    data: bytes = msgpack.packb(value, default=_envelope)
    return data


def _envelope(value: Any) -> Any:
    return {
        b'__ndarray__': True,
        b'data': value.tobytes(),
        b'dtype': value.dtype.str,
        b'shape': value.shape,
    }


def _array(fields: dict[Any, Any]) -> Any:
    if b'__ndarray__' not in fields:
        return fields
    return np.ndarray(fields[b'shape'], fields[b'dtype'], fields[b'data'])

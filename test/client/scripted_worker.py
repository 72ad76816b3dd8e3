"""A worker on a real socket that answers as a test says."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
import queue
import socket
import threading
from typing import Any

from seq_harness.contract import wire
from seq_harness.contract.errors import ErrorBody, ErrorCode
from seq_harness.contract.msgpack import pack, unpack
from support.ports import free_port
from support.waiting import PATIENCE_S
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.sync.server import serve, Server, ServerConnection
from websockets.typing import Subprotocol

Body = Mapping[str, Any]


@dataclass(frozen=True)
class Asked:
    """One request as it came."""

    method: str
    body: dict[str, Any]
    connection: int


class Drop:
    """End the connection in place of an answer."""


class Silence:
    """Give no answer."""


@dataclass(frozen=True)
class Held:
    """Answer once `go` is set."""

    go: threading.Event
    answer: tuple[int, Body] | None = None


@dataclass(frozen=True)
class Stale:
    """Send an answer to a request that nobody made, then the answer."""

    answer: tuple[int, Body]


Answer = tuple[int, Body] | Drop | Silence | Held | Stale


def error(code: ErrorCode, detail: str = 'no', **fields: Any) -> tuple[int, Body]:
    """Make an answer that is no success."""
    body = ErrorBody(detail=detail, code=code, **fields)
    return body.status, body.model_dump(mode='json', exclude_none=True)


class ScriptedWorker:
    """
    Serve the websocket binding; what is not scripted is answered plainly.

    Every request lands in `asked`, in the order of arrival.
    """

    def __init__(
        self,
        declaration: Body | None = None,
        *,
        instance: str = 'worker-a',
        token: str | None = None,
        subprotocol: bool = True,
        refuse_with: int | None = None,
    ) -> None:
        self.declaration = {'formats': [wire.FORMAT_ACT_ONCE], **(declaration or {})}
        self.instance = instance
        self.asked: queue.Queue[Asked] = queue.Queue()
        self.connections = 0
        self.refuse_with = refuse_with
        self._token = token
        self._subprotocols = [Subprotocol(wire.WS_SUBPROTOCOL)] if subprotocol else None
        self._script: dict[str, deque[Answer]] = {}
        self._open: set[ServerConnection] = set()
        self.port = free_port()
        self._server: Server | None = None
        self.start()

    @property
    def url(self) -> str:
        """Return the address to give to a client."""
        return f'ws://127.0.0.1:{self.port}'

    def start(self) -> None:
        """Listen, always on the same port."""
        self._server = serve(
            self._serve,
            '127.0.0.1',
            self.port,
            subprotocols=self._subprotocols,
            process_request=self._guard,
            compression=None,
            max_size=None,
            ping_interval=None,
        )
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        """Go away as a killed process does."""
        self.drop_all()
        if self._server is not None:
            self._server.shutdown()
            self._server = None
        self.drop_all()

    def drop_all(self) -> None:
        """End every connection without a goodbye."""
        for ws in list(self._open):
            with suppress(OSError):
                ws.socket.shutdown(socket.SHUT_RDWR)

    def script(self, method: str, *answers: Answer) -> None:
        """Give these answers to the next requests of a method."""
        self._script.setdefault(method, deque()).extend(answers)

    def next(self, method: str) -> Asked:
        """Return the next request of a method; those of others are passed over."""
        while True:
            asked = self.asked.get(timeout=PATIENCE_S)
            if asked.method == method:
                return asked

    def pending(self, method: str) -> list[Asked]:
        """Return the requests of a method that have come and were not looked at."""
        found = []
        with suppress(queue.Empty):
            while True:
                asked = self.asked.get_nowait()
                if asked.method == method:
                    found.append(asked)
        return found

    def _guard(self, ws: ServerConnection, request: Request) -> Response | None:
        if self.refuse_with is not None:
            return ws.respond(self.refuse_with, 'refused')
        shown = request.headers.get(wire.HEADER_AUTHORIZATION)
        if self._token is not None and shown != wire.BEARER + self._token:
            return ws.respond(401, 'no')
        return None

    def _serve(self, ws: ServerConnection) -> None:
        self.connections += 1
        number = self.connections
        self._open.add(ws)
        with suppress(ConnectionClosed):
            for message in ws:
                self._take(ws, number, message)
        self._open.discard(ws)

    def _take(self, ws: ServerConnection, connection: int, message: str | bytes) -> None:
        if isinstance(message, str):
            raise TypeError('a request was text')
        request = unpack(message)
        method = request[wire.KEY_METHOD]
        self.asked.put(Asked(method, request[wire.KEY_BODY], connection))
        scripted = self._script.get(method)
        answer = scripted.popleft() if scripted else self._plain(method, request[wire.KEY_BODY])
        self._give(ws, request[wire.KEY_ID], answer, lambda: self._plain(method, request['body']))

    def _give(
        self,
        ws: ServerConnection,
        number: int,
        answer: Answer,
        plain: Callable[[], tuple[int, Body]],
    ) -> None:
        if isinstance(answer, Drop):
            ws.socket.shutdown(socket.SHUT_RDWR)
        elif isinstance(answer, Held):
            answer.go.wait(PATIENCE_S)
            self._send(ws, number, answer.answer or plain())
        elif isinstance(answer, Stale):
            self._send(ws, number + 1000, (200, {'outputs': 'of another act'}))
            self._send(ws, number, answer.answer)
        elif not isinstance(answer, Silence):
            self._send(ws, number, answer)

    def _send(self, ws: ServerConnection, number: int, answer: tuple[int, Body]) -> None:
        status, body = answer
        told = {**body, wire.KEY_INSTANCE: body.get(wire.KEY_INSTANCE, self.instance)}
        ws.send(pack({wire.KEY_ID: number, wire.KEY_STATUS: status, wire.KEY_BODY: told}))

    def _plain(self, method: str, body: Body) -> tuple[int, Body]:
        if method == wire.CONNECT:
            return 200, self.declaration
        if method == wire.ACT:
            return 200, {wire.KEY_OUTPUTS: {'seq': body[wire.KEY_SEQ]}}
        if method == wire.OBSERVE:
            return 200, {wire.KEY_THROUGH: -1}
        return 200, {}

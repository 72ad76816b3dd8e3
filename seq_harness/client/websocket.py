"""One websocket to a worker: a request goes out, and its own answer comes back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, ExitStack, suppress
from dataclasses import dataclass
import logging
import socket
import ssl
import struct
import threading
import time
from typing import Any

from seq_harness.client.cancel import Cancel
from seq_harness.client.endpoint import Endpoint
from seq_harness.client.packing import map_of
from seq_harness.contract import wire
from seq_harness.contract.msgpack import MsgpackError, pack, unpack
from websockets.exceptions import (
    ConnectionClosed,
    InvalidHandshake,
    InvalidStatus,
    NegotiationError,
    WebSocketException,
)
from websockets.protocol import State
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol

CLOSE_S = 1.0
"""How long a peer is given to answer a close."""

STALL_S = 5.0
"""How long a send may make no progress at all before the connection counts as lost."""

KEEPALIVE = {
    'TCP_USER_TIMEOUT': int(STALL_S * 1e3),
    'TCP_KEEPIDLE': 2,
    'TCP_KEEPINTVL': 1,
    'TCP_KEEPCNT': 3,
}
"""A host that is gone is found out 5 s after its last sign of life."""

wire_log = logging.getLogger('seq_harness.client.websocket')
# At DEBUG the library logs the headers of the handshake, and with them the token.
wire_log.setLevel(logging.WARNING)


class Unreachable(Exception):
    """No connection was made, and trying again may help."""


class HandshakeRefused(Exception):
    """The peer will not speak to us, and trying again will not help; says why."""


class ConnectionLost(Exception):
    """The connection ended before the answer; `sent` tells whether the request was out."""

    def __init__(self, reason: str, sent: bool) -> None:
        super().__init__(reason)
        self.sent = sent


class AnswerTimedOut(Exception):
    """No answer came in time; the connection is closed, so that it cannot come late."""


@dataclass(frozen=True)
class Reply:
    """What a worker answered."""

    status: int
    body: Mapping[str, Any]

    @property
    def ok(self) -> bool:
        """Tell whether it is a success."""
        return 200 <= self.status < 300

    @property
    def instance(self) -> str | None:
        """Return the worker process that answered, where it says so."""
        said = self.body.get(wire.KEY_INSTANCE)
        return said if isinstance(said, str) else None


class Connection:
    """
    An open websocket, used by one thread at a time.

    `abort` alone may be called from any thread.
    """

    def __init__(self, stack: ExitStack, socket_: ClientConnection) -> None:
        self._stack = stack
        self._ws = socket_
        self._id = 0
        self.instance = ''
        """The worker process it leads to, once that is known."""

    @property
    def is_open(self) -> bool:
        """Tell whether the connection was still open when it was last heard of."""
        return self._ws.protocol.state is State.OPEN

    def call(self, method: str, body: bytes, within_s: float, cancel: Cancel) -> Reply:
        """
        Send a request with a packed body, and wait for its answer.

        Raises
        ------
        ConnectionLost
            The connection ended first, or `cancel` was set.
        AnswerTimedOut
            No answer came within `within_s`, in seconds.

        """
        self._id += 1
        deadline = time.monotonic() + within_s
        with cancel.calling(self.abort):
            self._send(_request(self._id, method, body))
            while True:
                number, reply = self._receive(deadline, within_s)
                if number == self._id:
                    return reply

    def abort(self) -> None:
        """End the connection at once; whoever waits on it is told."""
        with suppress(OSError):
            self._ws.socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Say goodbye and end the connection, within `CLOSE_S`."""
        with suppress(WebSocketException, OSError):
            self._stack.close()

    def _send(self, message: bytes) -> None:
        try:
            self._ws.send(message)
        except (ConnectionClosed, OSError) as error:
            raise ConnectionLost(_told(error), sent=False) from error

    def _receive(self, deadline: float, within_s: float) -> tuple[int, Reply]:
        try:
            message = self._ws.recv(timeout=max(0.0, deadline - time.monotonic()))
            return _read(message)
        except TimeoutError:
            self.abort()
            raise AnswerTimedOut(f'no answer came within {within_s:g} s') from None
        except (ConnectionClosed, OSError) as error:
            raise ConnectionLost(_told(error), sent=True) from error
        except MsgpackError as error:
            self.abort()
            raise ConnectionLost(f'an answer could not be read: {error}', sent=True) from error


def open_connection(endpoint: Endpoint, within_s: float, cancel: Cancel) -> Connection:
    """
    Connect to a worker within `within_s` seconds, or until `cancel` is set.

    Raises
    ------
    Unreachable
        Nobody answered, or `cancel` was set.
    HandshakeRefused
        The peer refused the token, or speaks no such protocol.

    """
    # Looking up a name and connecting cannot be interrupted, so a thread does it.
    opening = _Opening(endpoint, within_s)
    with cancel.calling(opening.give_up):
        return opening.result()


class _Opening:
    """A connection that is being made on a thread of its own."""

    def __init__(self, endpoint: Endpoint, within_s: float) -> None:
        self._endpoint = endpoint
        self._within_s = within_s
        self._ready = threading.Event()
        self._lock = threading.Lock()  # held for a few assignments
        self._given_up = False  # under _lock
        self._connection: Connection | None = None  # under _lock
        self._error: Exception = Unreachable('connecting was given up')  # under _lock
        threading.Thread(target=self._run, name='connect', daemon=True).start()

    def give_up(self) -> None:
        with self._lock:
            self._given_up = True
            connection = self._connection
        self._ready.set()
        if connection is not None:
            connection.abort()

    def result(self) -> Connection:
        if not self._ready.wait(self._within_s):
            self.give_up()
            raise Unreachable(f'{self._endpoint} did not answer within {self._within_s:.1f} s')
        with self._lock:
            if self._connection is None or self._given_up:
                raise self._error
            return self._connection

    def _run(self) -> None:
        connection: Connection | None = None
        error: Exception | None = None
        try:
            with _explained(self._endpoint, self._within_s):
                connection = _connect(self._endpoint, self._within_s)
        except (Unreachable, HandshakeRefused) as caught:
            error = caught
        except Exception as caught:
            wire_log.exception('connecting to %s failed', self._endpoint)
            error = HandshakeRefused(f'connecting to {self._endpoint} failed: {caught}')
        with self._lock:
            self._connection = connection
            self._error = error or self._error
            late = self._given_up
        self._ready.set()
        if late and connection is not None:
            connection.close()


def _connect(endpoint: Endpoint, within_s: float) -> Connection:
    headers = {}
    if endpoint.token is not None:
        headers[wire.HEADER_AUTHORIZATION] = wire.BEARER + endpoint.token
    stack = ExitStack()
    ws = stack.enter_context(
        connect(
            endpoint.url,
            subprotocols=[Subprotocol(wire.WS_SUBPROTOCOL)],
            additional_headers=headers,
            ssl=endpoint.tls,
            compression=None,
            max_size=endpoint.max_message_bytes,
            open_timeout=within_s,
            ping_interval=None,
            close_timeout=CLOSE_S,
            proxy=None if endpoint.direct else True,
            logger=wire_log,
        )
    )
    connection = Connection(stack, ws)
    if ws.subprotocol is None:
        connection.close()
        raise NegotiationError(f'the peer chose no {wire.WS_SUBPROTOCOL}')
    _find_dead_peers(ws.socket)
    return connection


def _find_dead_peers(sock: socket.socket) -> None:
    """Let the system end a connection whose peer is gone; the library would wait for ever."""
    stall = struct.pack('ll', int(STALL_S), int(STALL_S % 1 * 1e6))
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, stall)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEPALIVE.items():
        option = getattr(socket, name, None)  # Linux has them all
        if option is not None:
            sock.setsockopt(socket.IPPROTO_TCP, option, value)


@contextmanager
def _explained(endpoint: Endpoint, within_s: float) -> Iterator[None]:
    """Turn what goes wrong in connecting into what can be done about it."""
    try:
        yield
    except InvalidStatus as error:
        raise _refused(endpoint, error.response.status_code) from error
    except NegotiationError as error:
        raise HandshakeRefused(
            f'{endpoint} does not speak {wire.WS_SUBPROTOCOL}: is it the address of a worker?'
        ) from error
    except ssl.SSLError as error:
        raise HandshakeRefused(f'{endpoint} could not be trusted: {error}') from error
    except TimeoutError as error:
        raise Unreachable(f'{endpoint} did not answer within {within_s:.1f} s') from error
    except (OSError, InvalidHandshake, EOFError) as error:
        raise Unreachable(f'{endpoint}: {error}') from error
    except WebSocketException as error:
        raise HandshakeRefused(f'{endpoint}: {error}') from error


def _refused(endpoint: Endpoint, status: int) -> Exception:
    if status in (401, 403):
        shown = 'the token' if endpoint.token is not None else 'a client without a token'
        return HandshakeRefused(f'{endpoint} refused {shown} (HTTP {status})')
    if status >= 500 or status == 429:
        return Unreachable(f'{endpoint} takes no connections now (HTTP {status})')
    return HandshakeRefused(
        f'{endpoint} answered HTTP {status}: is it the address of a worker, and its path right?'
    )


def _told(error: Exception) -> str:
    """Say why a connection ended, by what the library knows of it."""
    cause = error.__cause__ if isinstance(error, ConnectionClosed) else None
    return f'{error} ({cause})' if cause is not None else str(error)


def _request(number: int, method: str, body: bytes) -> bytes:
    return map_of({wire.KEY_ID: pack(number), wire.KEY_METHOD: pack(method), wire.KEY_BODY: body})


def _read(message: str | bytes) -> tuple[int, Reply]:
    if isinstance(message, str):
        raise MsgpackError('it is text, and answers are binary')
    answer = unpack(message, writable=True)
    if isinstance(answer, Mapping):
        number, status = answer.get(wire.KEY_ID), answer.get(wire.KEY_STATUS)
        body = answer.get(wire.KEY_BODY)
        if isinstance(number, int) and isinstance(status, int) and isinstance(body, Mapping):
            return number, Reply(status, body)
    raise MsgpackError('it holds no id, status and body')

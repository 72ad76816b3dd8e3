"""One websocket to a worker: a request goes out, and its own answer comes back."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from contextlib import suppress
import logging
import threading
import time

from seq_harness.client.cancel import Cancel
from seq_harness.client.channel import Channel, dial
from seq_harness.client.endpoint import Endpoint
from seq_harness.client.opening import opened
from seq_harness.client.packing import pieces_of
from seq_harness.client.transport import (
    AnswerTimedOut,
    ConnectionLost,
    HandshakeRefused,
    Parts,
    Reply,
    Unreachable,
)
from seq_harness.contract import wire
from seq_harness.contract.msgpack import MsgpackError, pack, unpack
from websockets.client import ClientProtocol
from websockets.exceptions import InvalidStatus, WebSocketException
from websockets.frames import Frame, Opcode
from websockets.http11 import Response
from websockets.protocol import State
from websockets.typing import Subprotocol
from websockets.uri import parse_uri

CLOSE_S = 1.0
"""How long a peer is given to answer a close."""

CHUNK_BYTES = 1 << 16
"""The most that is received at once."""

FORMATS = frozenset({wire.FORMAT_MSGPACK, wire.FORMAT_OBSERVE})
"""What the binding always carries."""

wire_log = logging.getLogger('seq_harness.client.websocket')
# At DEBUG the library logs the headers of the handshake, and with them the token.
wire_log.setLevel(logging.WARNING)


class WebsocketConnection:
    """
    An open websocket, used by one thread at a time, which reads it itself.

    `abort` and `is_open` alone may be called from any thread.
    """

    formats = FORMATS

    def __init__(self, channel: Channel, protocol: ClientProtocol) -> None:
        self._channel = channel
        self._protocol = protocol
        self._using = threading.Lock()  # held by the one thread that uses the connection
        self._frames: deque[Frame] = deque()  # received, and not looked at; under _using
        self._id = 0
        self.instance = ''

    @property
    def is_open(self) -> bool:
        """Tell whether the connection was still open when it was last heard of."""
        if self._using.acquire(blocking=False):
            try:
                self._catch_up()
            finally:
                self._using.release()
        return self._protocol.state is State.OPEN

    def call(
        self,
        method: str,
        parts: Parts,
        within_s: float,
        cancel: Cancel,
        request_id: str | None = None,
    ) -> Reply:
        """Send a request and wait for its answer (Connection)."""
        deadline_s = time.monotonic() + within_s
        with self._using, cancel.calling(self.abort):
            self._id += 1
            self._send(_request(self._id, method, parts, request_id), deadline_s)
            while True:
                number, reply = self._receive(deadline_s, within_s)
                if number == self._id:
                    return reply

    def abort(self) -> None:
        """End the connection at once; whoever waits on it is told."""
        self._channel.abort()

    def close(self) -> None:
        """Say goodbye and end the connection, within `CLOSE_S`."""
        if self._using.acquire(blocking=False):
            try:
                self._say_goodbye()
            finally:
                self._using.release()
        self._channel.close()

    def open(self, endpoint: Endpoint, deadline_s: float) -> None:
        """Shake hands, or say why that failed."""
        request = self._protocol.connect()
        if endpoint.token is not None:
            request.headers[wire.HEADER_AUTHORIZATION] = wire.BEARER + endpoint.token
        self._protocol.send_request(request)
        self._flush(deadline_s)
        while self._protocol.state is State.CONNECTING and self._protocol.handshake_exc is None:
            self._read_on(deadline_s)
        error = self._protocol.handshake_exc
        if error is not None:
            raise _refusal(endpoint, error) from error
        if self._protocol.subprotocol is None:
            raise HandshakeRefused(_no_worker(endpoint))

    def _send(self, message: bytes, deadline_s: float) -> None:
        try:
            self._protocol.send_binary(message)
            self._flush(deadline_s)
        except (WebSocketException, OSError) as error:
            self.abort()
            raise ConnectionLost(self._told(error), sent=False) from error

    def _receive(self, deadline_s: float, within_s: float) -> tuple[int, Reply]:
        try:
            return _read(self._next_message(deadline_s))
        except TimeoutError:
            self.abort()
            raise AnswerTimedOut(f'no answer came within {within_s:g} s') from None
        except (WebSocketException, OSError) as error:
            raise ConnectionLost(self._told(error), sent=True) from error
        except MsgpackError as error:
            self.abort()
            raise ConnectionLost(f'an answer could not be read: {error}', sent=True) from error

    def _next_message(self, deadline_s: float) -> bytes:
        """Return the next message, put together from its frames."""
        pieces: list[bytes] = []
        while True:
            while not self._frames:
                if self._protocol.state is not State.OPEN:
                    raise self._closed()
                self._read_on(deadline_s)
            frame = self._frames.popleft()
            if frame.opcode is Opcode.TEXT:
                raise MsgpackError('it is text, and answers are binary')
            pieces.append(bytes(frame.data))
            if frame.fin:
                return pieces[0] if len(pieces) == 1 else b''.join(pieces)

    def _closed(self) -> WebSocketException:
        """See a close through, and return what it says."""
        deadline_s = time.monotonic() + CLOSE_S
        with suppress(OSError, WebSocketException):
            while self._protocol.state is not State.CLOSED:
                self._read_on(deadline_s)
        self._lose()
        return self._protocol.close_exc

    def _read_on(self, deadline_s: float) -> None:
        """Receive what comes next, and send what it calls for."""
        received = self._channel.receive(CHUNK_BYTES, deadline_s)
        if received:
            self._protocol.receive_data(received)
        else:
            self._protocol.receive_eof()
        for event in self._protocol.events_received():
            # The protocol itself answers pings and closes.
            if isinstance(event, Frame) and event.opcode in (
                Opcode.BINARY,
                Opcode.TEXT,
                Opcode.CONT,
            ):
                self._frames.append(event)
        self._flush(deadline_s)

    def _flush(self, deadline_s: float) -> None:
        self._channel.send(self._protocol.data_to_send(), deadline_s)

    def _catch_up(self) -> None:
        """Take note of what came while nobody waited: a ping, a close, an answer too late."""
        with suppress(OSError, WebSocketException):
            while self._protocol.state is State.OPEN and self._channel.has_news:
                self._read_on(time.monotonic())
            return
        self._lose()

    def _lose(self) -> None:
        with suppress(WebSocketException):
            self._protocol.receive_eof()
        self.abort()

    def _say_goodbye(self) -> None:
        deadline_s = time.monotonic() + CLOSE_S
        with suppress(OSError, WebSocketException):
            if self._protocol.state is State.OPEN:
                self._protocol.send_close()
                self._flush(deadline_s)
            while self._protocol.state is State.CLOSING:
                self._read_on(deadline_s)

    def _told(self, error: Exception) -> str:
        if isinstance(error, OSError):
            self._lose()
            return str(error)
        cause = error.__cause__
        return f'{error} ({cause})' if cause is not None else str(error)


def open_websocket(endpoint: Endpoint, within_s: float, cancel: Cancel) -> WebsocketConnection:
    """
    Connect to a worker within `within_s` seconds, or until `cancel` is set.

    Raises
    ------
    Unreachable
        Nobody answered, or `cancel` was set.
    HandshakeRefused
        The peer refused the token, or speaks no such protocol.

    """
    return opened(endpoint, lambda deadline_s: _open(endpoint, deadline_s), within_s, cancel)


def _open(endpoint: Endpoint, deadline_s: float) -> WebsocketConnection:
    protocol = ClientProtocol(
        parse_uri(endpoint.url),
        subprotocols=[Subprotocol(wire.WS_SUBPROTOCOL)],
        max_size=endpoint.max_message_bytes,
        logger=wire_log,
    )
    connection = WebsocketConnection(dial(endpoint, deadline_s), protocol)
    try:
        connection.open(endpoint, deadline_s)
    except BaseException:
        connection.abort()
        connection.close()
        raise
    return connection


def _refusal(endpoint: Endpoint, error: Exception) -> Exception:
    if isinstance(error, InvalidStatus):
        return _refused(endpoint, error.response)
    if isinstance(error.__cause__, EOFError):
        return Unreachable(f'{endpoint}: {error}')
    return HandshakeRefused(f'{_no_worker(endpoint)} ({error})')


def _refused(endpoint: Endpoint, response: Response) -> Exception:
    status = response.status_code
    if status in (401, 403):
        shown = 'the token' if endpoint.token is not None else 'a client without a token'
        return HandshakeRefused(f'{endpoint} refused {shown} (HTTP {status})')
    if status >= 500 or status == 429:
        return Unreachable(f'{endpoint} takes no connections now (HTTP {status})')
    return HandshakeRefused(
        f'{endpoint} answered HTTP {status}: is it the address of a worker, and its path right?'
    )


def _no_worker(endpoint: Endpoint) -> str:
    return f'{endpoint} does not speak {wire.WS_SUBPROTOCOL}: is it the address of a worker?'


def _request(number: int, method: str, parts: Parts, request_id: str | None) -> bytes:
    body = dict(parts)
    if request_id is not None:
        body[wire.KEY_REQUEST_ID] = pack(request_id)
    head = {wire.KEY_ID: pack(number), wire.KEY_METHOD: pack(method), wire.KEY_BODY: b''}
    return b''.join((*pieces_of(head), *pieces_of(body)))


def _read(message: bytes) -> tuple[int, Reply]:
    answer = unpack(message, writable=True)
    if isinstance(answer, Mapping):
        number, status = answer.get(wire.KEY_ID), answer.get(wire.KEY_STATUS)
        body = answer.get(wire.KEY_BODY)
        if isinstance(number, int) and isinstance(status, int) and isinstance(body, Mapping):
            said = body.get(wire.KEY_INSTANCE)
            return number, Reply(status, body, said if isinstance(said, str) else None)
    raise MsgpackError('it holds no id, status and body')

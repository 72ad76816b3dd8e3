"""One websocket to a worker: a request goes out, and its own answer comes back."""

from __future__ import annotations

import time

from seq_harness.client.cancel import Cancel
from seq_harness.client.endpoint import Endpoint
from seq_harness.client.packing import pieces_of
from seq_harness.client.plain_websocket import Message, PlainWebsocket
from seq_harness.client.transport import ConnectionLost, Parts, Reply
from seq_harness.client.websocket_opening import connected_websocket
from seq_harness.contract import wire
from seq_harness.contract.envelope import around_number
from seq_harness.contract.msgpack import MsgpackError, pack, unpack

FORMATS = frozenset({wire.FORMAT_MSGPACK, wire.FORMAT_OBSERVE})
"""What the binding always carries."""


class WebsocketConnection:
    """
    An open websocket, used by one thread at a time, which reads it itself.

    `abort` and `is_open` alone may be called from any thread.
    """

    formats = FORMATS

    def __init__(self, socket: PlainWebsocket) -> None:
        self._socket = socket
        self._id = 0  # of the newest request; belongs to the thread that uses the connection
        self.instance = ''

    @property
    def is_open(self) -> bool:
        """Tell whether the connection was still open when it was last heard of."""
        return self._socket.is_open

    @property
    def is_silent(self) -> bool:
        """Tell whether the worker does not answer its ping while it is waited for."""
        return self._socket.is_silent

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
        with self._socket.used(), cancel.calling(self.abort):
            self._id += 1
            self._socket.send_pieces(_request(self._id, method, parts, request_id), deadline_s)
            while True:
                number, reply = self._receive(deadline_s)
                if number == self._id:
                    return reply

    def abort(self) -> None:
        """End the connection at once; whoever waits on it is told."""
        self._socket.abort()

    def close(self) -> None:
        """Say goodbye and end the connection."""
        self._socket.close()

    def _receive(self, deadline_s: float) -> tuple[int, Reply]:
        try:
            return _read(self._socket.receive(deadline_s))
        except MsgpackError as error:
            self.abort()
            raise ConnectionLost(f'an answer could not be read: {error}', sent=True) from error


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
    headers = {}
    if endpoint.token is not None:
        headers[wire.HEADER_AUTHORIZATION] = wire.BEARER + endpoint.token
    socket = connected_websocket(
        endpoint, within_s, cancel, headers=headers, subprotocol=wire.WS_SUBPROTOCOL
    )
    socket.pings = True
    return WebsocketConnection(socket)


def _request(
    number: int, method: str, parts: Parts, request_id: str | None
) -> list[bytes | memoryview]:
    body = parts if request_id is None else {**parts, wire.KEY_REQUEST_ID: pack(request_id)}
    before, behind = around_number(wire.KEY_METHOD, method)
    return [before, pack(number), behind, *pieces_of(body)]


def _read(message: Message) -> tuple[int, Reply]:
    if message.is_text:
        raise MsgpackError('it is text, and answers are binary')
    answer = unpack(message.data, writable=True)
    if isinstance(answer, dict):
        number, status = answer.get(wire.KEY_ID), answer.get(wire.KEY_STATUS)
        body = answer.get(wire.KEY_BODY)
        if isinstance(number, int) and isinstance(status, int) and isinstance(body, dict):
            said = body.get(wire.KEY_INSTANCE)
            return number, Reply(status, body, said if isinstance(said, str) else None)
    raise MsgpackError('it holds no id, status and body')

"""A websocket for whole messages: what the wires of workers and of other servers stand on."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
import threading
import time
from typing import Any, NamedTuple

from seq_harness.client.cancel import Cancel
from seq_harness.client.channel import Channel
from seq_harness.client.endpoint import Endpoint
from seq_harness.client.framing import frame
from seq_harness.client.pulse import PING_S, Pulse
from seq_harness.client.refusals import handshake_error
from seq_harness.client.transport import (
    AnswerTimedOut,
    ConnectionLost,
)
from seq_harness.contract.websocket import BINARY, Cutter, FIN, HEAD_END, TEXT
from websockets.client import ClientProtocol
from websockets.exceptions import (
    InvalidState,
    PayloadTooBig,
    WebSocketException,
)
from websockets.frames import CloseCode, Frame, Opcode
from websockets.protocol import State

CLOSE_S = 1.0
"""How long a peer is given to answer a close."""

CHUNK_BYTES = 1 << 16
"""The most that is received at once."""

DATA = (Opcode.BINARY, Opcode.TEXT, Opcode.CONT)
"""The kinds of frames that messages are made of."""

WHOLE = (FIN | BINARY, FIN | TEXT)
"""How a frame begins that is a whole message."""

PROGRESS_S = 10.0
"""How often whoever waits for a message is told that none came yet."""

Waiting = Callable[[float], None]
"""Told for how long a message has been waited for, in seconds."""


class AnswerTooLong(ConnectionLost):
    """The peer sent more than is read, and the connection was closed for it."""


class Message(NamedTuple):
    """One message of the peer, put together from its frames."""

    data: bytes
    is_text: bool

    @property
    def text(self) -> str:
        """Return what a text says."""
        return self.data.decode(errors='replace')


class PlainWebsocket:
    """
    An open websocket, used by one thread at a time, which reads it itself.

    It waits for no pongs, for a server may answer nothing at all while it infers; the system finds
    out a host that is gone. Where the peer's kind answers pings meanwhile, they are sent, so that
    one can tell whether it does. `abort`, `is_open` and `is_silent` alone may be called from any
    thread; `is_open` also answers the peer's pings while nobody uses the connection.
    """

    def __init__(self, channel: Channel, protocol: ClientProtocol, most_bytes: int) -> None:
        self.pings = False
        """Whether a peer that is waited for is pinged; set before it is."""
        self._pulse = Pulse()
        self._channel = channel
        self._protocol = protocol  # of the handshake, control frames and fragments
        self._using = threading.Lock()  # held by the one thread that uses the connection
        self._messages: deque[Message] = deque()  # received, and not looked at; under _using
        self._fragments: list[Frame] = []  # of a message that is not whole yet; under _using
        self._cutter = Cutter(most_bytes)  # under _using

    @property
    def is_open(self) -> bool:
        """Tell whether the connection was still open when it was last heard of."""
        if self._using.acquire(blocking=False):
            try:
                if self._protocol.state is not State.OPEN or self._channel.has_news:
                    self._catch_up()
            finally:
                self._using.release()
        return self._protocol.state is State.OPEN

    @property
    def is_silent(self) -> bool:
        """Tell whether the peer answers no ping while a message of its is waited for."""
        return self._pulse.is_silent

    @property
    def close_code(self) -> int | None:
        """Return the code with which the peer closed the connection, if it did."""
        received = self._protocol.close_rcvd
        return None if received is None else int(received.code)

    def used(self) -> AbstractContextManager[Any]:
        """Keep other threads from reading what the block waits for."""
        return self._using

    def send(self, message: bytes, deadline_s: float) -> None:
        """
        Send a binary message; the deadline is on the monotonic clock. Call it within `used`.

        Raises
        ------
        ConnectionLost
            The connection ended, or the message did not go out in time.

        """
        self.send_pieces((message,), deadline_s)

    def send_pieces(self, pieces: Sequence[bytes | memoryview], deadline_s: float) -> None:
        """Send a binary message as `send` does, of what one after another makes it."""
        try:
            if self._protocol.state is not State.OPEN:
                raise InvalidState(f'the connection is {self._protocol.state.name}')
            self._channel.send(frame(pieces), deadline_s)
        except (WebSocketException, OSError) as error:
            self.abort()
            raise ConnectionLost(self._told(error), sent=False) from error

    def receive(self, deadline_s: float, waiting: Waiting | None = None) -> Message:
        """
        Return the next message. Call it within `used`.

        Raises
        ------
        AnswerTimedOut
            None came by the deadline; the connection is closed, so that it cannot come late.
        ConnectionLost
            The connection ended first, or the message is longer than is read.

        """
        began_s = said_s = time.monotonic()
        self._pulse.heard()
        try:
            while not self._messages:
                if self._waited_on(said_s, deadline_s, waiting):
                    said_s = time.monotonic()
                    if waiting is not None:
                        waiting(said_s - began_s)
        except TimeoutError:
            self.abort()
            waited_s = max(0.0, deadline_s - began_s)
            told_s = f'{waited_s:.0f}' if waited_s >= 10 else f'{waited_s:.2g}'
            raise AnswerTimedOut(f'no answer came within {told_s} s') from None
        except (WebSocketException, OSError) as error:
            lost = AnswerTooLong if self._is_too_long(error) else ConnectionLost
            raise lost(self._told(error), sent=True) from error
        return self._messages.popleft()

    def exchange(
        self, message: bytes, within_s: float, cancel: Cancel, waiting: Waiting | None = None
    ) -> Message:
        """
        Send a message and return the next one of the peer.

        Raises
        ------
        AnswerTimedOut, ConnectionLost
            As `send` and `receive`; `cancel` ends the connection.

        """
        deadline_s = time.monotonic() + within_s
        with self._using, cancel.calling(self.abort):
            self.send(message, deadline_s)
            return self.receive(deadline_s, waiting)

    def next_message(
        self, within_s: float, cancel: Cancel, waiting: Waiting | None = None
    ) -> Message:
        """Return what the peer sends without being asked; raises as `exchange`."""
        with self._using, cancel.calling(self.abort):
            return self.receive(time.monotonic() + within_s, waiting)

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

    def shake_hands(self, endpoint: Endpoint, headers: Mapping[str, str], until_s: float) -> None:
        """Open the websocket with further headers, or say why that failed."""
        request = self._protocol.connect()
        for name, value in headers.items():
            request.headers[name] = value
        self._protocol.send_request(request)
        self._flush(until_s)
        head = b''
        while self._protocol.state is State.CONNECTING and self._protocol.handshake_exc is None:
            head = self._read_head(head, until_s)
        error = self._protocol.handshake_exc
        if error is not None:
            raise handshake_error(endpoint, error) from error

    @property
    def subprotocol(self) -> str | None:
        """Return what the peer agreed to speak, if it was asked."""
        return self._protocol.subprotocol

    def _waited_on(self, said_s: float, deadline_s: float, waiting: Waiting | None) -> bool:
        """Read what comes next; tell whether nothing came for so long that it is to be said."""
        if self._protocol.state is not State.OPEN:
            raise self._closed()
        until_s = deadline_s
        if waiting is not None:
            until_s = min(until_s, said_s + PROGRESS_S)
        if self.pings:
            until_s = min(until_s, time.monotonic() + PING_S)
        try:
            self._read_on(until_s)
        except TimeoutError:
            now_s = time.monotonic()
            if now_s >= deadline_s:
                raise
            if self.pings:
                self._protocol.send_ping(b'')
                self._flush(deadline_s)
                self._pulse.pinged()
            return waiting is not None and now_s >= said_s + PROGRESS_S
        return False

    def _closed(self) -> WebSocketException:
        """See a close through, and return what it says."""
        deadline_s = time.monotonic() + CLOSE_S
        with suppress(OSError, WebSocketException):
            while self._protocol.state is not State.CLOSED:
                self._read_on(deadline_s)
        self._lose()
        return self._protocol.close_exc

    def _read_head(self, before: bytes, deadline_s: float) -> bytes:
        """Receive more of the answer to the handshake, and return its head so far."""
        received = self._channel.receive(CHUNK_BYTES, deadline_s)
        head = before + received
        end = head.find(HEAD_END)
        behind = len(head) - (end + len(HEAD_END)) if end >= 0 else 0
        split = max(0, len(received) - behind)
        if split or not received:
            self._hand_over(received[:split])
        if self._protocol.state is State.OPEN:
            self._take(received[split:])
        elif split < len(received):
            self._hand_over(received[split:])  # the body of a refusal
        return head

    def _read_on(self, deadline_s: float) -> None:
        """Receive what comes next, and send what it calls for."""
        received = self._channel.receive(CHUNK_BYTES, deadline_s)
        self._pulse.heard()
        if received:
            self._take(received)
        else:
            self._hand_over(received)
        self._flush(deadline_s)

    def _take(self, received: bytes) -> None:
        """Take whole messages as they are; the protocol reads and answers all else."""
        for came in self._cutter.cut(received):
            is_open = self._protocol.state is State.OPEN
            is_message = came.first in WHOLE and came.is_whole and not came.is_masked
            if is_open and is_message and not self._fragments:
                self._messages.append(Message(came.data, came.first == FIN | TEXT))
            else:
                self._hand_over(came.raw)

    def _hand_over(self, received: bytes) -> None:
        """Let the protocol read what came, or that nothing will come any more."""
        if received:
            self._protocol.receive_data(received)
        else:
            self._protocol.receive_eof()
        for event in self._protocol.events_received():
            if isinstance(event, Frame) and event.opcode in DATA:
                self._fragments.append(event)
                if event.fin:
                    self._join()

    def _join(self) -> None:
        """Put a message together from its frames."""
        frames, self._fragments = self._fragments, []
        data = b''.join([bytes(frame.data) for frame in frames])
        self._messages.append(Message(data, frames[0].opcode is Opcode.TEXT))

    def _flush(self, deadline_s: float) -> None:
        if pieces := self._protocol.data_to_send():
            self._channel.send(pieces, deadline_s)

    def _catch_up(self) -> None:
        """Take note of what came while nobody waited: a ping, a close, an answer too late."""
        with suppress(OSError, WebSocketException):
            while self._protocol.state is State.OPEN and self._channel.has_news:
                self._read_on(time.monotonic())
            if self._protocol.state is State.OPEN:
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

    def _is_too_long(self, error: Exception) -> bool:
        sent = self._protocol.close_sent
        ours = isinstance(error, PayloadTooBig) or isinstance(error.__cause__, PayloadTooBig)
        return ours or (sent is not None and sent.code == CloseCode.MESSAGE_TOO_BIG)

    def _told(self, error: Exception) -> str:
        if isinstance(error, OSError):
            self._lose()
            return str(error)
        cause = error.__cause__
        return f'{error} ({cause})' if cause is not None else str(error)

"""The HTTP/1.1 binding: each method is a post, on a connection that is kept alive."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http.client import HTTPConnection, HTTPException, HTTPResponse
import io
import threading
import time
from typing import Any
from urllib.parse import urlencode

from seq_harness.client.cancel import Cancel
from seq_harness.client.channel import Channel, dial
from seq_harness.client.endpoint import Endpoint
from seq_harness.client.opening import opened
from seq_harness.client.packing import joined, map_of
from seq_harness.client.pulse import PING_S, PONG_S, Pulse
from seq_harness.client.transport import (
    AnswerTimedOut,
    ConnectionLost,
    HandshakeRefused,
    Parts,
    Reply,
    Unreachable,
)
from seq_harness.contract import wire
from seq_harness.contract.excerpt import excerpt, SHOWN
from seq_harness.contract.frames import pack_frames
from seq_harness.contract.json_body import Contents, contents_of, JsonError, pack_json, unpack_json
from seq_harness.contract.msgpack import MsgpackError, pack, unpack

PATHS: Mapping[str, str] = {
    wire.CONNECT: wire.PATH_CONNECT,
    wire.ACT: wire.PATH_ACT,
    wire.OBSERVE: wire.PATH_OBSERVE,
    wire.EPISODE_END: wire.PATH_EPISODE_END,
}
"""Where each method is posted; a ping is got."""

Headers = Mapping[str, str]
Say = Callable[[str, str], None]


class Exchange:
    """
    One HTTP connection, used by one thread at a time for one request after another.

    `abort` and `is_open` alone may be called from any thread.
    """

    def __init__(self, endpoint: Endpoint, channel: Channel) -> None:
        self._endpoint = endpoint
        self._channel = channel
        self._using = threading.Lock()  # held by the one thread that uses the connection
        self._timed = _TimedSocket(channel)
        self._http = HTTPConnection(endpoint.host, endpoint.port)
        self._http.auto_open = 0  # a lost connection is made again by whoever counts that
        self._http.sock = self._timed
        self._ended = False

    @property
    def is_open(self) -> bool:
        """Tell whether another request can go over it."""
        if self._using.acquire(blocking=False):
            try:
                # Nothing comes unasked but the end.
                self._ended = self._ended or self._http.sock is None or self._channel.has_news
            finally:
                self._using.release()
        return not self._ended

    def call(
        self,
        verb: str,
        target: str,
        body: bytes | None,
        headers: Headers,
        within_s: float,
        cancel: Cancel,
        waiting: Callable[[], None] | None = None,
    ) -> tuple[HTTPResponse, bytes]:
        """
        Send a request; return the head of the answer and its body.

        `waiting` is called every `PING_S` until the answer comes.

        Raises
        ------
        ConnectionLost
            The connection ended first, the answer is too long, or `cancel` was set.
        AnswerTimedOut
            No answer came within `within_s`, in seconds.

        """
        sent = False
        with self._using, cancel.calling(self.abort):
            self._timed.deadline_s = time.monotonic() + within_s
            self._timed.waiting = waiting
            try:
                self._http.request(verb, self._endpoint.path + target, body, self._own(headers))
                sent = True
                response = self._http.getresponse()
                return response, self._read(response)
            except TimeoutError:
                self._end()
                if not sent:
                    raise ConnectionLost('the request could not be sent', sent=False) from None
                raise AnswerTimedOut(f'no answer came within {within_s:g} s') from None
            except (OSError, HTTPException) as error:
                self._end()
                raise ConnectionLost(str(error) or type(error).__name__, sent) from error

    def abort(self) -> None:
        """End the connection at once; whoever waits on it is told."""
        self._channel.abort()

    def close(self) -> None:
        """End the connection."""
        self._ended = True
        self._channel.close()

    def ping(self, cancel: Cancel) -> None:
        """Ask over another connection whether the server answers; raises where it does not."""
        beside = open_http(self._endpoint, PONG_S, cancel)
        try:
            beside.call('GET', wire.PATH_PING, None, {}, PONG_S, cancel)
        finally:
            beside.close()

    def _own(self, headers: Headers) -> dict[str, str]:
        own = dict(headers)
        if self._endpoint.token is not None:
            own[wire.HEADER_AUTHORIZATION] = wire.BEARER + self._endpoint.token
        return own

    def _read(self, response: HTTPResponse) -> bytes:
        most = self._endpoint.max_message_bytes
        body = response.read(most + 1)
        if len(body) > most:
            raise HTTPException(f'the answer is longer than {most} bytes')
        if response.length:  # the connection ended within the body
            raise HTTPException(f'the answer ended {response.length} bytes early')
        return body

    def _end(self) -> None:
        self._ended = True
        self.abort()


class HttpConnection:
    """The methods of a worker over HTTP (Connection)."""

    def __init__(self, exchange: Exchange, session: str, epoch: str, say: Say) -> None:
        """`epoch` tells one worker from the next where its answers name no process."""
        self._exchange = exchange
        self._session = session
        self._epoch = epoch
        self._say = say
        self._names_instance = False
        self._pulse = Pulse()
        self.formats: frozenset[str] = frozenset()
        self.instance = ''

    @property
    def is_open(self) -> bool:
        """Tell whether the connection was still open when it was last heard of."""
        return self._exchange.is_open

    @property
    def is_silent(self) -> bool:
        """Tell whether the worker answers no ping while an act is waited for."""
        return self._pulse.is_silent

    def call(
        self,
        method: str,
        parts: Parts,
        within_s: float,
        cancel: Cancel,
        request_id: str | None = None,
    ) -> Reply:
        """Send a request and wait for its answer (Connection)."""
        headers = {wire.HEADER_SESSION: self._session}
        if request_id is not None:
            headers[wire.HEADER_REQUEST_ID] = request_id
            if self._names_instance:
                # Tells a worker of our kind that we can send again what it lacks.
                parts = {**parts, wire.KEY_REQUEST_ID: pack(request_id)}
        if method == wire.PING:
            verb, target, body = 'GET', _ping_target(parts), None
        else:
            verb, target = 'POST', PATHS[method]
            kind, body = self._body(method, parts)
            headers[wire.HEADER_CONTENT_TYPE] = kind
        if method == wire.ACT and wire.FORMAT_MSGPACK in self.formats:
            headers[wire.HEADER_ACCEPT] = wire.MSGPACK_TYPE
        waiting = (lambda: self._ping(cancel)) if method == wire.ACT else None
        try:
            answer = self._exchange.call(verb, target, body, headers, within_s, cancel, waiting)
        finally:
            self._pulse.heard()
        return self._reply(*answer, request_id)

    def _ping(self, cancel: Cancel) -> None:
        self._pulse.pinged()
        try:
            self._exchange.ping(cancel)
        except (Unreachable, HandshakeRefused, ConnectionLost, AnswerTimedOut):
            return
        self._pulse.heard()

    def abort(self) -> None:
        """End the connection at once; whoever waits on it is told."""
        self._exchange.abort()

    def close(self) -> None:
        """End the connection."""
        self._exchange.close()

    def _body(self, method: str, parts: Parts) -> tuple[str, bytes]:
        """
        Choose the form of a body: JSON, but for what holds bytes or arrays, and observations.

        A robot-arm observation's frames go as bytes beside their JSON, where the worker reads it.

        Raises
        ------
        JsonError
            It holds bytes, and the worker reads no msgpack.

        """
        if method == wire.OBSERVE:
            return wire.MSGPACK_TYPE, map_of(parts)
        value = {key: unpack(joined(part)) for key, part in parts.items()}
        contents = contents_of(value)
        if contents is not Contents.PLAIN and wire.FORMAT_MSGPACK in self.formats:
            return wire.MSGPACK_TYPE, map_of(parts)
        if contents is Contents.ARRAYS:
            self._say('lists', 'the worker reads no msgpack: arrays are sent as lists, slowly')
        if method == wire.ACT and wire.FORMAT_FRAMES in self.formats:
            framed = pack_frames(value)
            if framed is not None:
                return wire.FRAMES_TYPE, framed
        return wire.JSON_TYPE, pack_json(value)

    def _reply(self, head: HTTPResponse, data: bytes, request_id: str | None) -> Reply:
        formats = head.headers.get(wire.HEADER_FORMATS)
        if formats is not None or 200 <= head.status < 300:
            self.formats = wire.read_formats(formats)
        echoed = head.headers.get(wire.HEADER_REQUEST_ID)
        if request_id is not None and echoed not in (None, request_id):
            self._say('echo', f'the worker answered the act {request_id} as {echoed!r:.80}')
        instance = self._instance(head.headers.get(wire.HEADER_INSTANCE))
        return Reply(head.status, decoded(head, data), instance)

    def _instance(self, said: str | None) -> str:
        """Name the worker process; one that changed behind the connection ends it."""
        self._names_instance = said is not None
        named = f'{said or "worker"}{self._epoch}'
        if said is not None and self.instance and named != self.instance:
            self.abort()
            raise ConnectionLost('another worker process answers on the connection', sent=True)
        return named


def _ping_target(parts: Parts) -> str:
    asked = {key: unpack(joined(part)) for key, part in parts.items()}
    return f'{wire.PATH_PING}?{urlencode(asked)}' if asked else wire.PATH_PING


def open_http(endpoint: Endpoint, within_s: float, cancel: Cancel) -> Exchange:
    """
    Connect to an HTTP server within `within_s` seconds, or until `cancel` is set.

    Raises
    ------
    Unreachable
        Nobody answered, or `cancel` was set.
    HandshakeRefused
        The peer's certificate is not to be trusted.

    """
    return opened(
        endpoint,
        lambda deadline_s, given_up: Exchange(endpoint, dial(endpoint, deadline_s, given_up)),
        within_s,
        cancel,
    )


def decoded(head: HTTPResponse, data: bytes) -> Mapping[str, Any]:
    """
    Read the body of an answer.

    Raises
    ------
    ConnectionLost
        It is a success whose body cannot be read.

    """
    kind = head.headers.get(wire.HEADER_CONTENT_TYPE, '')
    try:
        is_msgpack = kind.startswith(wire.MSGPACK_TYPE)
        body = unpack(data, writable=True) if is_msgpack else unpack_json(data)
    except (MsgpackError, JsonError) as error:
        if head.status < 300:
            raise ConnectionLost(f'an answer could not be read: {error}', sent=True) from error
        body = None
    if isinstance(body, Mapping):
        return body
    # Not a worker's own answer to an error: a proxy's or a tunnel's.
    text = f'HTTP {head.status} {head.reason}: {data[:SHOWN].decode(errors="replace")}'
    return {} if head.status < 300 else {'detail': excerpt(text)}


class _TimedSocket:
    """What HTTPConnection takes for a socket; each of its waits ends at the deadline."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self.deadline_s = 0.0
        self.waiting: Callable[[], None] | None = None

    def sendall(self, data: bytes) -> None:
        self._channel.send((data,), self.deadline_s)

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(_TimedReader(self))

    def receive_into(self, buffer: memoryview) -> int:
        if self.waiting is None:
            return self._channel.receive_into(buffer, self.deadline_s)
        while True:
            try:
                until_s = min(self.deadline_s, time.monotonic() + PING_S)
                return self._channel.receive_into(buffer, until_s)
            except TimeoutError:
                if time.monotonic() >= self.deadline_s:
                    raise
            self.waiting()

    def close(self) -> None:
        """Leave the channel to its owner: the last answer may still be read."""


class _TimedReader(io.RawIOBase):
    """The bytes of one answer."""

    def __init__(self, sock: _TimedSocket) -> None:
        super().__init__()
        self._sock = sock

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._sock.receive_into(memoryview(buffer))

"""One session with a positronic server: its handshake, its answers and its end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
import json
import logging
import time
from typing import Any
from urllib.parse import urlencode

from seq_harness.client.cancel import Cancel
from seq_harness.client.endpoint import Endpoint
from seq_harness.client.plain_websocket import (
    Message,
    PlainWebsocket,
    Waiting,
)
from seq_harness.client.transport import (
    AnswerTimedOut,
    ConnectionLost,
    HandshakeRefused,
    NotReady,
    Unreachable,
)
from seq_harness.client.websocket_opening import connected_websocket
from seq_harness.contract import wire
from seq_harness.contract.excerpt import excerpt, logged
from seq_harness.contract.msgpack import MsgpackError
from seq_harness.contract.numpy_msgpack import pack, unpack
from seq_harness.playback.uplink import PolicyError

SESSION_PATH = '/api/v1/session'

MESSAGE_BYTES = 16 << 20
"""The longest message that a server reads."""

OPEN_S = 10.0
"""How long one attempt to connect may take."""

STATUS_S = 30.0
"""A server that prepares a session says so at least this often."""

END_S = 5.0
"""How long a server is given to release a session."""

PROTOCOLS = (1, 2, 3)
"""What is spoken; a server that names none speaks the first."""

STATUS, MESSAGE, READY, ERROR = 'status', 'message', 'ready', 'error'
PREPARING = ('waiting', 'loading')
PROTOCOL, SESSION, META = 'protocol_version', 'session_id', 'meta'
OBSERVATION, RESULT, TIMING, END = 'observation', 'result', 'timing', 'end_session'

Progress = Callable[[str], None]

log = logging.getLogger('seq_harness.client')


@dataclass(frozen=True)
class Answer:
    """What one inference answered, undecoded into rows."""

    result: Any
    timing_ms: Mapping[str, float]
    """What each part of it took on the server's clock, by the wire's names."""


class Session:
    """
    A session that is ready, used by one thread at a time.

    `abort` and `is_open` alone may be called from any thread; `is_open` also answers the server's
    pings.
    """

    def __init__(self, socket: PlainWebsocket, ready: Mapping[str, Any], protocol: int) -> None:
        self._socket = socket
        self._id = ready.get(SESSION)
        self._protocol = protocol
        self.meta: Mapping[str, Any] = ready.get(META) or {}
        self.answered = False
        """Whether it has served an inference, so that its policy may remember something."""

    @property
    def protocol(self) -> int:
        """Return the version of the protocol that it speaks."""
        return self._protocol

    @property
    def is_open(self) -> bool:
        """Tell whether the session was still there when it was last heard of."""
        return self._socket.is_open

    @property
    def is_silent(self) -> bool:
        """Tell whether the server does not answer its ping, though it does while it infers."""
        return self._socket.is_silent

    def infer(
        self, observation: Any, within_s: float, cancel: Cancel, waiting: Waiting | None = None
    ) -> Answer:
        """
        Ask about an observation, and wait for the answer; `waiting` hears how long that takes.

        Raises
        ------
        PolicyError
            The observation cannot be sent as it is, the inference failed, or the answer cannot be
            read; after either the session is ended, for nobody knows what state its model is in.
        AnswerTimedOut, ConnectionLost
            No answer came; the connection is closed, so that it cannot come late.

        """
        request = observation
        if self._id is not None:
            request = {SESSION: self._id, OBSERVATION: observation}
        packed = _packed(request)
        try:
            answer = _read_answer(self._socket.exchange(packed, within_s, cancel, waiting))
        except AnswerTimedOut:
            raise AnswerTimedOut(f'no answer came within {within_s:g} s') from None
        except PolicyError:
            self.close()
            raise
        self.answered = True
        return answer

    def abort(self) -> None:
        """End the connection at once; whoever waits on it is told."""
        self._socket.abort()

    def end(self, within_s: float = END_S) -> None:
        """Let the server release the session, as far as it answers in time, and close it."""
        if self._id is not None and self._socket.is_open:
            goodbye = pack({SESSION: self._id, END: True})
            with suppress(AnswerTimedOut, ConnectionLost):
                self._socket.exchange(goodbye, within_s, Cancel())
        self.close()

    def close(self) -> None:
        """Close the connection, which ends the session."""
        self._socket.close()


@dataclass(frozen=True)
class SessionEndpoint(Endpoint):
    """Where a session with its parameters opens; its text leaves them out."""

    shown: str = ''

    def __str__(self) -> str:
        return self.shown

    @classmethod
    def of(cls, endpoint: Endpoint, params: Mapping[str, Any] | None) -> SessionEndpoint:
        """Put the parameters of a session into its address: each as JSON, by its name."""
        said = urlencode({name: json.dumps(value) for name, value in (params or {}).items()})
        known = {field.name: getattr(endpoint, field.name) for field in fields(endpoint)}
        url = f'{endpoint.url}?{said}' if said else endpoint.url
        return cls(**{**known, 'url': url, 'shown': str(endpoint)})


def open_session(endpoint: Endpoint, deadline_s: float, cancel: Cancel, tell: Progress) -> Session:
    """
    Connect, and wait until the server has prepared a session.

    `deadline_s` is on the monotonic clock; `tell` hears of the server's progress.

    Raises
    ------
    NotReady
        The server was still preparing at the deadline.
    Unreachable
        Nobody answered, the server fell silent, or `cancel` was set.
    HandshakeRefused
        The server refuses the token, the parameters or the session, or is no positronic server.

    """
    headers = {}
    if endpoint.token is not None:
        headers[wire.HEADER_AUTHORIZATION] = wire.BEARER + endpoint.token
    within_s = min(OPEN_S, max(0.0, deadline_s - time.monotonic()))
    socket = connected_websocket(endpoint, within_s, cancel, headers=headers)
    socket.pings = True
    try:
        with socket.used(), cancel.calling(socket.abort):
            return _prepared(endpoint, socket, deadline_s, tell)
    except BaseException:
        socket.close()
        raise


def _prepared(
    endpoint: Endpoint, socket: PlainWebsocket, deadline_s: float, tell: Progress
) -> Session:
    said = ''
    while True:
        until_s = min(deadline_s, time.monotonic() + STATUS_S)
        try:
            came = _read_map(socket.receive(until_s))
        except AnswerTimedOut:
            if said and until_s == deadline_s:
                raise NotReady(f'{endpoint} is still {said}', 0.0) from None
            raise Unreachable(f'{endpoint} said nothing of its session in time') from None
        except ConnectionLost as error:
            raise Unreachable(f'{endpoint} closed the connection: {error}') from error
        except MsgpackError as error:
            raise HandshakeRefused(
                f'{endpoint} is no positronic server: a status was expected, and {error}'
            ) from error
        status = came.get(STATUS)
        if status == READY:
            return _ready(endpoint, socket, came)
        if ERROR in came or status not in PREPARING:
            raise HandshakeRefused(_refusal(endpoint, came))
        said = f'{status} ({came[MESSAGE]})' if came.get(MESSAGE) else str(status)
        tell(f'{endpoint} prepares a session: {said}'[:400])


def _ready(endpoint: Endpoint, socket: PlainWebsocket, came: Mapping[str, Any]) -> Session:
    protocol = came.get(PROTOCOL, PROTOCOLS[0])
    if protocol not in PROTOCOLS:
        raise HandshakeRefused(
            f'{endpoint} speaks protocol {protocol!r:.40}; {list(PROTOCOLS)} are spoken here'
        )
    has_id = isinstance(came.get(SESSION), str)
    if not isinstance(came.get(META, {}), Mapping) or has_id != (protocol > 1):
        raise HandshakeRefused(
            f'{endpoint} is ready without what protocol {protocol} says: metadata, and an id of '
            'the session from protocol 2 on'
        )
    return Session(socket, came, protocol)


def _refusal(endpoint: Endpoint, came: Mapping[str, Any]) -> str:
    if ERROR in came:
        return f'{endpoint} refused the session: {excerpt(came[ERROR])}'
    return (
        f'{endpoint} is no positronic server: a status was expected, and a mapping with the keys '
        f'{excerpt(sorted(map(str, came)))} came'
    )


def _packed(request: Any) -> bytes:
    try:
        packed = pack(request)
    except MsgpackError as error:
        raise PolicyError(f'the observation cannot be sent: {error}') from error
    if len(packed) > MESSAGE_BYTES:
        raise PolicyError(
            f'the observation takes {len(packed)} bytes, and a positronic server reads at most '
            f'{MESSAGE_BYTES}: give its frames a camera in server_keys, or have the server '
            'declare restrict_image_size'
        )
    return packed


def _read_answer(message: Message) -> Answer:
    try:
        came = _read_map(message)
    except MsgpackError as error:
        raise PolicyError(f'the answer could not be read: {error}') from error
    if ERROR in came:
        log.error('the server answers an error:\n%s', logged(came[ERROR]))
        raise PolicyError(excerpt(came[ERROR]))
    if RESULT not in came:
        raise PolicyError(
            f'the answer holds no {RESULT!r}; it has {excerpt(sorted(map(str, came)))}: is it a '
            'positronic server?'
        )
    said = came.get(TIMING)
    timing = said if isinstance(said, Mapping) else {}
    return Answer(came[RESULT], {k: float(v) for k, v in timing.items() if _is_time(k, v)})


def _is_time(name: Any, value: Any) -> bool:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(name, str) and number and value >= 0


def _read_map(message: Message) -> Mapping[Any, Any]:
    if message.is_text:
        raise MsgpackError(f'a text came: {excerpt(message.text)}')
    value = unpack(message.data)
    if not isinstance(value, Mapping):
        raise MsgpackError(f'a {type(value).__name__} came, and a mapping was expected')
    return value

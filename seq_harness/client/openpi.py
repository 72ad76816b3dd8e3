"""The wire of openpi's policy server, and of the many that speak as it does."""

from __future__ import annotations

from collections.abc import Mapping
import logging
import time
from typing import Any

from seq_harness.client.cancel import Cancel
from seq_harness.client.endpoint import Endpoint
from seq_harness.client.key_map import KeyMap
from seq_harness.client.key_reading import read_keeps_state, read_key_map
from seq_harness.client.plain_link import Answered, Talk
from seq_harness.client.plain_policy import (
    plain_endpoint,
    plain_policy,
    PlainPolicy,
    refuse_options,
)
from seq_harness.client.plain_websocket import (
    Message,
    PlainWebsocket,
    Waiting,
)
from seq_harness.client.transport import (
    AnswerTimedOut,
    ConnectionLost,
    HandshakeRefused,
    Unreachable,
)
from seq_harness.client.websocket_opening import connected_websocket
from seq_harness.contract import wire
from seq_harness.contract.connect import WorkerDeclaration
from seq_harness.contract.excerpt import excerpt, logged
from seq_harness.contract.msgpack import MsgpackError
from seq_harness.contract.numpy_msgpack import pack, unpack
from seq_harness.playback.uplink import PolicyError

PORT = 8000
"""Where openpi's own command serves unless it is told otherwise."""

FINAL_CLOSES = (1002, 1003, 1007, 1008, 1009, 1010)
"""Codes of a close that will come again: a wrong path is answered by 1008 on some servers."""

log = logging.getLogger('seq_harness.client')

Session = tuple[PlainWebsocket, Mapping[Any, Any]]
"""A websocket, and what its server announced on it."""


class OpenpiTalk:
    """
    A connection after its greeting: binary messages both ways, and no word for an episode.

    A text is a traceback of the server, after which the connection is dead.
    """

    def __init__(self, socket: PlainWebsocket, metadata: Mapping[Any, Any], keys: KeyMap) -> None:
        self._socket = socket
        self._keys = keys
        self.greeting = repr(metadata)

    @property
    def is_open(self) -> bool:
        """Tell whether it was still open when it was last heard of; answers pings."""
        return self._socket.is_open

    def begin(self, episode_id: str, within_s: float, cancel: Cancel) -> None:
        """Say nothing: the wire has no word for it."""

    def ask(
        self, observation: Mapping[str, Any], within_s: float, cancel: Cancel, waiting: Waiting
    ) -> Answered:
        """Ask about an observation (Talk)."""
        message = pack(self._keys.request(observation))
        answer = answer_to(self._socket, message, within_s, cancel, waiting)
        return Answered(self._keys.answer(answer), infer_ms_of(answer))

    def abort(self) -> None:
        """End the connection at once; whoever waits on it is told."""
        self._socket.abort()

    def close(self) -> None:
        """Say goodbye and end the connection."""
        self._socket.close()


class OpenpiDialect:
    """What sets openpi's wire apart (Dialect)."""

    def __init__(self, endpoint: Endpoint, keys: KeyMap, keeps_state: bool) -> None:
        self._endpoint = endpoint
        self._keys = keys
        self.address = str(endpoint)
        self.keeps_state = keeps_state

    def open(self, within_s: float, cancel: Cancel, waiting: Waiting) -> Talk:
        """Connect and be greeted (Dialect)."""
        socket, metadata = greeted(self._endpoint, within_s, cancel, waiting)
        return OpenpiTalk(socket, metadata, self._keys)

    def declare(self, talk: Talk) -> WorkerDeclaration:
        """Say what the key map says: the greeting declares nothing that can be relied upon."""
        return self._keys.declaration()


def openpi_policy(
    url: str, *, server: Mapping[str, Any] | None = None, **options: Any
) -> PlainPolicy:
    """
    Make the policy at `openpi+ws://host[:port]`; `server` holds the parameters `server_*`.

    Raises
    ------
    UnknownScheme, EndpointRefused, KeyMapRefused, ValueError
        The URL, the key map or an option is not one of this wire's.

    """
    refuse_options('openpi', options, 'via_gateway', 'model', 'embodiment', 'seed', 'params')
    said = server or {}
    endpoint = plain_endpoint(url, options, port=PORT)
    dialect = OpenpiDialect(endpoint, read_key_map(said), read_keeps_state(said))
    return plain_policy(dialect, options)


def greeted(endpoint: Endpoint, within_s: float, cancel: Cancel, waiting: Waiting) -> Session:
    """
    Connect and wait for what the server announces: one mapping, perhaps empty.

    The whole of `within_s` may pass before it does, for it greets nobody while it infers.

    Raises
    ------
    Unreachable
        Nobody greeted in time.
    HandshakeRefused
        The peer refused the key, or is no such server.

    """
    deadline_s = time.monotonic() + within_s
    headers = {}
    if endpoint.token is not None:
        headers[wire.HEADER_AUTHORIZATION] = wire.OPENPI_API_KEY + endpoint.token
    socket = connected_websocket(endpoint, within_s, cancel, headers=headers)
    try:
        left_s = deadline_s - time.monotonic()
        return socket, _announced(endpoint, socket.next_message(left_s, cancel, waiting))
    except (AnswerTimedOut, ConnectionLost) as error:
        socket.close()
        if socket.close_code in FINAL_CLOSES:
            raise HandshakeRefused(f'{endpoint} refuses to greet: {error}') from error
        raise Unreachable(f'{endpoint} did not greet: {error}') from error
    except BaseException:
        socket.close()
        raise


def answer_to(
    socket: PlainWebsocket,
    message: bytes,
    within_s: float,
    cancel: Cancel,
    waiting: Waiting | None = None,
) -> Any:
    """
    Send a message and return the decoded answer.

    Raises
    ------
    PolicyError
        The server answered a text, which is its traceback, or what cannot be read; the
        connection is closed.
    AnswerTimedOut, ConnectionLost
        As `PlainWebsocket.exchange`.

    """
    came = socket.exchange(message, within_s, cancel, waiting)
    if came.is_text:
        socket.close()
        log.error('the server answers an error:\n%s', logged(came.text))
        raise PolicyError(told(came))
    try:
        return unpack(came.data)
    except MsgpackError as error:
        socket.close()
        raise PolicyError(f'the answer of the server cannot be read: {error}') from error


def told(came: Message) -> str:
    """Return what a traceback comes to: its last line; of another text its beginning."""
    return excerpt(came.text) or 'an empty text, where an answer was expected'


def infer_ms_of(answer: Any) -> float | None:
    """Return the server's own time for an answer, in ms, where it says so."""
    timing = answer.get(wire.OPENPI_TIMING) if isinstance(answer, Mapping) else None
    said = timing.get(wire.OPENPI_INFER_MS) if isinstance(timing, Mapping) else None
    return float(said) if isinstance(said, (int, float)) else None


def _announced(endpoint: Endpoint, came: Message) -> Mapping[Any, Any]:
    if came.is_text:
        raise HandshakeRefused(f'{endpoint} greets with the text {told(came)!r}')
    try:
        metadata = unpack(came.data)
    except MsgpackError as error:
        raise HandshakeRefused(f'{endpoint} is no openpi server: {error}') from error
    if not isinstance(metadata, Mapping):
        raise HandshakeRefused(
            f'{endpoint} is no openpi server: a mapping was expected as its greeting, got '
            f'{type(metadata).__name__}'
        )
    return metadata

"""Messages of a server that parts, joins and mixes its frames as it likes, on a real socket."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
import os
import signal
import socket
import threading
import time

import pytest
from seq_harness.client import plain_websocket
from seq_harness.client.cancel import Cancel
from seq_harness.client.endpoint import Endpoint
from seq_harness.client.plain_websocket import (
    AnswerTooLong,
    Message,
    PlainWebsocket,
)
from seq_harness.client.transport import AnswerTimedOut, ConnectionLost, HandshakeRefused
from seq_harness.client.websocket_opening import connected_websocket
from support.waiting import AT_ONCE_S, PATIENCE_S
from websockets.frames import Close, CloseCode, Frame, Opcode
from websockets.http11 import Request
from websockets.server import ServerProtocol

MOST = 100_000


def sent(opcode: Opcode, data: bytes, *, fin: bool = True, masked: bool = False) -> bytes:
    return Frame(opcode, data, fin).serialize(mask=masked)


BINARY = sent(Opcode.BINARY, b'an answer')
TEXT = sent(Opcode.TEXT, 'ein Wörtchen'.encode())
PING = sent(Opcode.PING, b'there?')
FRAGMENTS = [
    sent(Opcode.BINARY, b'one ', fin=False),
    sent(Opcode.CONT, b'two ', fin=False),
    sent(Opcode.CONT, b'three'),
]


@pytest.fixture(autouse=True)
def _short_goodbyes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait but a moment for a peer that answers no close."""
    monkeypatch.setattr(plain_websocket, 'CLOSE_S', 0.1)


class Peer:
    """A server for one connection: shakes hands, says what a test tells it to, and listens."""

    def __init__(self, greeting: bytes = b'', refusal: bytes | None = None) -> None:
        """`greeting` follows the handshake in the same piece; `refusal` is sent in its place."""
        self._listener = socket.create_server(('127.0.0.1', 0))
        self._greeting = greeting
        self._refusal = refusal
        self._open = threading.Event()
        self._thread = threading.Thread(target=self._welcome, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f'ws://127.0.0.1:{self._listener.getsockname()[1]}/'

    def say(self, *pieces: bytes) -> None:
        """Send each piece by itself."""
        assert self._open.wait(PATIENCE_S)
        for piece in pieces:
            self.socket.sendall(piece)

    def heard(self, frames: int) -> list[Frame]:
        """Return the next frames of the client."""
        protocol, events = self._protocol, list[Frame]()
        while len(events) < frames:
            protocol.receive_data(self.socket.recv(1 << 16))
            events += [event for event in protocol.events_received() if isinstance(event, Frame)]
        return events

    def drain(self) -> None:
        """Read all that comes, as fast as it does."""
        with suppress(OSError):
            while self.socket.recv(1 << 20):
                pass

    def close(self) -> None:
        self._listener.close()
        if self._open.is_set():
            self.socket.close()

    def _welcome(self) -> None:
        self.socket, _ = self._listener.accept()
        self.socket.settimeout(PATIENCE_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._protocol = protocol = ServerProtocol(max_size=None)
        requests: Sequence[object] = ()
        while not requests:
            protocol.receive_data(self.socket.recv(1 << 16))
            requests = protocol.events_received()
        assert isinstance(requests[0], Request)
        protocol.send_response(protocol.accept(requests[0]))
        shaken = b''.join(protocol.data_to_send())
        self.socket.sendall((shaken if self._refusal is None else self._refusal) + self._greeting)
        if self._refusal is not None:
            self.socket.close()
        self._open.set()


@contextmanager
def talk(peer: Peer) -> Iterator[PlainWebsocket]:
    endpoint = Endpoint.read(peer.url, max_message_bytes=MOST)
    try:
        opened = connected_websocket(endpoint, PATIENCE_S, Cancel(), headers={})
        try:
            yield opened
        finally:
            opened.abort()
            opened.close()
    finally:
        peer.close()


def received(talking: PlainWebsocket, within_s: float = PATIENCE_S) -> Message:
    return talking.next_message(within_s, Cancel())


@pytest.mark.parametrize(
    ('pieces', 'expected'),
    [
        ([BINARY], [b'an answer']),
        ([BINARY + TEXT], [b'an answer', 'ein Wörtchen'.encode()]),
        ([bytes([byte]) for byte in BINARY], [b'an answer']),
        ([BINARY[:1], BINARY[1:5], BINARY[5:] + TEXT[:3], TEXT[3:]],
         [b'an answer', 'ein Wörtchen'.encode()]),
        (FRAGMENTS, [b'one two three']),
        ([b''.join(FRAGMENTS)], [b'one two three']),
        ([FRAGMENTS[0] + PING, FRAGMENTS[1], PING + FRAGMENTS[2] + BINARY],
         [b'one two three', b'an answer']),
        ([BINARY + FRAGMENTS[0], FRAGMENTS[1] + FRAGMENTS[2]], [b'an answer', b'one two three']),
        ([sent(Opcode.BINARY, b'')], [b'']),
        ([sent(Opcode.BINARY, bytes(MOST))], [bytes(MOST)]),
    ],
    ids=['whole', 'two', 'bytes', 'across', 'fragments', 'fragments-at-once', 'pings-between',
         'fragments-behind', 'empty', 'longest'],
)  # fmt: skip
def test_messages_come_whole_and_in_order(pieces: Sequence[bytes], expected: list[bytes]) -> None:
    peer = Peer()
    with talk(peer) as talking:
        peer.say(*pieces)
        came = [received(talking) for _ in expected]
    assert [message.data for message in came] == expected
    assert [message.is_text for message in came] == [b'W' in data for data in expected]


@pytest.mark.parametrize('at_once', [1, 7, 1 << 16])
@pytest.mark.parametrize('cut', [0, 1, 2, 6, len(TEXT)])
def test_what_follows_the_handshake_in_its_own_piece_is_read(
    monkeypatch: pytest.MonkeyPatch, cut: int, at_once: int
) -> None:
    monkeypatch.setattr(plain_websocket, 'CHUNK_BYTES', at_once)
    peer = Peer(greeting=BINARY + TEXT[:cut])
    with talk(peer) as talking:
        peer.say(TEXT[cut:] + BINARY)
        came = [received(talking).data for _ in range(3)]
    assert came == [b'an answer', 'ein Wörtchen'.encode(), b'an answer']


def test_a_ping_is_answered_between_messages_and_while_nobody_waits() -> None:
    peer = Peer()
    with talk(peer) as talking:
        peer.say(BINARY + PING)
        assert received(talking).data == b'an answer'
        (pong,) = peer.heard(1)
        assert (pong.opcode, bytes(pong.data)) == (Opcode.PONG, b'there?')
        peer.say(PING)
        until_s = time.monotonic() + PATIENCE_S
        peer.socket.setblocking(False)
        while talking.is_open and time.monotonic() < until_s:
            try:
                assert peer.heard(1)[0].opcode is Opcode.PONG
                break
            except BlockingIOError:
                continue
        else:
            pytest.fail('the ping was not answered')


@pytest.mark.parametrize(
    'pieces',
    [
        [sent(Opcode.BINARY, bytes(MOST + 1))],
        [sent(Opcode.BINARY, bytes(MOST + 1))[:10]],
        [sent(Opcode.BINARY, bytes(MOST + 1))[:1], sent(Opcode.BINARY, bytes(MOST + 1))[1:500]],
        [sent(Opcode.BINARY, bytes(MOST), fin=False), sent(Opcode.CONT, b'x')],
    ],
    ids=['whole', 'its-head', 'its-beginning', 'fragments'],
)
def test_a_message_that_is_too_long_is_never_taken(pieces: Sequence[bytes]) -> None:
    peer = Peer()
    with talk(peer) as talking:
        sending = threading.Thread(target=peer.say, args=pieces, daemon=True)
        sending.start()
        with pytest.raises(AnswerTooLong):
            received(talking)
        assert not talking.is_open
        assert Close.parse(bytes(peer.heard(1)[0].data)).code == CloseCode.MESSAGE_TOO_BIG


@pytest.mark.parametrize(
    'wrong',
    [
        sent(Opcode.BINARY, b'from a server', masked=True),
        b'\xc2\x01x',
        b'\x83\x01x',
        sent(Opcode.CONT, b'of nothing'),
        FRAGMENTS[0] + BINARY,
        b'\x09\x00',
    ],
    ids=['masked', 'reserved', 'unknown', 'no-beginning', 'no-end', 'parted-ping'],
)
def test_what_breaks_the_protocol_ends_the_connection_and_is_no_message(wrong: bytes) -> None:
    peer = Peer()
    with talk(peer) as talking:
        peer.say(wrong + BINARY)
        with pytest.raises(ConnectionLost):
            received(talking)
        assert not talking.is_open


@pytest.mark.parametrize('left', [b'', BINARY[:1], BINARY[:4]])
def test_a_connection_that_ends_within_a_message_is_lost(left: bytes) -> None:
    peer = Peer()
    with talk(peer) as talking:
        peer.say(BINARY + left)
        peer.socket.shutdown(socket.SHUT_WR)
        assert received(talking).data == b'an answer'
        with pytest.raises(ConnectionLost):
            received(talking)


def test_the_code_of_a_close_behind_a_message_is_known_after_the_message() -> None:
    peer = Peer()
    with talk(peer) as talking:
        peer.say(BINARY + sent(Opcode.CLOSE, Close(CloseCode.GOING_AWAY, 'bye').serialize()))
        assert received(talking).data == b'an answer'
        with pytest.raises(ConnectionLost, match='1001'):
            received(talking)
        assert talking.close_code == CloseCode.GOING_AWAY


@pytest.mark.parametrize('within_s', [0.05, 0.2])
def test_a_wait_ends_in_its_time_whatever_was_waited_before(within_s: float) -> None:
    peer = Peer()
    with talk(peer) as talking:
        peer.say(BINARY)
        received(talking)
        began_s = time.monotonic()
        with pytest.raises(AnswerTimedOut):
            received(talking, within_s)
        assert within_s <= time.monotonic() - began_s < AT_ONCE_S


@contextmanager
def interrupted(every_s: float) -> Iterator[None]:
    """Interrupt every wait of the main thread over and over, as a stopped process is."""
    before = signal.signal(signal.SIGALRM, lambda number, frame: None)
    signal.setitimer(signal.ITIMER_REAL, every_s, every_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def test_a_wait_that_is_interrupted_ends_in_its_time_all_the_same() -> None:
    peer = Peer()
    with talk(peer) as talking, interrupted(0.05):
        began_s = time.monotonic()
        with pytest.raises(AnswerTimedOut):
            received(talking, 0.2)
        with talking.used(), pytest.raises(ConnectionLost):
            talking.send(bytes(64 << 20), time.monotonic() + 0.2)
        assert 0.2 <= time.monotonic() - began_s < AT_ONCE_S


def test_a_message_is_given_up_at_its_deadline_however_fast_it_is_taken() -> None:
    peer = Peer()
    with talk(peer) as talking:
        peer.say(BINARY)
        received(talking)
        reading = threading.Thread(target=peer.drain, daemon=True)
        reading.start()
        with talking.used(), pytest.raises(ConnectionLost):
            talking.send(bytes(64 << 20), time.monotonic())
        assert not talking.is_open
        reading.join(PATIENCE_S)


def test_a_message_that_nobody_takes_is_given_up_in_time() -> None:
    peer = Peer()
    with talk(peer) as talking:
        began_s = time.monotonic()
        with talking.used(), pytest.raises(ConnectionLost):
            talking.send(bytes(64 << 20), began_s + 0.3)
        assert 0.2 < time.monotonic() - began_s < AT_ONCE_S


def test_a_message_whose_sending_stalls_for_a_while_arrives_whole() -> None:
    message, peer = os.urandom(24 << 20), Peer()
    with talk(peer) as talking:
        peer.say(BINARY)
        received(talking)
        heard: list[Frame] = []
        # By then a part of the message fills all there is between the two.
        listening = threading.Timer(0.2, lambda: heard.extend(peer.heard(1)))
        listening.start()
        with talking.used():
            talking.send(message, time.monotonic() + PATIENCE_S)
        listening.join(PATIENCE_S)
    assert bytes(heard[0].data) == message


@pytest.mark.parametrize('at_once', [1, 7, 50, 1 << 16])
def test_a_refusal_is_told_with_its_body_however_it_comes(
    monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(plain_websocket, 'CHUNK_BYTES', at_once)
    body = b'the robot is not welcome here'
    head = b'HTTP/1.1 403 Forbidden\r\nContent-Length: %d\r\n\r\n' % len(body)
    peer = Peer(refusal=head + body)
    with pytest.raises(HandshakeRefused, match='403'), talk(peer):
        pass

"""Peers that mean a worker no good: they find it bounded, and keep nobody else out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
import contextlib
import json
from pathlib import Path
import select
import socket
import ssl
import struct
import subprocess
import time
from typing import Any

import pytest
from seq_harness.contract.msgpack import pack
from seq_harness.worker.limits import Limits
from seq_harness.worker.running import served
from seq_harness.worker.server import Access
from support.waiting import PATIENCE_S
from websockets.exceptions import ConnectionClosed, WebSocketException
from websockets.frames import Frame, Opcode
from worker.worker_policies import Gate, serving
from worker.worker_wire import Client, client_of

FEW = Limits(connections=4, strangers=4, stranger_s=1.0)
LONGER = Limits(connections=4, strangers=4, stranger_s=5.0)
"""As few, where a robot must be let in before its time is over, on a busy machine too."""
PATIENT = Limits(connections=4, strangers=4, stranger_s=600)
PING = b'GET /ping HTTP/1.1\r\nHost: worker\r\n\r\n'


class Echo:
    def infer(self, inputs: Any) -> Any:
        return inputs


def address_of(url: str) -> tuple[str, int]:
    host, port = url.split('/')[2].split(':')
    return host, int(port)


def stranger(url: str) -> socket.socket:
    return socket.create_connection(address_of(url), timeout=PATIENCE_S)


def read_to_end(peer: socket.socket) -> bytes:
    """Return what comes until the worker closes; fail where it does not in time."""
    came = b''
    with contextlib.suppress(ConnectionResetError):
        while more := peer.recv(65536):
            came += more
    return came


def answer_of(peer: socket.socket) -> tuple[int, Any]:
    """Return the status and the body of one answer over HTTP."""
    came = b''
    while b'\r\n\r\n' not in came:
        came += peer.recv(65536)
    head, _, body = came.partition(b'\r\n\r\n')
    length = int(head.lower().split(b'content-length:')[1].split()[0])
    while len(body) < length:
        body += peer.recv(65536)
    return int(head.split()[1]), json.loads(body)


def post(body: bytes, path: str = '/act', **headers: str) -> bytes:
    named = ''.join(f'{name.replace("_", "-")}: {value}\r\n' for name, value in headers.items())
    head = f'POST {path} HTTP/1.1\r\nHost: worker\r\n{named}Content-Length: {len(body)}\r\n\r\n'
    return head.encode('latin-1') + body


@pytest.fixture(scope='module')
def url() -> Iterator[str]:
    with served(Echo(), limits=Limits(message_bytes=1 << 20)) as address:
        with client_of(address) as client:
            client.connect()
        yield address


def test_silent_strangers_make_room_for_whoever_speaks() -> None:
    with served(Echo(), limits=PATIENT) as url, contextlib.ExitStack() as stack:
        client = stack.enter_context(client_of(url))
        client.connect()
        silent = [stack.enter_context(stranger(url)) for _ in range(60)]
        for _ in range(3):
            with stranger(url) as other:
                other.sendall(PING)
                assert answer_of(other)[0] == 200
        for peer in silent[:40]:
            assert read_to_end(peer) == b''
        assert client.act(1).outputs == 1


def test_a_stranger_that_says_nothing_is_turned_out_in_time() -> None:
    with served(Echo(), limits=FEW) as url, stranger(url) as silent:
        assert read_to_end(silent) == b''


def test_a_head_that_comes_drop_by_drop_does_not_keep_a_connection() -> None:
    with served(Echo(), limits=FEW) as url, stranger(url) as slow:
        slow.sendall(b'GET /ping HTTP/1.1\r\n')
        until = time.monotonic() + PATIENCE_S
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            while not select.select([slow], [], [], 0.05)[0]:
                assert time.monotonic() < until
                slow.sendall(b'A: b\r\n')
            assert slow.recv(1) == b''


def test_a_stranger_that_shows_a_wrong_token_stays_one() -> None:
    with served(Echo(), limits=FEW, access=Access('secret')) as url, stranger(url) as peer:
        peer.sendall(post(b'{"inputs": 1}', Authorization='Bearer wrong'))
        assert answer_of(peer)[0] == 401
        assert read_to_end(peer) == b''


def test_whoever_pings_without_a_token_is_answered_for_as_long_as_it_pings() -> None:
    with served(Echo(), limits=LONGER, access=Access('secret')) as url, stranger(url) as peer:
        until = time.monotonic() + 2 * LONGER.stranger_s
        while time.monotonic() < until:
            peer.sendall(PING)
            assert answer_of(peer)[0] == 200
            select.select([peer], [], [], LONGER.stranger_s / 50)


def test_a_robot_that_says_nothing_for_long_stays_connected() -> None:
    with served(Echo(), limits=LONGER) as url, client_of(url) as client:
        client.connect()
        with stranger(url) as silent:
            # The stranger is turned out: so long the robot was silent too.
            read_to_end(silent)
        assert client.act(1).outputs == 1


def test_connections_that_were_let_in_are_bounded_too() -> None:
    with served(Echo(), limits=PATIENT) as url, contextlib.ExitStack() as stack:
        clients = [stack.enter_context(client_of(url)) for _ in range(8)]
        assert [client.connect().status for client in clients] == [200] * 8
        with pytest.raises((OSError, WebSocketException)):
            stack.enter_context(client_of(url, open_timeout=PATIENCE_S))
        clients[0].socket.close()
        assert clients[1].act(1).outputs == 1
        late = _until(lambda: stack.enter_context(client_of(url)))
        assert late.connect().status == 200


def _until(attempt: Callable[[], Any]) -> Any:
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            return attempt()
        except (OSError, WebSocketException):
            if time.monotonic() > until:
                raise


def test_peers_that_never_shake_hands_keep_no_robot_out(tmp_path: Path) -> None:
    cert, key = tmp_path / 'cert.pem', tmp_path / 'key.pem'
    subprocess.run(
        ['openssl', 'req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '1', '-subj',
         '/CN=127.0.0.1', '-keyout', str(key), '-out', str(cert)],
        check=True, capture_output=True,
    )  # fmt: skip
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(cert, key)
    trusting = ssl.create_default_context()
    trusting.check_hostname = False
    trusting.verify_mode = ssl.CERT_NONE
    with (
        served(Echo(), limits=LONGER, access=Access(tls=tls)) as url,
        contextlib.ExitStack() as stack,
    ):
        silent = [stack.enter_context(stranger(url)) for _ in range(20)]
        silent[-1].sendall(b'GET / HTTP/1.1\r\n\r\n')
        client = stack.enter_context(client_of(url, ssl=trusting))
        client.connect()
        for peer in silent:
            read_to_end(peer)
        assert client.act(1).outputs == 1


@pytest.mark.parametrize(
    'head',
    [
        b'GET /' + b'a' * 100_000 + b' HTTP/1.1\r\n\r\n',
        b'GET /ping HTTP/1.1\r\nA: ' + b'a' * 1_000_000 + b'\r\n\r\n',
        b'GET /ping HTTP/1.1\r\n' + b'A: b\r\n' * 100_000 + b'\r\n',
        b'\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03' + bytes(500),
        b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
        b'POST /act HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
        b'POST /act HTTP/1.1\r\nContent-Length: -1\r\n\r\n',
        b'GET /\xff\xfe HTTP/1.1\r\nHost: worker\r\n\r\n',
    ],
    ids=['long-line', 'long-header', 'headers', 'tls', 'http2', 'lengths', 'negative', 'path'],
)
def test_what_is_no_request_is_refused_and_closed(url: str, head: bytes) -> None:
    with stranger(url) as peer:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            peer.sendall(head)
        came = read_to_end(peer)
    assert came[:12] in (b'HTTP/1.0 400', b'HTTP/1.1 400', b'')


@pytest.mark.parametrize(
    'body',
    [
        b'{"inputs": ' + b'[' * 900 + b']' * 900 + b'}',
        b'{"inputs": "\\ud800"}',
        b'{"inputs": "\xff"}',
        b'[' + b'[],' * 300_000 + b'0]',
    ],
    ids=['deep', 'surrogate', 'utf8', 'many'],
)
def test_json_that_no_policy_should_see_is_refused(url: str, body: bytes) -> None:
    with stranger(url) as peer:
        peer.sendall(post(body))
        status, told = answer_of(peer)
    assert (status, told['code']) == (400, 'invalid_request')


def test_headers_that_are_no_text_harm_nobody(url: str) -> None:
    with stranger(url) as peer:
        odd = {'X_Seq_Request_Id': '\xff\xfe', 'X_Seq_Session': '\xff', 'Content_Type': ';;\xff'}
        peer.sendall(post(b'"x"', **odd, Accept='application/json'))
        status, told = answer_of(peer)
    # Of an unknown type, the bytes went to the policy as they came, and come back as such.
    assert (status, told['code']) == (400, 'invalid_request')


def begin(client: Client, message: bytes, sent: int) -> bytes:
    """Send the first bytes of a message, and return what is left of its frame."""
    frame = Frame(Opcode.BINARY, message).serialize(mask=True)
    client.socket.socket.sendall(frame[:sent])
    return frame[sent:]


def test_the_largest_of_too_many_half_sent_messages_gives_way() -> None:
    limits = Limits(message_bytes=1 << 20, arriving_bytes=0)
    message = pack({'id': 1, 'method': 'act', 'body': {'inputs': bytes(1_000_000)}})
    with served(Echo(), limits=limits) as url, contextlib.ExitStack() as stack:
        clients = [stack.enter_context(client_of(url)) for _ in range(3)]
        for client in clients:
            client.connect()
        largest, *others = clients
        begin(largest, message, 900_000)
        for _ in range(10):  # a turn of the loop each, so that it has arrived before the others
            others[0].ask('ping', {})
        rests = [begin(client, message, 650_000) for client in others]
        with pytest.raises(ConnectionClosed):
            largest.socket.recv(PATIENCE_S)
        for client, rest in zip(others, rests, strict=True):
            client.socket.socket.sendall(rest)
            assert client.receive(1).outputs == bytes(1_000_000)


def test_nothing_is_run_of_a_connection_that_is_turned_out() -> None:
    ran: list[str] = []

    class Notes:
        def infer(self, inputs: Any) -> None:
            ran.append(inputs['who'])

    limits = Limits(message_bytes=1 << 20, arriving_bytes=0)
    body = {'inputs': {'who': 'largest', 'image': bytes(1_000_000)}}
    message = pack({'id': 1, 'method': 'act', 'body': body})
    half = (limits.message_bytes * 2 - len(message)) // 2 + 1_000
    with served(Notes(), limits=limits) as url, contextlib.ExitStack() as stack:
        largest, *others = [stack.enter_context(client_of(url)) for _ in range(3)]
        largest.connect()
        for other in others:
            begin(other, message, half)
        rest = begin(largest, message, len(message) - 6_000)
        with client_of(url) as asking:
            for _ in range(10):  # a turn of the loop each, so that all that has arrived
                asking.ask('ping', {})
            largest.socket.socket.sendall(rest)
            with pytest.raises(ConnectionClosed):
                largest.socket.recv(PATIENCE_S)
            asking.act({'who': 'another'})
    assert ran == ['another']


def test_a_body_that_is_half_sent_counts_as_a_message_does() -> None:
    limits = Limits(message_bytes=1 << 20, arriving_bytes=0)
    whole = post(b'7' * 1_000_000)
    with served(Echo(), limits=limits) as url, contextlib.ExitStack() as stack:
        with client_of(url) as client:
            client.connect()
        peers = [stack.enter_context(stranger(url)) for _ in range(3)]
        for peer, sent in zip(peers, (600_000, 900_000, 650_000), strict=True):
            peer.sendall(whole[:sent])
        assert read_to_end(peers[1]) == b''
        with client_of(url) as client:
            assert client.act(1).outputs == 1


def test_what_has_been_read_whole_counts_no_more() -> None:
    limits = Limits(message_bytes=1 << 20, arriving_bytes=0)
    with served(Echo(), limits=limits) as url, client_of(url) as client, stranger(url) as peer:
        client.connect()
        for _ in range(5):
            assert len(client.act(bytes(900_000)).outputs) == 900_000
            peer.sendall(post(b'{"inputs": "' + b'a' * 900_000 + b'"}'))
            assert answer_of(peer)[0] == 200


def test_requests_that_nobody_reads_the_answers_of_are_held_back(url: str) -> None:
    with stranger(url) as flood:
        flood.settimeout(0.5)
        with pytest.raises(TimeoutError):
            flood.sendall(PING * 1_000_000)
    with stranger(url) as peer:
        peer.sendall(PING)
        assert answer_of(peer)[0] == 200


def test_a_peer_that_is_reset_in_its_act_leaves_the_worker_serving() -> None:
    gate = Gate()
    with serving(gate) as client:
        with stranger(
            f'x//{client.socket.remote_address[0]}:{client.socket.remote_address[1]}'
        ) as peer:
            peer.sendall(post(b'{"inputs": 1}'))
            assert gate.entered.acquire(timeout=PATIENCE_S)
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
        gate.leave.release()
        gate.leave.release()
        assert client.act(2).outputs == {'inputs': 2, 'run': 2}


def test_the_same_ids_on_two_connections_are_two_requests(url: str) -> None:
    with client_of(url) as one, client_of(url) as other:
        sent = [
            client.send('act', {'inputs': name}) for client, name in ((one, 'a'), (other, 'b'))
        ]
        assert sent[0] == sent[1]
        assert one.receive(sent[0]).outputs == 'a'
        assert other.receive(sent[1]).outputs == 'b'

"""Who and what a worker does not let in, on real sockets."""

from __future__ import annotations

from collections.abc import Iterator
import random
import socket
import struct
from typing import Any

import pytest
from seq_harness.contract.msgpack import pack
from seq_harness.worker.limits import Limits
from seq_harness.worker.running import served
from seq_harness.worker.server import Access, is_loopback, NotAllowed
from support.waiting import PATIENCE_S
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect
from worker.worker_wire import client_of, raw_websocket


class Echo:
    def infer(self, inputs: Any) -> Any:
        return inputs


@pytest.fixture(scope='module')
def url() -> Iterator[str]:
    with served(Echo(), limits=Limits(message_bytes=1 << 20)) as address:
        yield address


def code_of(closed: ConnectionClosed) -> int | None:
    return None if closed.rcvd is None else closed.rcvd.code


def close_code(url: str, *messages: str | bytes) -> int | None:
    """Send raw messages and return the code that the worker closes with."""
    with client_of(url) as client:
        for message in messages:
            client.socket.send(message)
        with pytest.raises(ConnectionClosed) as closed:
            client.socket.recv(PATIENCE_S)
    return code_of(closed.value)


def handshake_status(url: str, **options: Any) -> InvalidStatus:
    with pytest.raises(InvalidStatus) as refused:
        connect(url, compression=None, ping_interval=None, **options)
    return refused.value


def test_a_text_message_is_closed_with_1003(url: str) -> None:
    assert close_code(url, '{"id": 1}') == 1003


@pytest.mark.parametrize(
    'message',
    [
        b'', b'\xc1', b'\x81', pack(1) + pack(1), pack([]), pack({}), pack({'id': 1}),
        pack({'id': 'a', 'method': 'ping'}), pack({'id': True, 'method': 'ping'}),
        pack({'id': 1, 'method': 3}), b'\xd4\x00\x00', b'\xdd\xff\xff\xff\xff', b'\x91' * 100,
    ],
)  # fmt: skip
def test_a_message_that_is_no_request_is_closed_with_1007(url: str, message: bytes) -> None:
    assert close_code(url, message) == 1007


def test_a_message_over_the_limit_is_closed_with_1009(url: str) -> None:
    assert close_code(url, b'\xc6' + bytes(1 << 20)) == 1009


def test_a_message_as_long_as_the_limit_is_read(url: str) -> None:
    head = pack({'id': 1, 'method': 'ping', 'body': b''})[:-2]
    size = (1 << 20) - len(head) - 5
    with client_of(url) as client:
        client.socket.send(head + b'\xc6' + size.to_bytes(4, 'big') + bytes(size))
        assert client.receive(1).status == 200


def test_a_declared_length_over_the_limit_is_refused_before_any_of_it_comes(url: str) -> None:
    with raw_websocket(url) as raw:
        raw.sendall(b'\x82\xff' + struct.pack('>Q', 1 << 40) + b'mask')
        frame = raw.recv(4096)
    assert frame[0] == 0x88
    assert struct.unpack('>H', frame[2:4])[0] == 1009


def test_compression_is_not_agreed_to(url: str) -> None:
    with connect(url, subprotocols=['seq-harness.1']) as compressed:  # type: ignore[list-item]
        assert compressed.response is not None
        assert 'Sec-WebSocket-Extensions' not in compressed.response.headers
        assert compressed.subprotocol == 'seq-harness.1'


def test_another_subprotocol_is_refused(url: str) -> None:
    refused = handshake_status(url, subprotocols=['other.1'])
    assert refused.response.status_code == 400


def test_a_request_from_a_web_page_is_forbidden(url: str) -> None:
    refused = handshake_status(url, subprotocols=['seq-harness.1'], origin='http://evil.example')
    assert refused.response.status_code == 403
    assert b'"forbidden"' in bytes(refused.response.body or b'')


def test_another_path_is_not_found(url: str) -> None:
    refused = handshake_status(url + '/more', subprotocols=['seq-harness.1'])
    assert refused.response.status_code == 404


@pytest.mark.parametrize('shown', [None, '', 'wrong', 'secret2', 'secre', 'gehe\u00efm'])
def test_a_wrong_token_is_refused_on_the_handshake(shown: str | None) -> None:
    headers = {} if shown is None else {'Authorization': f'Bearer {shown}'}
    with served(Echo(), access=Access('secret')) as address:
        refused = handshake_status(
            address, subprotocols=['seq-harness.1'], additional_headers=headers
        )
    assert refused.response.status_code == 401
    assert 'x-seq-msgpack/1' in refused.response.headers['X-Seq-Act-Formats']
    assert b'"unauthenticated"' in bytes(refused.response.body or b'')


def test_a_token_without_the_word_bearer_is_refused() -> None:
    with served(Echo(), access=Access('secret')) as address:
        refused = handshake_status(
            address,
            subprotocols=['seq-harness.1'],
            additional_headers={'Authorization': 'secret'},
        )
    assert refused.response.status_code == 401


def test_the_right_token_is_let_in() -> None:
    access = Access('secret')
    with served(Echo(), access=access) as address, client_of(address, 'secret') as client:
        client.connect()
        assert client.act(5).outputs == 5


def test_the_token_is_not_shown() -> None:
    assert 'secret' not in repr(Access('secret'))


@pytest.mark.parametrize('host', ['0.0.0.0', '::', '192.168.1.2', 'example.org', ''])
def test_g37_an_address_that_others_reach_needs_a_token(host: str) -> None:
    assert not is_loopback(host)
    with pytest.raises(NotAllowed, match='token'):
        Access().check_host(host)
    Access('secret').check_host(host)


@pytest.mark.parametrize('host', ['127.0.0.1', '127.8.8.8', '::1', 'localhost'])
def test_the_loopback_needs_none(host: str) -> None:
    assert is_loopback(host)
    Access().check_host(host)


def test_the_worker_goes_on_after_thousands_of_malformed_bodies(url: str) -> None:
    rng = random.Random(7)
    good = pack({'inputs': {'state': [1.0, 2.0]}, 'episode_id': 'e', 'seq': 1, 'params': {}})
    methods = ['act', 'observe', 'connect', 'ping', 'episode_end', 'x']
    codes: set[int | None] = set()
    sent = 0
    while sent < 3000:
        with client_of(url) as client:
            try:
                while sent < 3000:
                    sent += 1
                    body = bytearray(good)
                    for _ in range(rng.randrange(1, 6)):
                        body[rng.randrange(len(body))] = rng.randrange(256)
                    head = pack({'id': sent, 'method': rng.choice(methods), 'body': None})[:-1]
                    client.socket.send(head + bytes(body))
                    answer = client.receive(sent)
                    assert answer.code != 'internal', answer.body
            except ConnectionClosed as closed:
                codes.add(code_of(closed))
    assert codes == {1007}
    with client_of(url) as client:
        assert client.act(5).outputs == 5


def test_connections_that_break_off_anywhere_leave_nothing_behind(url: str) -> None:
    rng = random.Random(3)
    message = pack({'id': 1, 'method': 'act', 'body': {'inputs': bytes(5000)}})
    frame = b'\x82\xfe' + struct.pack('>H', len(message)) + b'\0\0\0\0' + message
    for _ in range(100):
        with raw_websocket(url) as raw:
            raw.sendall(frame[: rng.randrange(len(frame) + 1)])
            if rng.random() < 0.5:
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
    with client_of(url) as client:
        while client.ask('ping', {}).body['act']['running']:
            continue
        assert client.act(5).outputs == 5

"""The worker answers the requests of the fixtures with their answers, byte for byte."""

from __future__ import annotations

from collections.abc import Iterator
import socket
from urllib.parse import urlsplit

import pytest
from seq_harness.contract.msgpack import unpack
from seq_harness.worker.running import served
from support.fixtures import check, fixture, Rows
from support.waiting import PATIENCE_S
from websockets.sync.client import connect
from websockets.typing import Subprotocol
from worker.worker_wire import client_of


@pytest.fixture
def url() -> Iterator[str]:
    with served(Rows()) as address:
        with client_of(address) as client:
            client.connect()
        yield address


def test_the_websockets_answers_are_those_of_the_fixtures(url: str) -> None:
    with connect(url, subprotocols=[Subprotocol('seq-harness.1')], compression=None) as ws:
        for name in ('connect', 'ping', 'act', 'observe', 'skip', 'act again', 'episode end'):
            ws.send(fixture('websocket', f'{name} request'))
            check('websocket', f'{name} answer', ws.recv(PATIENCE_S, decode=False))
        ws.send(fixture('websocket', 'wrong request'))
        refused = ws.recv(PATIENCE_S, decode=False)
        check('websocket', 'wrong answer', refused)
        assert unpack(refused)['status'] == 400


def test_https_answers_are_those_of_the_fixtures(url: str) -> None:
    host, _, port = urlsplit(url).netloc.partition(':')
    with socket.create_connection((host, int(port)), PATIENCE_S) as peer:
        for name in ('connect', 'ping', 'act', 'observe', 'skip', 'act again', 'episode end'):
            peer.sendall(fixture('http', f'{name} request'))
            check('http', f'{name} answer', whole(peer))


def whole(peer: socket.socket) -> bytes:
    """Receive one answer."""
    came = b''
    while b'\r\n\r\n' not in came:
        came += peer.recv(65536)
    head, _, body = came.partition(b'\r\n\r\n')
    length = int(head.lower().split(b'content-length:')[1].split()[0])
    while len(body) < length:
        body += peer.recv(65536)
    return head + b'\r\n\r\n' + body

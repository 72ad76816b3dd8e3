"""The client sends the requests of the fixtures, byte for byte, and reads their answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
import queue
import socket
import threading
import uuid

import numpy as np
import pytest
from seq_harness.client.sequence import SequencePolicy
from seq_harness.contract import wire
from seq_harness.contract.msgpack import pack, unpack
from seq_harness.playback.uplink import Step
from support.fixtures import check, EPISODE, fixture, OBSERVATION, REQUEST_IDS
from support.waiting import PATIENCE_S
from websockets.exceptions import ConnectionClosed
from websockets.sync.server import serve, ServerConnection
from websockets.typing import Subprotocol

Policies = Callable[..., SequencePolicy]


@pytest.fixture(autouse=True)
def named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give episodes and acts the names that the fixtures have."""
    ids = iter(REQUEST_IDS)
    monkeypatch.setattr(uuid, 'uuid4', lambda: uuid.UUID(EPISODE))
    monkeypatch.setattr(wire, 'new_request_id', lambda: next(ids))


class Answers:
    """Name each request by what it asks, and return the answer of its name."""

    def __init__(self, binding: str) -> None:
        self.binding = binding
        self.seen: queue.Queue[str] = queue.Queue()
        self._acts = self._posts = 0

    def to(self, method: str, request: bytes) -> bytes:
        name = self._name(method)
        check(self.binding, f'{name} request', request)
        self.seen.put(name)
        return fixture(self.binding, f'{name} answer')

    def _name(self, method: str) -> str:
        if method == wire.ACT:
            self._acts += 1
            return 'act' if self._acts == 1 else 'act again'
        if method == wire.OBSERVE:
            self._posts += 1
            return 'observe' if self._posts == 1 else 'skip'
        return method.replace('_', ' ')


def drive(policy: SequencePolicy, answers: Answers) -> None:
    """Act, observe a step, skip one, act again, and end the episode."""
    policy.connect()
    scope = policy.open_episode(lambda: 0)
    outputs = scope.infer(Step(0, 0, OBSERVATION))
    np.testing.assert_array_equal(outputs['actions'], np.ones((2, 2), np.float32))
    scope.observe(Step(1, 0, OBSERVATION))
    while answers.seen.get(timeout=PATIENCE_S) != 'observe':
        continue
    scope.skip(2)
    assert scope.infer(Step(3, 0, OBSERVATION))['steps'] == [3]
    scope.close()
    while answers.seen.get(timeout=PATIENCE_S) != 'episode end':
        continue


@contextmanager
def websocket_of(answers: Answers) -> Iterator[str]:
    def talk(ws: ServerConnection) -> None:
        with suppress(ConnectionClosed):
            for message in ws:
                assert isinstance(message, bytes)
                asked = unpack(message)
                answer = answers.to(asked['method'], numbered(message, 1))
                ws.send(numbered(answer, asked['id']))

    protocols = [Subprotocol(wire.WS_SUBPROTOCOL)]
    with serve(talk, '127.0.0.1', 0, subprotocols=protocols, compression=None) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f'ws://127.0.0.1:{server.socket.getsockname()[1]}'


def numbered(message: bytes, number: int) -> bytes:
    """Put a number in place of the id that begins every message; the fixtures have 1."""
    head = message[: 1 + len(pack('id'))]
    return head + bytes([number]) + message[len(head) + 1 :]


@contextmanager
def http_of(answers: Answers) -> Iterator[str]:
    methods = {
        wire.PATH_CONNECT: wire.CONNECT,
        wire.PATH_PING: wire.PING,
        wire.PATH_ACT: wire.ACT,
        wire.PATH_OBSERVE: wire.OBSERVE,
        wire.PATH_EPISODE_END: wire.EPISODE_END,
    }

    def talk(peer: socket.socket) -> None:
        came = b''
        with suppress(OSError), peer:
            while more := peer.recv(65536):
                came += more
                head, end, body = came.partition(b'\r\n\r\n')
                length = head.partition(b'Content-Length: ')[2].split(b'\r\n')[0]
                if not end or len(body) < int(length or b'0'):
                    continue
                path = head.split(b' ')[1].decode()
                answer = answers.to(methods[path], came)
                peer.sendall(answered(answer))
                came = b''

    with socket.create_server(('127.0.0.1', 0)) as listener:

        def accept() -> None:
            with suppress(OSError):
                while True:
                    threading.Thread(target=talk, args=(listener.accept()[0],)).start()

        threading.Thread(target=accept, daemon=True).start()
        yield f'http://127.0.0.1:{listener.getsockname()[1]}'
        listener.shutdown(socket.SHUT_RDWR)


def answered(answer: bytes) -> bytes:
    """Say how long the body is, where the fixture leaves that out."""
    head, _, body = answer.partition(b'\r\n\r\n')
    if b'Content-Length' not in head:
        head += b'\r\nContent-Length: %d' % len(body)
    return head + b'\r\n\r\n' + body


def test_the_websockets_requests_are_those_of_the_fixtures(policies: Policies) -> None:
    answers = Answers('websocket')
    with websocket_of(answers) as url:
        drive(policies(url, model='pi'), answers)


def test_https_requests_are_those_of_the_fixtures(policies: Policies) -> None:
    answers = Answers('http')
    with http_of(answers) as url:
        drive(policies(url, model='pi'), answers)

"""A client of the worker's websocket that says exactly what a test tells it to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
import socket
from typing import Any

from seq_harness.contract import wire
from seq_harness.contract.msgpack import pack, unpack
from support.waiting import PATIENCE_S
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol


@dataclass(frozen=True)
class Answer:
    """One answer: its status and its body."""

    status: int
    body: dict[str, Any]

    @property
    def code(self) -> str | None:
        return self.body.get('code')

    @property
    def reason(self) -> str | None:
        reason: str | None = self.body.get('details', {}).get('reason')
        return reason

    @property
    def outputs(self) -> Any:
        assert self.status == 200, self.body
        return self.body['outputs']


class Client:
    """One websocket; answers that come out of order are kept."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self._next = 0
        self._early: dict[int, Answer] = {}

    def send(self, method: str, body: Any) -> int:
        """Send a request and return its id."""
        self._next += 1
        self.socket.send(pack({'id': self._next, 'method': method, 'body': body}))
        return self._next

    def receive(self, number: int, timeout_s: float = PATIENCE_S) -> Answer:
        """Return the answer to the request of this id."""
        while number not in self._early:
            message = unpack(self.socket.recv(timeout_s, decode=False))
            assert set(message) == {'id', 'status', 'body'}
            self._early[message['id']] = Answer(message['status'], message['body'])
        return self._early.pop(number)

    def ask(self, method: str, body: Any) -> Answer:
        """Send a request and return its answer."""
        return self.receive(self.send(method, body))

    def connect(self) -> Answer:
        """Ask for the declaration until the worker is warm."""
        while (answer := self.ask('connect', {'model': 'any'})).code == 'warming':
            continue
        return answer

    def act(self, inputs: Any = None, **fields: Any) -> Answer:
        """Ask one act."""
        return self.ask('act', {'inputs': inputs, **fields})

    def observe(
        self, episode: str, frames: dict[int, Any], skipped: list[int] | None = None
    ) -> Answer:
        """Post observations by their numbers."""
        posted = [{'seq': number, 'inputs': inputs} for number, inputs in frames.items()]
        body = {'episode_id': episode, 'frames': posted, 'skipped': skipped or []}
        return self.ask('observe', body)


@contextmanager
def client_of(url: str, token: str | None = None, **options: Any) -> Iterator[Client]:
    """Connect to a worker."""
    headers = {} if token is None else {'Authorization': f'Bearer {token}'}
    with connect(
        url,
        subprotocols=[Subprotocol(wire.WS_SUBPROTOCOL)],
        compression=None,
        additional_headers=headers,
        ping_interval=None,
        max_size=None,
        **options,
    ) as socket:
        yield Client(socket)


def raw_websocket(url: str) -> socket.socket:
    """Shake hands by hand, so that any bytes can follow."""
    return impatient_websocket(url, b'')[0]


def impatient_websocket(url: str, behind: bytes) -> tuple[socket.socket, bytes]:
    """Shake hands with more bytes in the same piece; return what came behind the answer, too."""
    host, port = url.split('/')[2].split(':')
    raw = socket.create_connection((host, int(port)), timeout=PATIENCE_S)
    raw.sendall(
        b'GET /v1/ws HTTP/1.1\r\nHost: worker\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n'
        b'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n'
        b'Sec-WebSocket-Protocol: seq-harness.1\r\n\r\n' + behind
    )
    answer = b''
    while b'\r\n\r\n' not in answer:
        answer += raw.recv(4096)
    assert answer.startswith(b'HTTP/1.1 101')
    return raw, answer.partition(b'\r\n\r\n')[2]

"""
Whatever bytes a peer sends, over either binding, a worker answers as its table of errors says.

It neither ends nor grows. SEQ_HARNESS_MUTATIONS=100000 sends so many, a quarter of each kind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from http.client import HTTPConnection, HTTPException, HTTPResponse
import os
from pathlib import Path
import random
import socket
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from seq_harness.contract import wire
from seq_harness.contract.errors import ErrorBody, ErrorCode, ERRORS
from seq_harness.contract.json_body import pack_json, unpack_json
from seq_harness.contract.msgpack import pack, unpack
from support.waiting import PATIENCE_S
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect
from websockets.typing import Subprotocol
from worker.worker_wire import client_of

MUTATIONS = int(os.environ.get('SEQ_HARNESS_MUTATIONS', '480'))
EACH = MUTATIONS // 4
GROWTH_MB = 8.0
"""What the allocator may keep beyond what it held after the first part of the mutations."""

UNFINISHED_S = 0.03
"""How long an answer is waited for to a request whose end may be missing."""

CLOSES = (1002, 1003, 1007, 1009)
"""Closes that tell a peer what it did wrong."""

IMAGE = np.arange(48, dtype=np.uint8).reshape(4, 4, 3)
ACT = {
    'episode_id': 'ep', 'seq': 3, 'seed': 1, 'params': {'steps': 5}, 'request_id': 'r-0123abcd',
    'inputs': {'image': IMAGE, 'state': [0.5, -1, 2**40], 'prompt': 'pick'},
}  # fmt: skip
POST = {
    'episode_id': 'ep',
    'frames': [{'seq': n, 'inputs': {'image': IMAGE, 'state': None}} for n in (1, 2)],
    'skipped': [0],
}
BODIES: list[tuple[str, Any]] = [
    (wire.ACT, ACT),
    (wire.OBSERVE, POST),
    (wire.EPISODE_END, {'episode_id': 'ep'}),
    (wire.CONNECT, {'model': 'any', 'embodiment': None}),
    (wire.PING, {'act': 'r-0123abcd'}),
]
PATHS = {
    wire.ACT: wire.PATH_ACT,
    wire.OBSERVE: wire.PATH_OBSERVE,
    wire.EPISODE_END: wire.PATH_EPISODE_END,
}


class FuzzedWorker:
    """The worker's process."""

    def __init__(self) -> None:
        script = Path(__file__).with_name('fuzzed_worker.py')
        self.process = subprocess.Popen(
            [sys.executable, str(script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().strip()
        host, port = self.url.split('/')[2].split(':')
        self.address = host, int(port)

    def resident_mb(self) -> float:
        status = Path(f'/proc/{self.process.pid}/status').read_text()
        return float(status.partition('VmRSS:')[2].split()[0]) / 1024


@pytest.fixture(scope='module')
def worker() -> Iterator[FuzzedWorker]:
    started = FuzzedWorker()
    with client_of(started.url) as client:
        client.connect()
    yield started
    started.process.kill()
    started.process.communicate()


def mutated(rng: random.Random, body: bytes) -> bytes:
    """Change a body in one place or a few: bytes, pieces, lengths, an early end."""
    out = bytearray(body)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        at, kind = rng.randrange(len(out) + 1), rng.randrange(6)
        if kind == 0 and at < len(out):
            out[at] = rng.randrange(256)
        elif kind == 1:
            del out[at : at + rng.randint(1, 8)]
        elif kind == 2:
            out[at:at] = rng.choice(PIECES)
        elif kind == 3:
            out[at:at] = out[max(0, at - rng.randint(1, 32)) : at]
        elif kind == 4 and at < len(out):
            out[at] ^= 1 << rng.randrange(8)
        elif kind == 5 and rng.random() < 0.2:
            del out[at:]
    return bytes(out)


PIECES = (
    b'\xc1', b'\xc7\xff\x01', b'\xdd\xff\xff\xff\xff', b'\xdf\xff\xff\xff\xff', b'\xc6\x7f\xff',
    b'\xcb\x7f\xf8\0\0\0\0\0\0', b'[' * 40, b'{"a":', b'1e999', b'NaN', b'"\\ud800"', b'\0',
    b'\r\n',
    b'Content-Length: 9\r\n', b'Transfer-Encoding: chunked\r\n', b'\xff' * 9, b'-1', b'null',
)  # fmt: skip


def check_answer(status: int, body: Any) -> str:
    """Check that an answer is a success or an error of the table; name which."""
    assert isinstance(body, dict)
    if status == 200:
        return 'ok'
    fields = {name: body[name] for name in ErrorBody.model_fields if name in body}
    error = ErrorBody.model_validate(fields)
    assert ERRORS[error.code].status == status, body
    assert error.code not in (ErrorCode.INTERNAL, ErrorCode.POLICY_ERROR), body
    return str(error.code.value)


def http_answer(response: HTTPResponse) -> str:
    data = response.read()
    is_msgpack = (response.getheader(wire.HEADER_CONTENT_TYPE) or '') == wire.MSGPACK_TYPE
    return check_answer(response.status, unpack(data) if is_msgpack else unpack_json(data))


def fuzz_bodies(worker: FuzzedWorker, rng: random.Random, kind: str) -> str:
    """Send one mutated body in a good request."""
    method, body = rng.choice(BODIES[:3])
    data = (pack if kind == wire.MSGPACK_TYPE else pack_json)(body)
    connection = HTTPConnection(*worker.address, timeout=PATIENCE_S)
    try:
        headers = {
            wire.HEADER_CONTENT_TYPE: kind,
            wire.HEADER_ACCEPT: rng.choice((wire.MSGPACK_TYPE, '*/*')),
        }
        connection.request('POST', PATHS[method], mutated(rng, data), headers)
        return http_answer(connection.getresponse())
    finally:
        connection.close()


def fuzz_http(worker: FuzzedWorker, rng: random.Random) -> str:
    """Send one mutated request, the head and the body."""
    method, body = rng.choice(BODIES[:3])
    data = pack_json(body)
    head = (
        f'POST {PATHS[method]} HTTP/1.1\r\nHost: worker\r\nContent-Type: application/json\r\n'
        f'X-Seq-Request-Id: r-0123abcd\r\nContent-Length: {len(data)}\r\n\r\n'
    )
    with socket.create_connection(worker.address, PATIENCE_S) as peer:
        response = HTTPResponse(peer)
        try:
            peer.sendall(mutated(rng, head.encode() + data))
            peer.settimeout(UNFINISHED_S)
            response.begin()
            response.read()
        except TimeoutError:
            return 'unfinished'
        except (HTTPException, ConnectionError):
            return 'closed'
        assert response.status in {200, *(rule.status for rule in ERRORS.values()), 505}
        assert response.status != 500
        return str(response.status)


def closed_by(error: ConnectionClosed) -> int | None:
    """Check that a close tells what the peer did wrong; return its code."""
    code = None if error.rcvd is None else int(error.rcvd.code)
    assert code in (None, *CLOSES)
    return code


def fuzz_messages(worker: FuzzedWorker, rng: random.Random) -> str:
    """Send one mutated message in a good frame, or mutated frames."""
    method, body = rng.choice(BODIES)
    message = pack({'id': 1, 'method': method, 'body': body})
    ws = connect(
        worker.url,
        subprotocols=[Subprotocol(wire.WS_SUBPROTOCOL)],
        compression=None,
        close_timeout=UNFINISHED_S,
    )
    patience_s = PATIENCE_S
    with ws as socket_:
        try:
            if rng.random() < 0.7:
                socket_.send(mutated(rng, message))
            else:
                frame = b'\x82' + bytes([0x80 | 126]) + len(message).to_bytes(2, 'big')
                socket_.socket.sendall(mutated(rng, frame + bytes(4) + message))
                patience_s = UNFINISHED_S
            answer = unpack(socket_.recv(patience_s, decode=False))
        except TimeoutError:
            assert patience_s == UNFINISHED_S
            return 'unfinished'
        except ConnectionClosed as error:
            return f'closed {closed_by(error)}'
        except OSError:
            return 'closed'
        return check_answer(answer['status'], answer['body'])


KINDS: dict[str, Callable[[FuzzedWorker, random.Random], str]] = {
    'msgpack': lambda worker, rng: fuzz_bodies(worker, rng, wire.MSGPACK_TYPE),
    'json': lambda worker, rng: fuzz_bodies(worker, rng, wire.JSON_TYPE),
    'http': fuzz_http,
    'websocket': fuzz_messages,
}


@pytest.mark.parametrize('kind', KINDS)
def test_mutated_bodies_are_answered_by_the_table_and_leave_nothing_behind(
    worker: FuzzedWorker, kind: str
) -> None:
    rng, seen = random.Random(f'{kind} 7'), Counter[str]()
    held_mb = 0.0
    for number in range(EACH):
        seen[KINDS[kind](worker, rng)] += 1
        if number == EACH // 3:
            held_mb = worker.resident_mb()
    growth_mb = worker.resident_mb() - held_mb
    print(f'{kind}: {EACH} mutations, grew {growth_mb:.1f} MB, {dict(seen)}')
    assert worker.process.poll() is None
    assert growth_mb < GROWTH_MB
    assert len(seen) > 1
    with client_of(worker.url) as client:
        assert client.ask(wire.PING, {}).status == 200
        assert client.act({'state': 1}).outputs['params'] == {'steps': 4}

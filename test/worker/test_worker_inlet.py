"""Messages to a worker that a client parts, joins and mixes as it likes, on a real socket."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
import os
import socket
from typing import Any

import pytest
from seq_harness.contract.msgpack import pack, unpack
from seq_harness.contract.websocket import Cutter
from seq_harness.worker.limits import Limits
from seq_harness.worker.running import served
from websockets.frames import Close, CloseCode, Frame, Opcode
from worker.worker_wire import client_of, impatient_websocket, raw_websocket


class Noting:
    """Notes what it was asked, in order."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def infer(self, inputs: Any) -> dict[str, Any]:
        self.asked.append(inputs['who'])
        return {'who': inputs['who']}


class Padding:
    """Answers with so many bytes."""

    def __init__(self, nbytes: int) -> None:
        self._nbytes = nbytes

    def infer(self, inputs: Any) -> dict[str, Any]:
        return {'who': inputs['who'], 'padding': bytes(self._nbytes)}


def written(opcode: Opcode, data: bytes, *, fin: bool = True, masked: bool = True) -> bytes:
    return Frame(opcode, data, fin).serialize(mask=masked)


def act(number: int, **fields: Any) -> bytes:
    """Make the message of one act that tells its own number."""
    body = {'inputs': {'who': number, **fields}, 'episode_id': 'e', 'seq': number}
    return pack({'id': number, 'method': 'act', 'body': body})


def asking(number: int, **fields: Any) -> bytes:
    return written(Opcode.BINARY, act(number, **fields))


PING = written(Opcode.PING, b'there?')
MALFORMED = written(Opcode.BINARY, b'\xc1')


def parted(data: bytes, parts: int) -> list[bytes]:
    """Make the frames of one message in fragments."""
    size = -(-len(data) // parts)
    pieces = [data[first : first + size] for first in range(0, len(data), size)]
    return [
        written(Opcode.CONT if n else Opcode.BINARY, piece, fin=n == len(pieces) - 1)
        for n, piece in enumerate(pieces)
    ]


class Talk:
    """One websocket whose bytes a test sends as it likes."""

    def __init__(self, raw: socket.socket, before: bytes = b'') -> None:
        self._raw = raw
        self._cutter = Cutter(4 << 20)
        self._frames = self._cutter.cut(before)

    def say(self, *pieces: bytes) -> None:
        for piece in pieces:
            self._raw.sendall(piece)

    def next_frame(self) -> tuple[Opcode, bytes]:
        while not self._frames:
            came = self._raw.recv(1 << 16)
            assert came, 'the worker ended the connection'
            self._frames += self._cutter.cut(came)
        frame = self._frames.pop(0)
        return Opcode(frame.first & 0x0F), frame.data

    def answers(self, count: int, pongs: int = 0) -> list[int]:
        """Return which requests the next answers are to; pongs come anywhere between them."""
        numbers, ponged = list[int](), 0
        while len(numbers) < count or ponged < pongs:
            opcode, data = self.next_frame()
            if opcode is Opcode.PONG:
                assert data == b'there?'
                ponged += 1
                continue
            assert opcode is Opcode.BINARY, (opcode, data)
            answer = unpack(data)
            assert answer['body']['outputs']['who'] == answer['id']
            numbers.append(answer['id'])
        assert ponged == pongs
        return numbers

    def wait_for_the_end(self) -> None:
        while self._raw.recv(1 << 16):
            pass

    def closed_with(self) -> int:
        opcode, data = self.next_frame()
        assert opcode is Opcode.CLOSE, (opcode, data)
        return int.from_bytes(data[:2], 'big')


@contextmanager
def warm(policy: Any, **limits: int) -> Iterator[str]:
    """Serve a policy, and wait until it takes acts."""
    with served(policy, limits=Limits(**limits)) as url:
        with client_of(url) as client:
            client.connect()
        yield url


@contextmanager
def talk(**limits: int) -> Iterator[tuple[Talk, Noting]]:
    policy = Noting()
    with warm(policy, **limits) as url, raw_websocket(url) as raw:
        yield Talk(raw), policy


@contextmanager
def impatient(policy: Any, sent: bytes) -> Iterator[Talk]:
    """Connect to a worker, and send in one piece with the handshake."""
    with warm(policy) as url:
        raw, came = impatient_websocket(url, sent)
        with raw:
            yield Talk(raw, came)


def test_messages_in_one_piece_are_answered_in_order_and_pings_between_them() -> None:
    with talk() as (talking, policy):
        talking.say(asking(0) + PING + asking(1) + asking(2))
        assert talking.answers(3, pongs=1) == [0, 1, 2]
    assert policy.asked == [0, 1, 2]


def test_a_message_may_come_byte_by_byte() -> None:
    with talk() as (talking, _):
        talking.say(*(bytes([byte]) for byte in asking(0)))
        assert talking.answers(1) == [0]


@pytest.mark.parametrize('size', [70_000, 900_000])
def test_a_message_of_many_pieces_ends_where_the_next_begins(size: int) -> None:
    data = asking(0, image=os.urandom(size)) + asking(1)
    with talk() as (talking, _):
        talking.say(data[: size // 2], data[size // 2 : -3], data[-3:])
        assert talking.answers(2) == [0, 1]


def test_fragments_are_read_in_the_order_of_the_messages_around_them() -> None:
    with talk() as (talking, policy):
        first, *rest = parted(act(1), 3)
        talking.say(asking(0) + first, rest[0] + PING + rest[1] + asking(2))
        assert talking.answers(3, pongs=1) == [0, 1, 2]
    assert policy.asked == [0, 1, 2]


def test_what_is_half_there_when_fragments_begin_is_read_too() -> None:
    third = asking(2)
    with talk() as (talking, policy):
        talking.say(b''.join(parted(act(0), 2)) + asking(1) + third[:20])
        assert talking.answers(2) == [0, 1]
        talking.say(third[20:])
        assert talking.answers(1) == [2]
    assert policy.asked == [0, 1, 2]


def test_a_client_that_does_not_wait_for_the_handshake_is_answered() -> None:
    third, policy = asking(2), Noting()
    with impatient(policy, asking(0) + asking(1) + third[:11]) as talking:
        assert talking.answers(2) == [0, 1]
        talking.say(third[11:])
        assert talking.answers(1) == [2]
    assert policy.asked == [0, 1, 2]


@pytest.mark.parametrize(
    ('wrong', 'code'),
    [
        (MALFORMED, CloseCode.INVALID_DATA),
        (written(Opcode.TEXT, b'act'), CloseCode.UNSUPPORTED_DATA),
        (written(Opcode.CONT, b'of nothing'), CloseCode.PROTOCOL_ERROR),
        (b'\xc2\x80\x00\x00\x00\x00', CloseCode.PROTOCOL_ERROR),
        (b'\x83\x80\x00\x00\x00\x00', CloseCode.PROTOCOL_ERROR),
        (b'\x89\xfe\x00\x7e\x00\x00\x00\x00' + bytes(126), CloseCode.PROTOCOL_ERROR),
        (written(Opcode.CLOSE, Close(CloseCode.NORMAL_CLOSURE, '').serialize()),
         CloseCode.NORMAL_CLOSURE),
    ],
    ids=['malformed', 'text', 'no-beginning', 'reserved', 'unknown', 'long-ping', 'close'],
)  # fmt: skip
@pytest.mark.parametrize('behind', [b'', asking(1) + asking(2)], ids=['later', 'at-once'])
def test_what_follows_the_end_of_a_connection_is_not_run(
    wrong: bytes, code: int, behind: bytes
) -> None:
    with talk() as (talking, policy):
        talking.say(asking(0))
        assert talking.answers(1) == [0]
        talking.say(wrong + behind)
        assert talking.closed_with() == code
        with suppress(ConnectionError):
            talking.say(asking(3))
            talking.wait_for_the_end()
    assert policy.asked == [0]


def test_requests_whose_answers_are_read_late_are_all_answered_in_order() -> None:
    count, answered_bytes = 300, 2_000_000
    with warm(Padding(answered_bytes)) as url, raw_websocket(url) as raw:
        talking = Talk(raw)
        requests = [pack({'id': n, 'method': 'ping', 'body': None}) for n in range(count)]
        talking.say(
            asking(count) + b''.join(written(Opcode.BINARY, one) for one in requests[:100])
        )
        talking.say(*(asking(count + n) for n in range(1, 20)))
        talking.say(*(written(Opcode.BINARY, one) for one in requests[100:]))
        frames = [talking.next_frame() for _ in range(count + 20)]
    numbers = [unpack(data)['id'] for opcode, data in frames if opcode is Opcode.BINARY]
    assert [number for number in numbers if number < count] == list(range(count))
    assert [number for number in numbers if number >= count] == list(range(count, count + 20))


def test_a_client_that_reads_nothing_is_not_read_for_ever() -> None:
    """Answers wait with the worker up to a bound; then the client's own sending stops."""
    with warm(Padding(1_000)) as url, raw_websocket(url) as raw:
        talking = Talk(raw)
        connect = written(Opcode.BINARY, pack({'id': 0, 'method': 'connect', 'body': {}}))
        raw.settimeout(0.5)
        with pytest.raises(TimeoutError):
            talking.say(*[connect * 1_000] * 200)


def bare(data: bytes) -> bytes:
    """Make a frame whose mask hides nothing, as a peer may that wants to."""
    return b'\x82\xfe' + len(data).to_bytes(2, 'big') + bytes(4) + data


def test_a_frame_within_the_message_of_an_impatient_client_is_no_frame() -> None:
    hidden, policy = asking(9), Noting()
    before, behind = bare(act(0, hidden=hidden)).partition(hidden)[::2]
    with impatient(policy, before) as talking:
        talking.say(hidden + behind)
        assert talking.answers(1) == [0]
        talking.say(asking(1))
        assert talking.answers(1) == [1]
    assert policy.asked == [0, 1]


def test_the_beginning_of_a_message_over_the_limit_is_not_run() -> None:
    with talk(message_bytes=1_000) as (talking, policy):
        talking.say(b'\x82\xfe' + (1_001).to_bytes(2, 'big') + bytes(4) + act(0))
        assert talking.closed_with() == CloseCode.MESSAGE_TOO_BIG
    assert policy.asked == []

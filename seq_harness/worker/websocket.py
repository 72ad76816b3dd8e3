"""The websocket binding: one message in, one message out, answers in any order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
import contextlib
from dataclasses import dataclass
from functools import partial
from typing import Any

from aiohttp import web, WSCloseCode, WSMsgType
from seq_harness.contract import wire
from seq_harness.contract.envelope import around_number
from seq_harness.contract.errors import Overloaded
from seq_harness.contract.msgpack import pack, unpack
from seq_harness.contract.websocket import head_of
from seq_harness.worker.acts import Act
from seq_harness.worker.ask import Caller
from seq_harness.worker.http import DIVERT, TOOK
from seq_harness.worker.inlet import Inlet
from seq_harness.worker.reply import Reply
from seq_harness.worker.service import Worker

CLOSE_WAIT_S = 0.2
"""How long a peer is given to answer a close."""

CALLER = Caller(refills=True)
"""Every client of this binding keeps what it sent, so that it can refill a worker."""


@dataclass(eq=False)
class _Asked:
    """One act that a connection asked for, and what takes its reply."""

    act: Act
    number: int
    answered: Callable[[_Asked, Reply], None]

    def __call__(self, reply: Reply) -> None:
        self.answered(self, reply)


class Connection:
    """
    One websocket: a message is taken as it arrives, and an act answered as its inference ends.

    While an answer waits to go out, what comes waits with the library, which lets the peer feel
    it; one task reads that.
    """

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._socket: web.WebSocketResponse[Any] = web.WebSocketResponse(
            protocols=(wire.WS_SUBPROTOCOL,),
            compress=False,
            heartbeat=None,
            timeout=CLOSE_WAIT_S,
            # The library refuses what reaches its limit; a message may be exactly as long as ours.
            max_msg_size=worker.limits.message_bytes + 1,
        )
        self._transport: asyncio.Transport | None = None
        self._asked: set[_Asked] = set()
        self._sending: set[asyncio.Task[None]] = set()

    async def serve(self, request: web.Request) -> web.WebSocketResponse[Any]:
        """Read and answer messages until either side closes."""
        await self._socket.prepare(request)
        self._transport = request.transport
        self._note_taken = partial(request.app[TOOK], request.protocol)
        inlet = Inlet(request.protocol, self._worker.limits.message_bytes, self._take)
        request.app[DIVERT](request.protocol, inlet.arrived)
        try:
            async for message in self._socket:
                self._note_taken()
                inlet.returned()
                if message.type is WSMsgType.BINARY:
                    await self._answer(message.data)
                elif message.type is WSMsgType.TEXT:
                    await self._close(WSCloseCode.UNSUPPORTED_DATA, 'messages are binary msgpack')
        finally:
            for task in self._sending:
                task.cancel()
            for asked in self._asked:
                asked.act.forsake(asked)
        return self._socket

    async def going_away(self) -> None:
        """Tell the peer that the worker shuts down."""
        await self._close(WSCloseCode.GOING_AWAY, 'the worker shuts down')

    def _take(self, data: bytes) -> bool:
        """Take a message, unless it is none, or another one's answer waits to go out."""
        if self._sending or self._socket.closed:
            return False
        try:
            number, method, body = _request(unpack(data))
        except ValueError:
            return False
        self._note_taken()
        answer = self._begin(number, method, body, len(data))
        if answer is not None:
            self._send_at_once(number, answer)
        return True

    async def _answer(self, data: bytes) -> None:
        """Take a message that the library returned."""
        try:
            number, method, body = _request(unpack(data))
        except ValueError as error:
            await self._close(WSCloseCode.INVALID_TEXT, str(error))
            return
        answer = self._begin(number, method, body, len(data))
        if answer is not None:
            await self._send(number, answer)

    def _begin(self, number: int, method: str, body: Any, nbytes: int) -> Reply | None:
        """Do what a message asks; return the answer where it is there already."""
        if method != wire.ACT:
            return self._worker.answer(method, body, CALLER)
        under_way = len(self._asked) + len(self._sending)
        if under_way >= self._worker.limits.connection_requests:
            busy = Overloaded(f'{under_way} acts of this connection wait already')
            return self._worker.refuse(busy)
        act = self._worker.take(body, nbytes, CALLER)
        if isinstance(act, Reply):
            return act
        asked = _Asked(act, number, self._answered)
        self._asked.add(asked)
        act.tell(asked)
        return None

    def _answered(self, asked: _Asked, reply: Reply) -> None:
        self._asked.discard(asked)
        self._send_at_once(asked.number, reply)

    def _send_at_once(self, number: int, reply: Reply) -> None:
        """Send without a task, unless what was sent before has not gone out yet."""
        transport = self._transport
        if transport is None or transport.is_closing() or self._socket.closed:
            return  # whoever is gone by now asks again on another connection
        if transport.get_write_buffer_size():
            task = asyncio.create_task(self._send(number, reply))
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)
            return
        pieces = _pieces(number, reply)
        head = head_of(sum(map(len, pieces)), masked=False)
        transport.write(b''.join((head, *pieces)))

    async def _send(self, number: int, reply: Reply) -> None:
        with contextlib.suppress(ConnectionError):
            await self._socket.send_bytes(b''.join(_pieces(number, reply)))

    async def _close(self, code: WSCloseCode, reason: str) -> None:
        with contextlib.suppress(ConnectionError):
            await self._socket.close(code=code, message=reason.encode()[:123])


def _request(message: Any) -> tuple[int, str, Any]:
    if not isinstance(message, dict):
        raise ValueError(f'a request is a map, got {type(message).__name__}')
    number, method = message.get(wire.KEY_ID), message.get(wire.KEY_METHOD)
    if not isinstance(number, int) or isinstance(number, bool) or not isinstance(method, str):
        raise ValueError('a request holds an int id and a method, and this one does not')
    return number, method, message.get(wire.KEY_BODY)


def _pieces(number: int, reply: Reply) -> tuple[bytes, ...]:
    """Put an answer together around its packed body, the three entries of one map."""
    before, behind = around_number(wire.KEY_STATUS, reply.status)
    return before, pack(number), behind, reply.body

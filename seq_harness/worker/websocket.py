"""The websocket binding: one message in, one message out, answers in any order."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
import contextlib
from functools import partial
import logging
from typing import Any

from aiohttp import web, WSCloseCode, WSMsgType
from seq_harness.contract import wire
from seq_harness.contract.errors import Overloaded
from seq_harness.contract.msgpack import MsgpackError, pack, unpack
from seq_harness.worker.acts import Act
from seq_harness.worker.ask import Caller
from seq_harness.worker.http import took
from seq_harness.worker.reply import Reply
from seq_harness.worker.service import Worker

CLOSE_WAIT_S = 0.2
"""How long a peer is given to answer a close."""

CALLER = Caller(refills=True)
"""Every client of this binding keeps what it sent, so that it can refill a worker."""

log = logging.getLogger('seq_harness.worker')


class Connection:
    """One websocket, read by one task; every act has a task that answers it."""

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
        self._answering: set[asyncio.Task[None]] = set()

    async def serve(self, request: web.Request) -> web.WebSocketResponse[Any]:
        """Read and answer messages until either side closes."""
        await self._socket.prepare(request)
        try:
            async for message in self._socket:
                took(request)
                if message.type is WSMsgType.BINARY:
                    await self._take(message.data)
                elif message.type is WSMsgType.TEXT:
                    await self._close(WSCloseCode.UNSUPPORTED_DATA, 'messages are binary msgpack')
        finally:
            for task in self._answering:
                task.cancel()
        return self._socket

    async def going_away(self) -> None:
        """Tell the peer that the worker shuts down."""
        await self._close(WSCloseCode.GOING_AWAY, 'the worker shuts down')

    async def _take(self, data: bytes) -> None:
        try:
            message = unpack(data)
            number, method, body = _request(message)
        except (MsgpackError, ValueError) as error:
            await self._close(WSCloseCode.INVALID_TEXT, str(error))
            return
        if method != wire.ACT:
            await self._send(number, self._worker.answer(method, body, CALLER))
        elif len(self._answering) >= self._worker.limits.connection_requests:
            busy = Overloaded(f'{len(self._answering)} acts of this connection wait already')
            await self._send(number, self._worker.refuse(busy))
        else:
            self._answer(number, self._worker.take(body, len(data), CALLER))

    def _answer(self, number: int, act: Act | Reply) -> None:
        task = asyncio.create_task(self._answer_act(number, act))
        self._answering.add(task)
        task.add_done_callback(partial(self._answered, act))

    def _answered(self, act: Act | Reply, task: asyncio.Task[None]) -> None:
        self._answering.discard(task)
        if isinstance(act, Act) and task.cancelled():
            act.forsake()  # the connection ended before anybody waited for it

    async def _answer_act(self, number: int, act: Act | Reply) -> None:
        await self._send(number, await self._worker.reply(act))

    async def _send(self, number: int, reply: Reply) -> None:
        # Whoever is gone by now asks again on another connection.
        with contextlib.suppress(ConnectionError):
            await self._socket.send_bytes(_message(number, reply))

    async def _close(self, code: WSCloseCode, reason: str) -> None:
        with contextlib.suppress(ConnectionError):
            await self._socket.close(code=code, message=reason.encode()[:123])


def _request(message: Any) -> tuple[int, str, Any]:
    if not isinstance(message, Mapping):
        raise ValueError(f'a request is a map, got {type(message).__name__}')
    number, method = message.get(wire.KEY_ID), message.get(wire.KEY_METHOD)
    if not isinstance(number, int) or isinstance(number, bool) or not isinstance(method, str):
        raise ValueError('a request holds an int id and a method, and this one does not')
    return number, method, message.get(wire.KEY_BODY)


def _message(number: int, reply: Reply) -> bytes:
    """Put an answer together around its packed body, the three entries of one map."""
    head = pack({wire.KEY_ID: number, wire.KEY_STATUS: reply.status, wire.KEY_BODY: None})
    return head[:-1] + reply.body

"""The wire of openpi's policy server: a greeting, then an answer to each observation, in order."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
import contextlib
import secrets
import time
from typing import Any

from aiohttp import web, WSCloseCode, WSMessage, WSMsgType
import numpy as np
from seq_harness.contract import wire
from seq_harness.contract.connect import WorkerDeclaration
from seq_harness.contract.errors import ErrorBody, ErrorCode, Overloaded, Rejected, TransportError
from seq_harness.contract.msgpack import MsgpackError
from seq_harness.contract.msgpack import unpack as unpack_body
from seq_harness.contract.numpy_msgpack import pack, unpack
from seq_harness.worker.acts import Act
from seq_harness.worker.ask import Caller
from seq_harness.worker.http import took
from seq_harness.worker.reply import Reply
from seq_harness.worker.service import Worker

CLOSE_WAIT_S = 0.2
"""How long a peer is given to answer a close."""

CLOSED_FOR = b'The error is told in the frame before.'
"""The reason that a connection is closed with after an error."""

CALLER = Caller()
NUMERIC = 'biuf'


def health(worker: Worker) -> web.Response:
    """Answer `OK` once acts are taken, and 503 while the policy is loading."""
    if worker.is_ready:
        return web.Response(text=wire.OPENPI_HEALTHY)
    error = worker.not_ready().body()
    headers = {wire.HEADER_RETRY_AFTER: '1'}
    return web.Response(status=503, text=f'{error.detail}\n', headers=headers)


def is_upgrade(request: web.Request) -> bool:
    """Tell whether a request asks for a websocket."""
    return request.headers.get('Upgrade', '').lower() == 'websocket'


def no_upgrade() -> web.Response:
    """Answer a plain request where a websocket was expected."""
    text = "here clients of openpi's wire open a websocket\n"
    return web.Response(status=426, text=text, headers={'Upgrade': 'websocket'})


class OpenpiConnection:
    """
    One websocket of a client of openpi's, which is one episode.

    One task reads, so that pings are answered while an inference runs; another one answers, in
    the order of the requests. An error ends the connection.
    """

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._socket: web.WebSocketResponse[Any] = web.WebSocketResponse(
            compress=False,
            heartbeat=None,
            timeout=CLOSE_WAIT_S,
            # The library refuses what reaches its limit; a message may be exactly as long as ours.
            max_msg_size=worker.limits.message_bytes + 1,
        )
        self._episode_id = f'openpi-{secrets.token_hex(8)}'
        self._requests = 0
        self._asked: asyncio.Queue[tuple[Act | Reply, int]] = asyncio.Queue()
        self._refused = False

    async def serve(self, request: web.Request) -> web.WebSocketResponse[Any]:
        """Greet, then read and answer observations until either side closes."""
        await self._socket.prepare(request)
        answering = asyncio.create_task(self._answer())
        try:
            async for message in self._socket:
                took(request)
                came_ns = time.monotonic_ns()
                self._asked.put_nowait((self._take(message), came_ns))
            if self._refused:
                await answering
        finally:
            answering.cancel()
            ended = {wire.KEY_EPISODE_ID: self._episode_id}
            self._worker.answer(wire.EPISODE_END, ended, CALLER)
        return self._socket

    async def going_away(self) -> None:
        """Tell the peer that the worker shuts down."""
        await self._close(WSCloseCode.GOING_AWAY, b'the worker shuts down')

    def _take(self, message: WSMessage) -> Act | Reply:
        """Take the act that a message asks for, or say why not."""
        limits = self._worker.limits
        if message.type is not WSMsgType.BINARY:
            return self._worker.refuse(
                Rejected('a text frame came; one binary frame of msgpack was expected')
            )
        if self._asked.qsize() >= limits.connection_requests:
            return self._worker.refuse(
                Overloaded(f'{self._asked.qsize()} requests of this connection wait already')
            )
        try:
            observation = unpack(message.data, max_bytes=limits.message_bytes)
        except MsgpackError as error:
            return self._worker.refuse(Rejected(str(error)))
        if not isinstance(observation, Mapping):
            kind = type(observation).__name__
            return self._worker.refuse(Rejected(f'an observation is a mapping, got a {kind}'))
        return self._act(observation, len(message.data))

    def _act(self, observation: Mapping[Any, Any], nbytes: int) -> Act | Reply:
        body = {
            wire.KEY_INPUTS: observation,
            wire.KEY_EPISODE_ID: self._episode_id,
            wire.KEY_SEQ: self._requests,
        }
        self._requests += 1
        return self._worker.take(body, nbytes, CALLER)

    async def _answer(self) -> None:
        """Greet, and answer the requests one after another; whoever is gone asks no more."""
        with contextlib.suppress(ConnectionError):
            await self._worker.until_ready()
            try:
                declared = self._declared()
                await self._socket.send_bytes(self._greeting(declared))
                await self._answer_all(declared)
            except TransportError as error:
                await self._refuse(error.body())

    async def _answer_all(self, declared: WorkerDeclaration) -> None:
        prev_total_ms: float | None = None
        while True:
            act, came_ns = await self._asked.get()
            reply = await self._worker.reply(act)
            body = unpack_body(reply.body)
            if not reply.ok:
                await self._refuse(ErrorBody.model_validate(_without_instance(body)))
                return
            await self._socket.send_bytes(_packed(_answer_of(body, declared, prev_total_ms)))
            prev_total_ms = (time.monotonic_ns() - came_ns) / 1e6

    def _declared(self) -> WorkerDeclaration:
        """
        Return what the policy declares.

        Raises
        ------
        TransportError
            This wire does not carry what the policy reads.

        """
        if self._worker.reads_past:
            raise Rejected(
                'the policy reads observations between the ones it is asked with, which no client '
                "of openpi's wire sends",
                hint=f"use the worker's own wire, at {wire.WS_PATH}",
            )
        return self._worker.declaration({})

    def _greeting(self, declared: WorkerDeclaration) -> bytes:
        told = declared.model_dump(mode='json', exclude_none=True)
        return _packed({**self._worker.metadata, **told})

    async def _refuse(self, error: ErrorBody) -> None:
        """Tell an error, and end the connection."""
        self._refused = True
        await self._socket.send_str(_told(error))
        await self._close(WSCloseCode.INTERNAL_ERROR, CLOSED_FOR)

    async def _close(self, code: WSCloseCode, reason: bytes) -> None:
        with contextlib.suppress(ConnectionError):
            await self._socket.close(code=code, message=reason)


def _answer_of(
    body: Mapping[str, Any], declared: WorkerDeclaration, prev_total_ms: float | None
) -> dict[str, Any]:
    """
    Return the mapping that answers a request: what the policy answered, with its rows as an array.

    Raises
    ------
    TransportError
        The answer holds no rows of numbers.

    """
    outputs = body[wire.KEY_OUTPUTS]
    timing = {wire.OPENPI_INFER_MS: body[wire.KEY_PERF][wire.KEY_HANDLER_MS]}
    if prev_total_ms is not None:
        timing[wire.OPENPI_PREV_TOTAL_MS] = prev_total_ms
    answer = dict(outputs) if isinstance(outputs, Mapping) else {}
    if body[wire.KEY_WARNINGS]:
        answer[wire.KEY_WARNINGS] = body[wire.KEY_WARNINGS]
    rows = _as_array(_rows(outputs, declared), outputs)
    return {**answer, wire.OPENPI_ACTIONS: rows, wire.OPENPI_TIMING: timing}


def _rows(outputs: Any, declared: WorkerDeclaration) -> Any:
    if not isinstance(outputs, Mapping):
        return outputs
    if declared.action is not None:
        return [step['values'] for step in outputs[wire.KEY_STEPS]]
    key = declared.actions.key if declared.actions is not None else None
    return outputs.get(key or wire.OPENPI_ACTIONS)


def _as_array(rows: Any, outputs: Any) -> np.ndarray[Any, Any]:
    with contextlib.suppress(ValueError):
        array = np.asarray(rows)
        if array.dtype.kind in NUMERIC and array.ndim:
            return array
    came = sorted(map(str, outputs)) if isinstance(outputs, Mapping) else type(outputs).__name__
    raise TransportError(
        ErrorCode.POLICY_ERROR,
        f'the policy answered {came!r:.300}, and no array of numbers as its actions',
        hint="openpi's wire carries rows of numbers: answer {'actions': array [rows, columns]}",
    )


def _packed(value: Any) -> bytes:
    try:
        return pack(value)
    except MsgpackError as error:
        raise TransportError(
            ErrorCode.POLICY_ERROR, f'what the policy says cannot be sent: {error}'
        ) from error


def _without_instance(body: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if name != wire.KEY_INSTANCE}


def _told(error: ErrorBody) -> str:
    """Write an error as a person reads it; clients show it whole, or its last line."""
    hint = '' if error.hint is None else f' (hint: {error.hint})'
    traceback = (error.details.get(wire.DETAIL_EXCEPTION) or {}).get('traceback', '')
    return f'{traceback}{error.code.value}: {error.detail}{hint}'

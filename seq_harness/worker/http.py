"""The HTTP binding: the same methods by posts, one at a time on a connection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
import math
from typing import Any

from aiohttp import web
from seq_harness.contract import wire
from seq_harness.contract.errors import ErrorCode, Rejected, TransportError
from seq_harness.contract.frames import FramesError, unpack_frames
from seq_harness.contract.json_body import JsonError, unpack_json
from seq_harness.contract.msgpack import MsgpackError, unpack
from seq_harness.worker.ask import Caller, MAX_REQUEST_ID
from seq_harness.worker.reply import Reply
from seq_harness.worker.service import Worker

BODY_WAIT_S = 60.0
"""How long a body may take to come."""


TOOK: web.AppKey[Callable[[asyncio.Protocol], None]] = web.AppKey('took')
"""Told of each connection whose message, or body, was read whole."""


DIVERT: web.AppKey[Callable[[asyncio.Protocol, Callable[[bytes], None]], None]] = web.AppKey(
    'divert'
)
"""Lets a function have what arrives on a connection, in place of the library."""


class Routes:
    """The routes of a worker's own plane."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    def add_to(self, app: web.Application) -> None:
        """Register the routes."""
        app.router.add_get(wire.PATH_PING, self.ping)
        app.router.add_post(wire.PATH_OBSERVE, self.observe)
        app.router.add_post(wire.PATH_ACT, self.act)
        app.router.add_post(wire.PATH_EPISODE_END, self.episode_end)

    async def ping(self, request: web.Request) -> web.Response:
        """Answer that the worker is there, and what it is doing."""
        asked = {wire.ACT: request.query[wire.ACT]} if wire.ACT in request.query else None
        return respond(request, self._worker.answer(wire.PING, asked, _caller(request)))

    async def observe(self, request: web.Request) -> web.Response:
        """Store observations."""
        return await self._simple(request, wire.OBSERVE)

    async def episode_end(self, request: web.Request) -> web.Response:
        """End an episode."""
        return await self._simple(request, wire.EPISODE_END)

    async def act(self, request: web.Request) -> web.Response:
        """Run one inference."""
        data = await read_body(request, self._worker.limits.message_bytes)
        body = decode(request, data, raw=True)
        act = self._worker.take(body, len(data), _caller(request), bare=True)
        return respond(request, await self._worker.reply(act))

    async def _simple(self, request: web.Request, method: str) -> web.Response:
        body = decode(request, await read_body(request, self._worker.limits.message_bytes))
        return respond(request, self._worker.answer(method, body, _caller(request)))


async def read_body(request: web.Request, most_bytes: int) -> bytes:
    """
    Read a body within its bounds.

    Raises
    ------
    TransportError
        It is too large, compressed, or does not come.

    """
    if request.headers.get('Content-Encoding', 'identity') != 'identity':
        raise Rejected('the body is compressed, which this worker does not read')
    length = request.content_length or 0
    try:
        if length > most_bytes:
            raise web.HTTPRequestEntityTooLarge(most_bytes, length)
        body = await asyncio.wait_for(request.read(), BODY_WAIT_S)
        took(request)
        return body
    except web.HTTPRequestEntityTooLarge:
        raise TransportError(
            ErrorCode.PAYLOAD_TOO_LARGE, f'the body is larger than {most_bytes} bytes'
        ) from None
    except ConnectionError:
        raise Rejected('the connection ended within the body') from None
    except asyncio.TimeoutError:
        raise TransportError(
            ErrorCode.TIMEOUT, f'the body did not come within {BODY_WAIT_S:g} s'
        ) from None


def took(request: web.Request) -> None:
    """Note that a message of the request's connection, or its body, was read whole."""
    request.app[TOOK](request.protocol)


def decode(request: web.Request, data: bytes, raw: bool = False) -> Any:
    """
    Decode a body by its content type; with `raw` one of another type is returned as it came.

    Raises
    ------
    Rejected
        It is not of the type that it claims.

    """
    said = request.headers.get(wire.HEADER_CONTENT_TYPE, wire.JSON_TYPE)
    kind = said.partition(';')[0].strip().lower()
    if kind == wire.MSGPACK_TYPE:
        try:
            return unpack(data)
        except MsgpackError as error:
            raise Rejected(str(error)) from None
    if raw and kind == wire.FRAMES_TYPE:
        try:
            return unpack_frames(data)
        except FramesError as error:
            raise Rejected(str(error)[:400]) from None
    if raw and kind != wire.JSON_TYPE:
        return data
    try:
        return unpack_json(data)
    except JsonError as error:
        raise Rejected(str(error)[:400]) from None


def _caller(request: web.Request) -> Caller:
    session = _header(request, wire.HEADER_SESSION)
    return Caller(session, request_id=_header(request, wire.HEADER_REQUEST_ID) or None)


def _header(request: web.Request, name: str) -> str:
    """Return a header's first characters, those that are plain text."""
    return request.headers.get(name, '')[:MAX_REQUEST_ID].encode('ascii', 'ignore').decode()


def respond(request: web.Request, reply: Reply) -> web.Response:
    """Answer in msgpack where the client asks for it, else in JSON."""
    headers = {}
    if reply.retry_after_s is not None:
        headers[wire.HEADER_RETRY_AFTER] = str(math.ceil(reply.retry_after_s))
    if request_id := _header(request, wire.HEADER_REQUEST_ID):
        headers[wire.HEADER_REQUEST_ID] = request_id
    if wire.MSGPACK_TYPE in request.headers.get(wire.HEADER_ACCEPT, ''):
        body, content_type = reply.body, wire.MSGPACK_TYPE
    else:
        body, content_type = reply.json(), wire.JSON_TYPE
    return web.Response(status=reply.status, body=body, content_type=content_type, headers=headers)

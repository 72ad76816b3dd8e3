"""The server: one port for the websocket and for HTTP, and who may speak to it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
import hmac
import ipaddress
import logging
import ssl

from aiohttp import web
from seq_harness.contract import wire
from seq_harness.contract.errors import code_of_status, ErrorCode, Rejected, TransportError
from seq_harness.worker.door import Door
from seq_harness.worker.gateway import Gateway
from seq_harness.worker.http import DIVERT, respond, Routes, TOOK
from seq_harness.worker.openpi import health, is_upgrade, no_upgrade, OpenpiConnection
from seq_harness.worker.reply import Seldom
from seq_harness.worker.service import Worker
from seq_harness.worker.websocket import CLOSE_WAIT_S, Connection

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

OPEN_PATHS = (wire.PATH_PING, wire.OPENPI_PATH_HEALTH)
"""What is answered without a token."""

SHUTDOWN_S = 0.05
"""How long open requests are given once the worker shuts down."""

IDLE_S = 300.0
"""How long a connection of HTTP may be idle between two requests."""

log = logging.getLogger('seq_harness.worker.http')
log.addFilter(Seldom())


class NotAllowed(ValueError):
    """A way to listen that would let strangers drive the policy."""


@dataclass(frozen=True)
class Access:
    """Who may speak to a worker, and how."""

    token: str | None = field(default=None, repr=False)
    """What clients show as their bearer or API key; none lets everyone in who reaches the port."""
    tls: ssl.SSLContext | None = None
    fingerprint: str = '0' * 64
    """The sha256 of the certificate, in hex."""

    def check_host(self, host: str) -> None:
        """
        Check that a token guards an address that others can reach.

        Raises
        ------
        NotAllowed
            It does not.

        """
        if self.token is None and not is_loopback(host):
            raise NotAllowed(
                f'{host} can be reached from other machines, and no token is set: give a token '
                'file, or listen on 127.0.0.1'
            )

    def admits(self, authorization: str) -> bool:
        """Tell, in constant time, whether the header shows the token."""
        if self.token is None:
            return True
        shown = authorization.encode(errors='surrogateescape')
        as_bearer = hmac.compare_digest(shown, f'{wire.BEARER}{self.token}'.encode())
        as_key = hmac.compare_digest(shown, f'{wire.OPENPI_API_KEY}{self.token}'.encode())
        return as_bearer or as_key


def is_loopback(host: str) -> bool:
    """Tell whether nobody but this machine reaches the address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == 'localhost'


class Server:
    """Serve a worker on one port; belongs to the worker's event loop."""

    def __init__(self, worker: Worker, access: Access) -> None:
        self._worker = worker
        self._access = access
        self._connections: set[Connection | OpenpiConnection] = set()
        app = web.Application(
            middlewares=[self._guard], client_max_size=worker.limits.message_bytes
        )
        app[TOOK] = self._took
        app[DIVERT] = self._divert
        app.on_response_prepare.append(self._sign)
        app.router.add_get(wire.WS_PATH, self._websocket)
        app.router.add_get(wire.OPENPI_PATH, self._openpi)
        app.router.add_get(wire.OPENPI_PATH_HEALTH, self._health)
        Routes(worker).add_to(app)
        Gateway(worker, access.token, access.fingerprint).add_to(app)
        # A request's handler ends with its client, so that no act is run for nobody.
        self._runner = web.AppRunner(
            app,
            access_log=None,
            handler_cancellation=True,
            shutdown_timeout=SHUTDOWN_S,
            keepalive_timeout=IDLE_S,
            auto_decompress=False,
            logger=log,
        )
        self._door: Door | None = None

    async def start(self, host: str, port: int) -> str:
        """
        Listen, and return the URL of the websocket; with port 0 the system picks one.

        Raises
        ------
        NotAllowed
            The address is public and no token is set.
        OSError
            The address cannot be listened on.

        """
        self._access.check_host(host)
        await self._runner.setup()
        server = self._runner.server
        if server is None:
            raise RuntimeError('a server that is set up was expected, and there is none')
        limits = self._worker.limits
        self._door = Door(server, lambda: [*server.connections], limits, self._access.tls)
        bound = self._door.open(host, port)
        scheme = 'ws' if self._access.tls is None else 'wss'
        return f'{scheme}://{f"[{host}]" if ":" in host else host}:{bound}{wire.WS_PATH}'

    async def close(self) -> None:
        """Tell every client that the worker goes away, and stop listening."""
        if self._door is not None:
            self._door.close()
        leaving = [asyncio.create_task(c.going_away()) for c in self._connections]
        if leaving:
            await asyncio.wait(leaving, timeout=CLOSE_WAIT_S)
        await self._runner.cleanup()

    async def _websocket(self, request: web.Request) -> web.StreamResponse:
        offered = request.headers.get('Sec-WebSocket-Protocol', '')
        if wire.WS_SUBPROTOCOL not in [name.strip() for name in offered.split(',')]:
            raise Rejected(
                f'the subprotocol {wire.WS_SUBPROTOCOL} was expected, got {offered[:80]!r}'
            )
        return await self._serve(Connection(self._worker), request)

    async def _openpi(self, request: web.Request) -> web.StreamResponse:
        if not is_upgrade(request):
            return no_upgrade()
        return await self._serve(OpenpiConnection(self._worker), request)

    async def _health(self, request: web.Request) -> web.Response:
        return health(self._worker)

    async def _serve(
        self, connection: Connection | OpenpiConnection, request: web.Request
    ) -> web.StreamResponse:
        self._connections.add(connection)
        try:
            return await connection.serve(request)
        finally:
            self._connections.discard(connection)

    def _took(self, handler: asyncio.Protocol) -> None:
        if self._door is not None:
            self._door.took(handler)

    def _divert(self, handler: asyncio.Protocol, take: Callable[[bytes], None]) -> None:
        if self._door is not None:
            self._door.divert(handler, take)

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Let in whom the access allows; answer every refusal in the wire's own form."""
        try:
            if wire.HEADER_ORIGIN in request.headers:
                raise TransportError(
                    ErrorCode.FORBIDDEN, 'a request from a web page is not answered'
                )
            authorization = request.headers.get(wire.HEADER_AUTHORIZATION, '')
            admitted = self._access.admits(authorization)
            if self._door is not None:
                self._door.spoke(request.protocol, admitted)
            if request.path not in OPEN_PATHS and not admitted:
                raise TransportError(
                    ErrorCode.UNAUTHENTICATED,
                    'the bearer token is missing or wrong',
                    hint="send the token of the worker's token file",
                )
            return await handler(request)
        except web.HTTPException as error:
            code = code_of_status(error.status)
            failure: Exception = TransportError(code, f'{request.path!a}: {error.reason}')
        except Exception as error:
            failure = error
        finally:
            self._took(request.protocol)
        return respond(request, self._worker.refuse(failure))

    async def _sign(self, request: web.Request, response: web.StreamResponse) -> None:
        """Name what this worker reads, and which worker it is, on every answer."""
        response.headers[wire.HEADER_FORMATS] = wire.write_formats(self._worker.formats)
        response.headers[wire.HEADER_INSTANCE] = self._worker.instance

"""What a client asks a gateway for, answered by the worker about itself."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

from aiohttp import web
from seq_harness.contract import wire
from seq_harness.contract.connect import Lease
from seq_harness.worker.http import decode, read_body
from seq_harness.worker.service import Worker

LEASE_S = 3600
"""How long the coordinates hold before a client asks again; they never change."""

KEEPALIVE_S = 20

MAX_CONNECT_BYTES = 1 << 16
"""Bytes of a body that asks for coordinates."""

OPEN_SECRET = 'open'
"""The bearer that a client is told to show where no token is set; any other does as well."""


class Gateway:
    """The routes of a gateway with one worker: the one that answers them."""

    def __init__(self, worker: Worker, token: str | None, fingerprint: str) -> None:
        self._worker = worker
        self._secret = token or OPEN_SECRET
        self._fingerprint = fingerprint

    def add_to(self, app: web.Application) -> None:
        """Register the routes."""
        app.router.add_post(wire.PATH_CONNECT, self.connect)
        app.router.add_get(wire.PATH_READY, self.ready)
        app.router.add_post(wire.PATH_KEEPALIVE, self.keepalive)
        app.router.add_post(wire.PATH_RELEASE, self.release)
        app.router.add_post(wire.PATH_LATENCY, self.latency)

    async def connect(self, request: web.Request) -> web.Response:
        """Tell the worker's coordinates, and what its policy declares."""
        body = decode(request, await read_body(request, MAX_CONNECT_BYTES))
        declaration = self._worker.declaration(body)
        # Headers of the answer name the instance and the formats.
        declared = declaration.model_dump(
            mode='json', exclude_none=True, exclude={'instance', 'formats'}
        )
        until = datetime.now(timezone.utc) + timedelta(seconds=LEASE_S)
        lease = Lease(ttl_s=LEASE_S, expires_at=until, epoch=1)
        return web.json_response(
            {
                **declared,
                'worker_url': f'{request.scheme}://{request.host}',
                'cert_fingerprint': self._fingerprint,
                'direct_secret': self._secret,
                'lease': lease.model_dump(mode='json'),
                'keepalive': {'every_s': KEEPALIVE_S},
            }
        )

    async def ready(self, request: web.Request) -> web.Response:
        """Tell whether acts are taken."""
        if self._worker.is_ready:
            return web.json_response({'ready': True})
        error = self._worker.not_ready()
        told: dict[str, Any] = {'ready': False, 'status': 'starting', **error.details}
        return web.json_response(told)

    async def keepalive(self, request: web.Request) -> web.Response:
        """Hold the client's seat, of which there is no shortage."""
        return web.json_response({'held': True, 'every_s': KEEPALIVE_S})

    async def release(self, request: web.Request) -> web.Response:
        """Take note that a client leaves."""
        return web.json_response({})

    async def latency(self, request: web.Request) -> web.Response:
        """Take note of a client's timings."""
        return web.json_response({})

"""The door of a worker: who is connected, and that strangers are few and do not stay."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
import contextlib
from dataclasses import dataclass
from functools import partial
import logging
import socket
import ssl

from seq_harness.contract.websocket import HEAD_END
from seq_harness.worker.limits import Limits

BACKLOG = 128

AGAIN_S = 0.2
"""How long nobody is let in after the system had no room for one more."""

PATIENCE = {
    'TCP_KEEPIDLE': 20,
    'TCP_KEEPINTVL': 5,
    'TCP_KEEPCNT': 3,
    'TCP_USER_TIMEOUT': 30_000,
}
"""How a peer that is gone without a word is found, in s and ms, as far as a system knows it."""

Handler = asyncio.Protocol

log = logging.getLogger('seq_harness.worker')


@dataclass(eq=False)
class _Guest:
    """One connection; a stranger until it made a request that was let in."""

    socket: socket.socket
    seen_s: float
    admitted: bool = False
    arrived: int = 0
    """Bytes that came since its last whole message."""
    entering: asyncio.Task[None] | None = None
    handler: Handler | None = None
    counted: _Counted | None = None
    transport: asyncio.Transport | None = None

    def turn_out(self) -> None:
        """Close the connection now, however far it has come."""
        if self.transport is not None:
            self.transport.abort()
        elif self.entering is not None:
            self.entering.cancel()


class _Counted(asyncio.Protocol):
    """Hand all that happens to a connection on to its handler, and count what arrives."""

    def __init__(self, handler: Handler, count: Callable[[int], None]) -> None:
        self._handler = handler
        self._count = count
        self.take: Callable[[bytes], None] = handler.data_received
        """Takes what arrives."""
        self.ends_head = False
        """Whether what arrived last ended with the head of a request."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._handler.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        self._count(len(data))
        if self._transport.is_closing():
            return  # it was turned out, and nothing is done for it any more
        self.ends_head = data.endswith(HEAD_END)
        self.take(data)

    def eof_received(self) -> bool | None:
        return self._handler.eof_received()

    def connection_lost(self, error: Exception | None) -> None:
        self._handler.connection_lost(error)

    def pause_writing(self) -> None:
        self._handler.pause_writing()

    def resume_writing(self) -> None:
        self._handler.resume_writing()


class Door:
    """
    Accept connections and bound how many there are; belongs to the event loop.

    A connection that has made no request that was let in is a stranger. There are few of those,
    the one silent for longest makes room for the next, and none stays silent for long: so that
    whoever opens connections and says nothing keeps nobody out. Messages that have begun to arrive
    take so much memory and no more: beyond that the connection that holds most of it is ended.
    """

    def __init__(
        self,
        handler: Callable[[], Handler],
        handlers: Callable[[], list[Handler]],
        limits: Limits,
        tls: ssl.SSLContext | None,
    ) -> None:
        """Take what makes the protocol of a connection, and what lists those connected."""
        self._make = handler
        self._handlers = handlers
        self._limits = limits
        self._tls = tls
        self._guests: dict[_Guest, None] = {}
        self._by_handler: dict[Handler, _Guest] = {}
        self._most_bytes = max(limits.arriving_bytes, 2 * limits.message_bytes)
        self._arrived = 0  # bytes, over all guests
        self._listener: socket.socket | None = None
        self._tasks: list[asyncio.Task[None]] = []

    def open(self, host: str, port: int) -> int:
        """
        Listen, and return the port; with port 0 the system picks one.

        Raises
        ------
        OSError
            The address cannot be listened on.

        """
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, _, _, _, address = found[0]
        self._listener = socket.create_server(address[:2], family=family, backlog=BACKLOG)
        self._listener.setblocking(False)
        self._tasks = [
            asyncio.create_task(self._accept(self._listener)),
            asyncio.create_task(self._sweep()),
        ]
        return int(self._listener.getsockname()[1])

    def close(self) -> None:
        """Let nobody in any more; who is inside stays."""
        for task in self._tasks:
            task.cancel()
        for guest in self._guests:
            if guest.transport is None:
                guest.turn_out()
        if self._listener is not None:
            self._listener.close()

    def spoke(self, handler: Handler, admitted: bool) -> None:
        """Note that a connection made a request, and whether it was let in."""
        guest = self._by_handler.get(handler)
        if guest is not None:
            guest.seen_s = _now_s()
            guest.admitted |= admitted

    def took(self, handler: Handler) -> None:
        """Note that a message of a connection has been read whole."""
        guest = self._by_handler.get(handler)
        if guest is not None:
            self._arrived -= guest.arrived
            guest.arrived = 0

    def divert(self, handler: Handler, take: Callable[[bytes], None]) -> None:
        """Let `take` have what arrives from now on, unless the handler has some of it already."""
        guest = self._by_handler.get(handler)
        if guest is not None and guest.counted is not None and guest.counted.ends_head:
            guest.counted.take = take

    def _count(self, guest: _Guest, nbytes: int) -> None:
        guest.arrived += nbytes
        self._arrived += nbytes
        if self._arrived > self._most_bytes:
            largest = max(self._guests, key=lambda guest: guest.arrived)
            log.warning(
                'messages of %d bytes are still arriving: the connection with the most, %d, is '
                'ended',
                self._arrived,
                largest.arrived,
            )
            largest.turn_out()
            self._forget(largest)

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, _ = await loop.sock_accept(listener)
            except OSError as error:
                log.warning('no connection can be accepted: %s', error)
                self._make_room()
                await asyncio.sleep(AGAIN_S)
                continue
            self._welcome(accepted)

    def _welcome(self, accepted: socket.socket) -> None:
        limits = self._limits
        if len(self._guests) >= limits.strangers:
            self._forget_the_gone()
        if len(self._strangers()) >= limits.strangers:
            self._make_room()
        if len(self._guests) >= limits.connections + limits.strangers:
            accepted.close()
            return
        accepted.setblocking(False)
        _set_patience(accepted)
        guest = _Guest(accepted, _now_s())
        self._guests[guest] = None
        guest.entering = asyncio.create_task(self._enter(guest))
        guest.entering.add_done_callback(lambda task: self._entered(guest, task))

    async def _enter(self, guest: _Guest) -> None:
        def handler() -> Handler:
            guest.handler = self._make()
            self._by_handler[guest.handler] = guest
            guest.counted = _Counted(guest.handler, partial(self._count, guest))
            return guest.counted

        loop = asyncio.get_running_loop()
        patience_s = self._limits.stranger_s if self._tls is not None else None
        guest.transport, _ = await loop.connect_accepted_socket(
            handler, guest.socket, ssl=self._tls, ssl_handshake_timeout=patience_s
        )

    def _entered(self, guest: _Guest, entering: asyncio.Task[None]) -> None:
        """Let go of a connection that came no further than its handshake."""
        if guest.transport is not None:
            return
        self._forget(guest)
        guest.socket.close()
        if not entering.cancelled() and not isinstance(entering.exception(), OSError):
            log.error('a connection could not be taken', exc_info=entering.exception())

    def _strangers(self) -> list[_Guest]:
        return [guest for guest in self._guests if not guest.admitted]

    def _make_room(self) -> None:
        """Turn out the stranger that has been silent for longest."""
        guest = min(self._strangers(), key=lambda guest: guest.seen_s, default=None)
        if guest is not None:
            guest.turn_out()
            self._forget(guest)

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(self._limits.stranger_s / 4)
            self._forget_the_gone()
            for guest in self._strangers():
                if _now_s() - guest.seen_s > self._limits.stranger_s:
                    guest.turn_out()

    def _forget_the_gone(self) -> None:
        inside = set(self._handlers())
        for guest in list(self._guests):
            if guest.transport is not None and guest.handler not in inside:
                self._forget(guest)

    def _forget(self, guest: _Guest) -> None:
        if guest in self._guests:
            del self._guests[guest]
            self._arrived -= guest.arrived
        if guest.handler is not None:
            self._by_handler.pop(guest.handler, None)


def _set_patience(accepted: socket.socket) -> None:
    with contextlib.suppress(OSError):
        accepted.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in PATIENCE.items():
        option = getattr(socket, name, None)
        if option is not None:
            with contextlib.suppress(OSError):
                accepted.setsockopt(socket.IPPROTO_TCP, option, value)


def _now_s() -> float:
    return asyncio.get_running_loop().time()

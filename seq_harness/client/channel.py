"""A socket to a worker: through a proxy or not, in TLS or not, every wait with a deadline."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Sequence
from contextlib import suppress
import hashlib
import hmac
from http.client import HTTPConnection
import math
import select
import socket
import ssl
import time
from typing import TypeVar
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from seq_harness.client.cancel import Cancel
from seq_harness.client.endpoint import Endpoint
from seq_harness.contract.wire import HEADER_PROXY_AUTHORIZATION

T = TypeVar('T')

STALL_S = 5.0
"""How long a send may make no progress at all before the connection counts as lost."""

KEEPALIVE = {
    'TCP_USER_TIMEOUT': int(STALL_S * 1e3),
    'TCP_KEEPIDLE': 2,
    'TCP_KEEPINTVL': 1,
    'TCP_KEEPCNT': 3,
}
"""A host that is gone is found out 5 s after its last sign of life."""

SHORTEST_S = 1e-3
"""A wait that is over is still given one look at the socket."""


class Channel:
    """
    A connected socket, used by one thread at a time; its deadlines are on the monotonic clock.

    `abort` alone may be called from any thread.
    """

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._closed = False
        self._secured = isinstance(sock, ssl.SSLSocket)  # which waits by itself
        if not self._secured:
            sock.setblocking(False)
        self._readable, self._writable = select.poll(), select.poll()
        self._readable.register(sock, select.POLLIN)
        self._writable.register(sock, select.POLLOUT)

    def send(self, pieces: Sequence[bytes | memoryview], deadline_s: float) -> None:
        """
        Send all pieces.

        Raises
        ------
        TimeoutError
            Nothing went out for `STALL_S`, or the deadline passed.
        OSError
            The connection ended.

        """
        # TLS takes one piece at a time.
        left = [memoryview(piece) for piece in ((b''.join(pieces),) if self._secured else pieces)]
        while left:
            sent = self._send_some(left, deadline_s)
            while left and sent >= len(left[0]):
                sent -= len(left.pop(0))
            if left:
                left[0] = left[0][sent:]
                if time.monotonic() >= deadline_s:
                    raise TimeoutError('not all could be sent in time')

    def receive(self, most: int, deadline_s: float) -> bytes:
        """
        Return the next bytes, or none where the peer has ended the connection.

        Raises
        ------
        TimeoutError
            The deadline passed.
        OSError
            The connection ended otherwise.

        """
        return self._once_readable(lambda: self._sock.recv(most), deadline_s)

    def receive_into(self, buffer: memoryview, deadline_s: float) -> int:
        """Receive into a buffer; raises as `receive` does."""
        return self._once_readable(lambda: self._sock.recv_into(buffer), deadline_s)

    def _once_readable(self, receive: Callable[[], T], deadline_s: float) -> T:
        while True:
            if self._secured:
                self._sock.settimeout(_left_s(deadline_s))
            elif not self._readable.poll(_left_ms(deadline_s)):
                raise TimeoutError('nothing came in time')
            try:
                return receive()
            except BlockingIOError:
                continue  # what woke us is gone again

    def _send_some(self, pieces: list[memoryview], deadline_s: float) -> int:
        """Send what goes out; wait `STALL_S` at the most until anything does."""
        until_s = min(deadline_s, time.monotonic() + STALL_S)
        if self._secured:
            self._sock.settimeout(_left_s(until_s))
            return self._sock.send(pieces[0])
        while True:
            try:
                return self._sock.sendmsg(pieces)
            except BlockingIOError:
                if not self._writable.poll(_left_ms(until_s)):
                    raise TimeoutError('nothing more could be sent in time') from None

    @property
    def has_news(self) -> bool:
        """Tell whether bytes, or the end of the connection, can be received at once."""
        if isinstance(self._sock, ssl.SSLSocket) and self._sock.pending():
            return True
        return self._closed or bool(self._readable.poll(0))

    def abort(self) -> None:
        """End the connection at once; whoever waits on it is told."""
        _shut_down(self._sock)

    def close(self) -> None:
        """Release the socket."""
        self._closed = True
        self.abort()
        self._sock.close()


def dial(endpoint: Endpoint, deadline_s: float, cancel: Cancel) -> Channel:
    """
    Connect to an endpoint, through the proxy that the environment names for it.

    `cancel` ends the wait for a certificate.

    Raises
    ------
    ssl.SSLError
        The peer's certificate is not to be trusted.
    OSError
        No connection was made.

    """
    sock = _connected(endpoint, deadline_s)
    try:
        _find_dead_peers(sock)
        if endpoint.is_secure:
            sock.settimeout(_left_s(deadline_s))
            sock = _secured(sock, endpoint, cancel)
        return Channel(sock)
    except BaseException:
        sock.close()
        raise


def _connected(endpoint: Endpoint, deadline_s: float) -> socket.socket:
    proxy = _proxy_of(endpoint)
    if proxy is None:
        connection = HTTPConnection(endpoint.host, endpoint.port, timeout=_left_s(deadline_s))
    else:
        parts = urlsplit(proxy if '://' in proxy else f'http://{proxy}')
        connection = HTTPConnection(
            parts.hostname or '', parts.port or 80, timeout=_left_s(deadline_s)
        )
        headers = {}
        if parts.username:
            secret = f'{unquote(parts.username)}:{unquote(parts.password or "")}'
            encoded = b64encode(secret.encode()).decode()
            headers[HEADER_PROXY_AUTHORIZATION] = f'Basic {encoded}'
        connection.set_tunnel(endpoint.host, endpoint.port, headers)
    try:
        connection.connect()  # which sets TCP_NODELAY
    except BaseException:
        connection.close()  # a proxy may have answered
        raise
    sock: socket.socket = connection.sock
    return sock


def _proxy_of(endpoint: Endpoint) -> str | None:
    if endpoint.direct or proxy_bypass(endpoint.host):
        return None
    return getproxies().get('https' if endpoint.is_secure else 'http')


def _secured(sock: socket.socket, endpoint: Endpoint, cancel: Cancel) -> ssl.SSLSocket:
    if endpoint.fingerprint is None:
        context = endpoint.tls or ssl.create_default_context()
    else:
        # A pinned certificate is trusted for what it is, whoever signed it, whatever it names.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    secured = context.wrap_socket(
        sock, server_hostname=endpoint.host, do_handshake_on_connect=False
    )
    try:
        with cancel.calling(lambda: _shut_down(secured)):
            secured.do_handshake()
        if endpoint.fingerprint is not None:
            _check_fingerprint(secured, endpoint.fingerprint)
    except BaseException:
        secured.close()
        raise
    return secured


def _check_fingerprint(secured: ssl.SSLSocket, expected: str) -> None:
    shown = hashlib.sha256(secured.getpeercert(binary_form=True) or b'').hexdigest()
    if not hmac.compare_digest(shown, expected):
        raise ssl.SSLCertVerificationError(
            f'a certificate with the sha256 {expected} was expected, and the peer shows {shown}'
        )


def _shut_down(sock: socket.socket) -> None:
    """End a connection from any thread."""
    with suppress(OSError):
        # The TLS layer's own would pull it from under another thread.
        socket.socket.shutdown(sock, socket.SHUT_RDWR)


def _find_dead_peers(sock: socket.socket) -> None:
    """Let the system end a connection whose peer is gone."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEPALIVE.items():
        option = getattr(socket, name, None)  # Linux has them all
        if option is not None:
            sock.setsockopt(socket.IPPROTO_TCP, option, value)


def _left_s(deadline_s: float) -> float:
    return max(SHORTEST_S, deadline_s - time.monotonic())


def _left_ms(deadline_s: float) -> int:
    return math.ceil(_left_s(deadline_s) * 1e3)

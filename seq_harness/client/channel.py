"""A socket to a worker: through a proxy or not, in TLS or not, every wait with a deadline."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from contextlib import suppress
import hashlib
import hmac
from http.client import HTTPConnection
import select
import socket
import ssl
import struct
import sys
import time
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from seq_harness.client.endpoint import Endpoint
from seq_harness.contract.wire import HEADER_PROXY_AUTHORIZATION

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
        # A wait that the system itself ends takes one call in place of three.
        self._system_waits = sys.platform == 'linux' and not isinstance(sock, ssl.SSLSocket)
        self._waits_s = {socket.SO_RCVTIMEO: 0.0, socket.SO_SNDTIMEO: 0.0}
        if self._system_waits:
            sock.settimeout(None)
        self._poller = select.poll()
        self._poller.register(sock, select.POLLIN)

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
        secured = isinstance(self._sock, ssl.SSLSocket)  # which takes one piece at a time
        left = [memoryview(piece) for piece in ((b''.join(pieces),) if secured else pieces)]
        while left:
            self._wait(socket.SO_SNDTIMEO, min(STALL_S, _left_s(deadline_s)))
            try:
                sent = self._sock.send(left[0]) if secured else self._sock.sendmsg(left)
            except BlockingIOError:
                raise TimeoutError('nothing more could be sent in time') from None
            while left and sent >= len(left[0]):
                sent -= len(left.pop(0))
            if sent:
                left[0] = left[0][sent:]

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
        self._wait(socket.SO_RCVTIMEO, _left_s(deadline_s))
        try:
            return self._sock.recv(most)
        except BlockingIOError:
            raise TimeoutError('nothing came in time') from None

    def receive_into(self, buffer: memoryview, deadline_s: float) -> int:
        """Receive into a buffer; raises as `receive` does."""
        self._wait(socket.SO_RCVTIMEO, _left_s(deadline_s))
        try:
            return self._sock.recv_into(buffer)
        except BlockingIOError:
            raise TimeoutError('nothing came in time') from None

    def _wait(self, option: int, longest_s: float) -> None:
        """Let the next call wait for so long, to `SHORTEST_S`."""
        if not self._system_waits:
            self._sock.settimeout(longest_s)
        elif abs(longest_s - self._waits_s[option]) >= SHORTEST_S:
            whole_s = int(longest_s)
            time_value = struct.pack('@ll', whole_s, int((longest_s - whole_s) * 1e6))
            self._sock.setsockopt(socket.SOL_SOCKET, option, time_value)
            self._waits_s[option] = longest_s

    @property
    def has_news(self) -> bool:
        """Tell whether bytes, or the end of the connection, can be received at once."""
        if isinstance(self._sock, ssl.SSLSocket) and self._sock.pending():
            return True
        return self._closed or bool(self._poller.poll(0))

    def abort(self) -> None:
        """End the connection at once; whoever waits on it is told."""
        with suppress(OSError):
            # The TLS layer's own would pull it from under another thread.
            socket.socket.shutdown(self._sock, socket.SHUT_RDWR)

    def close(self) -> None:
        """Release the socket."""
        self._closed = True
        self.abort()
        self._sock.close()


def dial(endpoint: Endpoint, deadline_s: float) -> Channel:
    """
    Connect to an endpoint, through the proxy that the environment names for it.

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
            sock = _secured(sock, endpoint)
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
    connection.connect()  # which sets TCP_NODELAY
    sock: socket.socket = connection.sock
    return sock


def _proxy_of(endpoint: Endpoint) -> str | None:
    if endpoint.direct or proxy_bypass(endpoint.host):
        return None
    return getproxies().get('https' if endpoint.is_secure else 'http')


def _secured(sock: socket.socket, endpoint: Endpoint) -> ssl.SSLSocket:
    if endpoint.fingerprint is None:
        context = endpoint.tls or ssl.create_default_context()
        return context.wrap_socket(sock, server_hostname=endpoint.host)
    # A pinned certificate is trusted for what it is, whoever signed it and whatever it names.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    secured = context.wrap_socket(sock, server_hostname=endpoint.host)
    shown = hashlib.sha256(secured.getpeercert(binary_form=True) or b'').hexdigest()
    if not hmac.compare_digest(shown, endpoint.fingerprint):
        secured.close()
        raise ssl.SSLCertVerificationError(
            f'a certificate with the sha256 {endpoint.fingerprint} was expected, and the peer '
            f'shows {shown}'
        )
    return secured


def _find_dead_peers(sock: socket.socket) -> None:
    """Let the system end a connection whose peer is gone."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEPALIVE.items():
        option = getattr(socket, name, None)  # Linux has them all
        if option is not None:
            sock.setsockopt(socket.IPPROTO_TCP, option, value)


def _left_s(deadline_s: float) -> float:
    return max(SHORTEST_S, deadline_s - time.monotonic())

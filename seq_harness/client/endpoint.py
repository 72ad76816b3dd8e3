"""Where a worker is, and with which secret it is spoken to."""

from __future__ import annotations

from dataclasses import dataclass, field
import ipaddress
import ssl
from urllib.parse import SplitResult, urlsplit

from seq_harness.client.registry import scheme_of
from seq_harness.contract.limits import MAX_MESSAGE_BYTES
from seq_harness.contract.wire import WS_PATH

PREFIX = 'seq+'
"""A scheme may name the wire before the transport."""


class EndpointRefused(ValueError):
    """An address that must not, or cannot, be spoken to as it is; says what to change."""


@dataclass(frozen=True)
class Endpoint:
    """The address of a worker's websocket; its text shows no secret."""

    url: str
    direct: bool
    """Whether the host is on this machine or its network, so that no proxy lies between."""
    token: str | None = field(default=None, repr=False)
    tls: ssl.SSLContext | None = field(default=None, repr=False)
    max_message_bytes: int = MAX_MESSAGE_BYTES

    def __str__(self) -> str:
        return self.url

    @classmethod
    def read(
        cls,
        url: str,
        token: str | None = None,
        *,
        allow_plaintext: bool = False,
        tls: ssl.SSLContext | None = None,
        max_message_bytes: int = MAX_MESSAGE_BYTES,
    ) -> Endpoint:
        """
        Read the address of a worker; a URL without a path means the websocket's own.

        Raises
        ------
        UnknownScheme, EndpointRefused
            The scheme is no worker's, the host is missing, the URL holds a secret, or the token
            would travel in clear to another machine without `allow_plaintext`.

        """
        scheme = scheme_of(url).removeprefix(PREFIX)
        parts = urlsplit(url)
        host = _host(parts)
        if token is not None and scheme == 'ws' and not _is_loopback(host):
            _check_plaintext(host, allow_plaintext)
        path = parts.path if parts.path not in ('', '/') else WS_PATH
        return cls(
            url=f'{scheme}://{parts.netloc}{path}',
            direct=_is_near(host),
            token=token,
            tls=tls,
            max_message_bytes=max_message_bytes,
        )


def _host(parts: SplitResult) -> str:
    if '@' in parts.netloc or parts.query or parts.fragment:
        raise EndpointRefused(
            'a worker URL holds a host, a port and a path; credentials and queries end up in '
            'logs: give the secret as the token'
        )
    try:
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise EndpointRefused(f'{parts.netloc!r} is no host and port: {error}') from error
    if not host:
        raise EndpointRefused('a worker URL names a host, such as ws://127.0.0.1:8765; got none')
    return host


def _check_plaintext(host: str, allowed: bool) -> None:
    if not allowed:
        raise EndpointRefused(
            f'the token would travel in clear to {host}: use wss://, or allow_plaintext where the '
            'network itself is trusted'
        )


def _is_loopback(host: str) -> bool:
    address = _address(host)
    return host == 'localhost' if address is None else address.is_loopback


def _is_near(host: str) -> bool:
    address = _address(host)
    if address is not None:
        return address.is_private or address.is_loopback or address.is_link_local
    return '.' not in host or host.endswith('.local')


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None

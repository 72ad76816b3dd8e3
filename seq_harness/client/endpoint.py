"""Where a worker or a gateway is, and with which secret it is spoken to."""

from __future__ import annotations

from dataclasses import dataclass, field
import ipaddress
import ssl
from urllib.parse import SplitResult, urlsplit

from seq_harness.client.registry import scheme_of
from seq_harness.contract.limits import MAX_MESSAGE_BYTES
from seq_harness.contract.wire import WS_PATH

PREFIX_END = '+'
"""A scheme may name the wire before the transport, as in seq+ws."""


class EndpointRefused(ValueError):
    """An address that must not, or cannot, be spoken to as it is; says what to change."""


WEBSOCKET = ('ws', 'wss')
SECURE = ('wss', 'https')

FINGERPRINT_DIGITS = 64
"""Hex digits of a sha256."""


@dataclass(frozen=True)
class Endpoint:
    """The address of a worker's websocket or of its HTTP binding; its text shows no secret."""

    url: str
    direct: bool
    """Whether the host is on this machine or its network, so that no proxy lies between."""
    token: str | None = field(default=None, repr=False)
    tls: ssl.SSLContext | None = field(default=None, repr=False)
    fingerprint: str | None = None
    """The sha256 in hex of the one certificate that is trusted, in place of what `tls` trusts."""
    max_message_bytes: int = MAX_MESSAGE_BYTES

    def __str__(self) -> str:
        return self.url

    @property
    def is_websocket(self) -> bool:
        """Tell which binding it is."""
        return urlsplit(self.url).scheme in WEBSOCKET

    @property
    def is_secure(self) -> bool:
        """Tell whether it is spoken to in TLS."""
        return urlsplit(self.url).scheme in SECURE

    @property
    def host(self) -> str:
        """Return the host without the brackets of an IPv6 address."""
        return urlsplit(self.url).hostname or ''

    @property
    def port(self) -> int:
        """Return the port, by default the scheme's."""
        return urlsplit(self.url).port or (443 if self.is_secure else 80)

    @property
    def path(self) -> str:
        """Return the path, which the HTTP binding's own are put behind."""
        return urlsplit(self.url).path

    @classmethod
    def read(
        cls,
        url: str,
        token: str | None = None,
        *,
        allow_plaintext: bool = False,
        tls: ssl.SSLContext | None = None,
        fingerprint: str | None = None,
        max_message_bytes: int = MAX_MESSAGE_BYTES,
        path: str = WS_PATH,
    ) -> Endpoint:
        """
        Read an address; a websocket's URL without a path means `path`.

        Raises
        ------
        UnknownScheme, EndpointRefused
            The scheme is no worker's, the host is missing, the URL holds a secret, or the token
            would travel in clear to another machine without `allow_plaintext`, or the fingerprint
            is none.

        """
        scheme = scheme_of(url).rpartition(PREFIX_END)[2]
        parts = urlsplit(url)
        host = _host(parts)
        if token is not None and scheme not in SECURE and not _is_loopback(host):
            _check_plaintext(host, allow_plaintext)
        own_path = path if scheme in WEBSOCKET else ''
        return cls(
            url=f'{scheme}://{parts.netloc}{parts.path.rstrip("/") or own_path}',
            direct=_is_near(host),
            token=token,
            tls=tls,
            fingerprint=fingerprint_of(fingerprint) if fingerprint else None,
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
            f'the token would travel in clear to {host}: use wss:// or https://, or '
            'allow_plaintext where the network itself is trusted'
        )


def fingerprint_of(text: str) -> str:
    """
    Return the 64 hex digits of a sha256, however they are written.

    Raises
    ------
    EndpointRefused
        It is none.

    """
    digits = text.replace(':', '').strip().lower()
    if len(digits) != FINGERPRINT_DIGITS or not set(digits) <= set('0123456789abcdef'):
        raise EndpointRefused(
            f"a fingerprint is the {FINGERPRINT_DIGITS} hex digits of a certificate's sha256, got "
            f'{text[:100]!r}: openssl x509 -in CERT -noout -fingerprint -sha256 shows it'
        )
    return digits


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

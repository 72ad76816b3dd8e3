"""A worker's coordinates, and how long they hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
import math
import time
from typing import Any

from seq_harness.client.endpoint import Endpoint, EndpointRefused
from seq_harness.client.registry import UnknownScheme
from seq_harness.client.transport import HandshakeRefused
from seq_harness.contract.connect import WorkerDeclaration

AHEAD_SHARE = 0.2
AHEAD_LEAST_S = 1.0
AHEAD_MOST_S = 30.0
"""A lease is renewed this share of its time ahead of its end, within these bounds."""


@dataclass(frozen=True)
class Lease:
    """What a gateway tells of one worker."""

    endpoint: Endpoint
    mark: str
    """The generation of worker and secret; under another one everything begins anew."""
    renew_at_s: float
    """When to ask again, on the monotonic clock; infinite for never."""
    keepalive_s: float | None
    """How often the seat is to be kept; None for not at all."""
    declared: Mapping[str, Any]
    """What the policy declares, as far as the gateway tells it."""


def read_lease(
    body: Mapping[str, Any], gateway: Endpoint, allow_plaintext: bool, max_message_bytes: int
) -> Lease:
    """
    Read the answer of a gateway to `connect`; what it holds beside the coordinates is ignored.

    Raises
    ------
    HandshakeRefused
        It holds none, or an address that must not be spoken to; says no secret.

    """
    url, secret, terms = (body.get(key) for key in ('worker_url', 'direct_secret', 'lease'))
    if not isinstance(url, str) or not isinstance(secret, str) or not isinstance(terms, Mapping):
        raise HandshakeRefused(
            f'{gateway} tells no worker_url, direct_secret and lease: is it the address of a '
            'gateway?'
        )
    pin = str(body.get('cert_fingerprint') or '') if url.startswith('https:') else None
    try:
        endpoint = Endpoint.read(
            url,
            secret,
            allow_plaintext=allow_plaintext,
            fingerprint=pin,
            max_message_bytes=max_message_bytes,
        )
    except (EndpointRefused, UnknownScheme) as error:
        raise HandshakeRefused(f'{gateway} names a worker: {error}') from error
    if endpoint.is_websocket or (endpoint.is_secure and not endpoint.fingerprint):
        raise HandshakeRefused(
            f'{gateway} names {endpoint}: http://, or https:// with a fingerprint, was expected'
        )
    return Lease(
        endpoint,
        f'#{terms.get("epoch")}',
        _renew_at_s(terms.get('ttl_s')),
        _every_s(body.get('keepalive')),
        _declared(body),
    )


def _renew_at_s(ttl_s: Any) -> float:
    if not isinstance(ttl_s, (int, float)) or ttl_s <= 0:
        return math.inf
    ahead_s = min(AHEAD_MOST_S, max(AHEAD_LEAST_S, AHEAD_SHARE * ttl_s))
    return time.monotonic() + max(ttl_s - ahead_s, 0.0)


def _every_s(keepalive: Any) -> float | None:
    every_s = keepalive.get('every_s') if isinstance(keepalive, Mapping) else None
    return float(every_s) if isinstance(every_s, (int, float)) and every_s > 0 else None


def _declared(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is declared of the policy: what it is given as null is not declared."""
    fields = set(WorkerDeclaration.model_fields) - {'instance'}
    return {name: value for name, value in body.items() if name in fields and value is not None}

"""Which class speaks which wire, by the scheme of the worker's URL."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
import json
from pathlib import Path
import ssl
from typing import Any, Protocol
from urllib.parse import urlsplit

from seq_harness.contract.connect import WorkerDeclaration
from seq_harness.playback.session import Observation
from seq_harness.playback.uplink import PolicyScope

SEQUENCE = 'seq_harness.client.sequence:SequencePolicy'

WIRES: Mapping[str, str] = {
    'ws': SEQUENCE,
    'wss': SEQUENCE,
    'http': SEQUENCE,
    'https': SEQUENCE,
    'seq+ws': SEQUENCE,
    'seq+wss': SEQUENCE,
    'seq+http': SEQUENCE,
    'seq+https': SEQUENCE,
    'embedded': 'seq_harness.client.embedded:EmbeddedPolicy',
}
"""Scheme to MODULE:CLASS, imported when it is chosen: one line a wire."""


class UnknownScheme(ValueError):
    """A worker URL that no wire speaks; names the schemes that are known."""


class Policy(Protocol):
    """A policy on the far side of some wire."""

    def connect(self) -> WorkerDeclaration:
        """Reach the worker, wait until it is warm, and return what its policy declares."""

    def warm_up(self, observation: Observation) -> None:
        """Ask once about `observation`, in an episode of its own, and discard the answer."""

    def open_episode(self, clock_ns: Callable[[], int]) -> PolicyScope:
        """Open an episode; `clock_ns` reads the playback clock."""

    @property
    def connected(self) -> bool:
        """Tell whether the worker can be asked, as far as is known."""

    def figures(self) -> dict[str, Any]:
        """Return plain figures of the connection and of the newest episode, for people."""

    def close(self) -> None:
        """Interrupt whatever waits for the worker, and release the connections."""


def scheme_of(url: str) -> str:
    """
    Return the scheme of a worker URL.

    Raises
    ------
    UnknownScheme
        No wire has it.

    """
    scheme = urlsplit(url).scheme.lower()
    if scheme not in WIRES:
        known = ', '.join(f'{name}://' for name in WIRES)
        raise UnknownScheme(
            f'a worker URL starts with one of {known}; got {_shown(url)!r}: '
            'is it the address of a worker, such as ws://127.0.0.1:8765?'
        )
    return scheme


class Parameters(Protocol):
    """The robot's parameters, by name."""

    def __getitem__(self, name: str, /) -> Any:
        """Return the value of a parameter."""


def open_policy(settings: Parameters, say: Callable[[str], None] | None = None) -> Policy:
    """
    Make the client of the worker that the parameters name; it connects later.

    `say` is told of everything that changes between us and the worker, once, from any thread.

    Raises
    ------
    UnknownScheme
        No wire has the scheme of `worker_url`.
    ValueError
        The address must not be spoken to as it is, the token file holds no token, or
        `policy_params` is no JSON object.
    OSError
        The token file, or that of the authorities, cannot be read.

    """
    return policy_at(
        settings['gateway_url'] or settings['worker_url'],
        via_gateway=bool(settings['gateway_url']),
        model=settings['model'],
        embodiment=settings['embodiment'] or None,
        seed=settings['seed'] if settings['seed'] >= 0 else None,
        params=_params(settings['policy_params']),
        fingerprint=settings['tls_fingerprint'] or None,
        tls=_authorities(settings['tls_ca_file']),
        token=_token(settings['worker_token_file']),
        allow_plaintext=settings['allow_plaintext'],
        connect_timeout_s=settings['connect_timeout_s'],
        act_timeout_s=settings['act_timeout_s'],
        max_request_age_s=settings['max_request_age_s'],
        reconnect_s=settings['reconnect_s'],
        on_state=say,
    )


def policy_at(url: str, **options: Any) -> Policy:
    """
    Make the client of the wire that `url` names; `options` are those of its class.

    Raises
    ------
    UnknownScheme
        No wire has the scheme of `url`.

    """
    module, _, name = WIRES[scheme_of(url)].partition(':')
    policy: Policy = getattr(import_module(module), name)(url, **options)
    return policy


def _token(path: str) -> str | None:
    if not path:
        return None
    token = Path(path).expanduser().read_text().strip()
    if not token:
        raise ValueError(f'{path} holds no token: it was expected to hold the bearer alone')
    return token


def _params(text: str) -> dict[str, Any] | None:
    try:
        params = json.loads(text or 'null')
    except ValueError as error:
        raise ValueError(f'policy_params: a JSON object was expected: {error}') from None
    if params is not None and not isinstance(params, dict):
        raise ValueError(f'policy_params: a JSON object was expected, got {text[:80]!r}')
    return params


def _authorities(path: str) -> ssl.SSLContext | None:
    return ssl.create_default_context(cafile=str(Path(path).expanduser())) if path else None


def _shown(url: str) -> str:
    """Leave out what may be a secret."""
    return url.rpartition('@')[2].partition('?')[0][:200]

"""Which class speaks which wire, by the scheme of the worker's URL."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
import json
from pathlib import Path
import ssl
from typing import Any, Protocol
from urllib.parse import urlsplit

from seq_harness.contract.connect import WorkerDeclaration
from seq_harness.playback.session import Observation
from seq_harness.playback.uplink import PolicyScope
from seq_harness.settings.parameter import SettingsError

SEQUENCE = 'seq_harness.client.sequence:SequencePolicy'
POSITRONIC = 'seq_harness.client.positronic:PositronicPolicy'

WIRES: Mapping[str, str] = {
    'ws': SEQUENCE,
    'wss': SEQUENCE,
    'http': SEQUENCE,
    'https': SEQUENCE,
    'seq+ws': SEQUENCE,
    'seq+wss': SEQUENCE,
    'seq+http': SEQUENCE,
    'seq+https': SEQUENCE,
    'positronic+ws': POSITRONIC,
    'positronic+wss': POSITRONIC,
    'embedded': 'seq_harness.client.embedded:EmbeddedPolicy',
    'openpi+ws': 'seq_harness.client.openpi:openpi_policy',
    'openpi+wss': 'seq_harness.client.openpi:openpi_policy',
    'roboarena+ws': 'seq_harness.client.roboarena:roboarena_policy',
}
"""Scheme to MODULE:CLASS or function, imported when it is chosen: one line a wire."""

SERVER_PARAMETERS = (
    'server_preset',
    'server_keys',
    'server_columns',
    'server_rows_key',
    'server_width',
    'server_keeps_state',
    'server_action_space',
    'server_first_camera',
)
"""What is told to the wires whose servers declare too little of themselves."""

TOLD = ('openpi', 'positronic', 'roboarena')
"""The first part of their schemes."""


class UnknownScheme(ValueError):
    """A worker URL that no wire speaks; names the schemes that are known."""


class Policy(Protocol):
    """A policy on the far side of some wire."""

    def connect(self) -> WorkerDeclaration:
        """Reach the worker, wait until it is warm, and return what its policy declares."""

    def warm_up(self, observation: Observation) -> Any:
        """Ask once about `observation`, in an episode of its own, and return the outputs."""

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
    SettingsError
        No wire has the scheme of `worker_url`, the address must not be spoken to as it is, a file
        cannot be read or holds no token, or `policy_params` is no JSON object; names the
        parameter.

    """
    where = 'gateway_url' if settings['gateway_url'] else 'worker_url'
    options = {
        name: _read(settings, parameter, read)
        for name, parameter, read in (
            ('params', 'policy_params', _params),
            ('tls', 'tls_ca_file', _authorities),
            ('token', 'worker_token_file', _token),
            ('fingerprint', 'tls_fingerprint', _fingerprint),
        )
    }
    with _naming(where):
        return policy_at(
            settings[where],
            via_gateway=where == 'gateway_url',
            model=settings['model'],
            embodiment=settings['embodiment'] or None,
            seed=settings['seed'] if settings['seed'] >= 0 else None,
            allow_plaintext=settings['allow_plaintext'],
            connect_timeout_s=settings['connect_timeout_s'],
            act_timeout_s=settings['act_timeout_s'],
            max_request_age_s=settings['max_request_age_s'],
            reconnect_s=settings['reconnect_s'],
            on_state=say,
            **_server(settings[where], settings),
            **options,
        )


@contextmanager
def _naming(parameter: str) -> Iterator[None]:
    """Have an error of a parameter's value name the parameter."""
    try:
        yield
    except (OSError, ValueError) as error:
        raise SettingsError(f'parameter {parameter!r}: {error}') from error


def _read(settings: Parameters, parameter: str, read: Callable[[str], Any]) -> Any:
    with _naming(parameter):
        return read(settings[parameter])


def policy_at(url: str, **options: Any) -> Policy:
    """
    Make the client of the wire that `url` names; `options` are those that it takes.

    Raises
    ------
    UnknownScheme
        No wire has the scheme of `url`.

    """
    module, _, name = WIRES[scheme_of(url)].partition(':')
    policy: Policy = getattr(import_module(module), name)(url, **options)
    return policy


def _server(url: str, settings: Parameters) -> dict[str, Any]:
    """Return what is told to the wires whose servers declare too little of themselves."""
    if scheme_of(url).partition('+')[0] not in TOLD:
        return {}
    return {'server': {name: settings[name] for name in SERVER_PARAMETERS}}


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
        raise ValueError(f'a JSON object was expected: {error}') from None
    if params is not None and not isinstance(params, dict):
        raise ValueError(f'a JSON object was expected, got {text[:80]!r}')
    return params


def _authorities(path: str) -> ssl.SSLContext | None:
    if not path:
        return None
    file = Path(path).expanduser()
    file.stat()  # whose error names a file that is not there, as that of ssl does not
    try:
        return ssl.create_default_context(cafile=str(file))
    except ssl.SSLError as error:
        raise ValueError(f'{file} was expected to hold certificates in PEM: {error}') from error


def _fingerprint(text: str) -> str | None:
    from seq_harness.client.endpoint import fingerprint_of  # which imports this module

    return fingerprint_of(text) if text else None


def _shown(url: str) -> str:
    """Leave out what may be a secret."""
    return url.rpartition('@')[2].partition('?')[0][:200]

"""The robot's side of positronic's wire, protocols 1 to 3, over the websocket."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
import json
import ssl
from typing import Any
from urllib.parse import quote, urlsplit

from seq_harness.client.cancel import Cancel
from seq_harness.client.endpoint import Endpoint
from seq_harness.client.key_map import naming_both, ROWS
from seq_harness.client.key_reading import read_keeps_state, read_key_map
from seq_harness.client.notices import Notices
from seq_harness.client.positronic_opening import Opener
from seq_harness.client.positronic_scope import PositronicScope, Terms
from seq_harness.client.positronic_session import SESSION_PATH
from seq_harness.client.positronic_sessions import Sessions
from seq_harness.client.positronic_stack import LocalStack, read_stack, STACK
from seq_harness.contract.connect import WorkerDeclaration
from seq_harness.contract.limits import MAX_IO_LENGTH
from seq_harness.contract.own_io import Actions
from seq_harness.playback.session import Observation
from seq_harness.playback.uplink import PolicyError, Retired, Step, WorkerLost

PREFIX = 'positronic+'

CLOSE_S = 2.0
"""How long closing waits for the ends of sessions."""


class PositronicPolicy:
    """
    A policy served by a positronic server.

    A session is held ready between episodes, and each episode takes one of its own. `connect` and
    `warm_up` block and may be interrupted by `close` from any thread; the rest returns at once.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        allow_plaintext: bool = False,
        tls: ssl.SSLContext | None = None,
        fingerprint: str | None = None,
        via_gateway: bool = False,
        reconnect_s: float = 5.0,
        act_timeout_s: float = 30.0,
        max_request_age_s: float = 10.0,
        connect_timeout_s: float = 120.0,
        model: str = '',
        embodiment: str | None = None,
        seed: int | None = None,
        params: Mapping[str, Any] | None = None,
        server: Mapping[str, Any] | None = None,
        on_state: Callable[[str], None] | None = None,
    ) -> None:
        """
        Take note of a server; nothing is connected yet.

        Parameters
        ----------
        url
            `positronic+ws://host:port` or `positronic+wss://host:port`; the path is that of a
            session unless given.
        token, allow_plaintext, tls, fingerprint
            As for a worker.
        reconnect_s
            How long a server that is missing is looked for when an episode needs a session.
        act_timeout_s
            How long one inference may take before its connection is closed.
        max_request_age_s
            The first inference is repeated only while its observation is younger than this.
        connect_timeout_s
            How long a session may take to open and to be prepared.
        model
            Which of the models of a server of protocol 1 or 2; a later one has one.
        params
            The session's parameters.
        server
            What the server's keys hold, the columns of its rows, the key that holds them, and
            whether its policy keeps state: the parameters `server_*`.
        on_state
            Told, from any thread, of everything that changes between us and the server, once.
        via_gateway, embodiment, seed
            Refused: the wire has no place for them.

        Raises
        ------
        ValueError
            The URL must not be spoken to as it is, or an option has no place on this wire.

        """
        _refuse(via_gateway=via_gateway, embodiment=embodiment, seed=seed)
        self._keys = read_key_map(server or {})
        self._keeps_state = read_keeps_state(server or {})
        endpoint = Endpoint.read(
            _with_path(url, model),
            token,
            allow_plaintext=allow_plaintext,
            tls=tls,
            fingerprint=fingerprint,
        )
        self._name = str(endpoint)
        self._notices = Notices(on_state)
        self._cancel = Cancel()
        self._sessions = Sessions(
            Opener(endpoint, params, self._notices),
            self._notices,
            self._cancel,
            reconnect_s=reconnect_s,
            prepare_s=connect_timeout_s,
        )
        self._connect_timeout_s = connect_timeout_s
        self._act_timeout_s = act_timeout_s
        self._max_request_age_s = max_request_age_s
        self._stack: LocalStack | None = None  # written once, by `connect`
        self._newest: PositronicScope | None = None
        # Replaced whole, by the thread that opens episodes.
        self._scopes: tuple[PositronicScope, ...] = ()

    @property
    def connected(self) -> bool:
        """Tell whether the server is there to be asked, as far as is known."""
        return self._sessions.reaches

    def connect(self) -> WorkerDeclaration:
        """
        Open a session, wait until the server has prepared it, and return what it declares.

        Raises
        ------
        WorkerLost
            There was none within `connect_timeout_s`, or `close` was called.
        HandshakeRefused
            The server refuses the token, the parameters or the session, or is none of this wire.
        ValueError
            The server wants a layer on the robot's side that it does not have.

        """
        meta = self._sessions.first(self._connect_timeout_s)
        self._stack = stack = read_stack(meta)
        self._notices.say('link', f'connected to {self._name}')
        for said in stack.played_by:
            self._notices.say(said, f'the server wants {said}')
        rows = Actions(key=ROWS, hz=stack.fps, open_loop_horizon=stack.horizon_rows)
        declared = {'io': _shown(meta), 'actions': rows, 'keeps_state': self._keeps_state}
        return self._keys.declaration().model_copy(update=declared)

    def warm_up(self, observation: Observation) -> Any:
        """
        Ask once about `observation`, in a session of its own, and return the outputs.

        Waits as long as connecting does, for a first inference may compile.

        Raises
        ------
        PolicyError, WorkerLost, ActAbandoned
            The act failed, or `close` was called.

        """
        scope = self._open(lambda: 0, self._connect_timeout_s, self._connect_timeout_s)
        try:
            return scope.infer(Step(0, 0, observation))
        except PolicyError as error:
            raise naming_both(error, observation, self._keys.describe()) from error
        except Retired:
            raise WorkerLost('closed while warming up') from None
        finally:
            scope.close()

    def open_episode(self, clock_ns: Callable[[], int]) -> PositronicScope:
        """
        Open an episode; `clock_ns` reads the playback clock, in ns.

        Raises
        ------
        RuntimeError
            Before `connect`, or after `close`.

        """
        scope = self._open(clock_ns, self._act_timeout_s, self._max_request_age_s)
        self._newest = scope
        return scope

    def figures(self) -> dict[str, Any]:
        """Return plain figures of the connection and of the newest episode, for people."""
        newest = self._newest
        figures = {'connected': self.connected, 'instance': self._name}
        if newest is None:
            return figures
        server = {name: asdict(spread) for name, spread in newest.server_times().items()}
        return {**figures, **asdict(newest.figures()), 'server': server}

    def close(self) -> None:
        """
        Interrupt whatever waits for the server, and end the sessions.

        May be called from any thread, and again; takes `CLOSE_S` at the most.
        """
        self._cancel.set()
        for scope in self._scopes:
            scope.close()
        self._sessions.close(CLOSE_S)

    def _open(
        self, clock_ns: Callable[[], int], act_timeout_s: float, max_request_age_s: float
    ) -> PositronicScope:
        if self._stack is None or self._cancel.is_set():
            raise RuntimeError('no episode can be opened: connect first, and do not close')
        scope = PositronicScope(
            self._sessions,
            Terms(self._keys, self._stack),
            clock_ns,
            self._notices,
            act_timeout_s=act_timeout_s,
            max_request_age_s=max_request_age_s,
            keeps_state=self._keeps_state,
        )
        self._scopes = (*(known for known in self._scopes if not known.closed), scope)
        return scope


def _with_path(url: str, model: str) -> str:
    """Return the address of a session as the websocket's own scheme writes it."""
    plain = url.removeprefix(PREFIX)
    if model and urlsplit(plain).path.strip('/'):
        raise ValueError(f'both the path of worker_url and model name a model: {model!r}')
    if urlsplit(plain).path.strip('/'):
        return plain
    # An id may be a path itself, whose slashes stay.
    named = f'/{quote(model, safe="/")}' if model else ''
    return f'{plain.rstrip("/")}{SESSION_PATH}{named}'


def _refuse(**options: Any) -> None:
    given = [name for name, value in options.items() if value not in (None, False)]
    if given:
        raise ValueError(
            f"positronic's wire has no place for {', '.join(given)}: what a server lets a session "
            'set is given in policy_params'
        )


def _shown(meta: Mapping[str, Any]) -> str:
    """Return the metadata as text, without what is obeyed here."""
    rest = {key: value for key, value in meta.items() if key != STACK}
    return json.dumps(rest, default=repr, ensure_ascii=False)[:MAX_IO_LENGTH]

"""A policy on a server of another make: one question, one answer, one at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
import ssl
import time
from typing import Any
from urllib.parse import urlsplit

from seq_harness.client.cancel import Cancel
from seq_harness.client.endpoint import Endpoint, EndpointRefused
from seq_harness.client.keeper import Keeper
from seq_harness.client.key_map import naming_both
from seq_harness.client.notices import Notices
from seq_harness.client.plain_link import Dialect, PlainLink
from seq_harness.client.plain_scope import PlainRules, PlainScope
from seq_harness.client.plain_websocket import PROGRESS_S
from seq_harness.client.transport import Unreachable
from seq_harness.contract.connect import WorkerDeclaration
from seq_harness.contract.limits import MAX_MESSAGE_BYTES
from seq_harness.playback.session import Observation
from seq_harness.playback.uplink import PolicyError, Retired, Step, WorkerLost

FIRST_WAIT_S = 0.25
LAST_WAIT_S = 5.0
"""How long to wait before connecting again to a server that is not there yet: doubling."""


class PolicyClosed(RuntimeError):
    """The policy was closed, perhaps while something waited for its server."""


@dataclass(frozen=True)
class PlainTimes:
    """How long a server is waited for, in seconds; as the parameters of these names say."""

    connect_timeout_s: float = 120.0
    act_timeout_s: float = 30.0
    max_request_age_s: float = 10.0
    reconnect_s: float = 5.0


class PlainPolicy:
    """
    A policy behind one of the wires that stream no observations (Policy).

    `connect` and `warm_up` block, for minutes where a server loads or compiles, and may be
    interrupted by `close` from any thread; the rest returns at once. Between questions the
    connection is looked after: pings are answered, and a lost one is made anew.
    """

    def __init__(
        self,
        dialect: Dialect,
        times: PlainTimes | None = None,
        on_state: Callable[[str], None] | None = None,
    ) -> None:
        """`on_state` is told, from any thread, of everything that changes, once."""
        self._dialect = dialect
        self._times = times or PlainTimes()
        self._notices = Notices(on_state)
        self._cancel = Cancel()
        self._link = PlainLink(dialect, self._say_waiting)
        self._keeper: Keeper | None = None
        self._declaration: WorkerDeclaration | None = None  # written by `connect`
        # Replaced whole, by the thread that opens episodes.
        self._scopes: tuple[PlainScope, ...] = ()
        self._newest: PlainScope | None = None

    @property
    def connected(self) -> bool:
        """Tell whether the server is there to be asked, as far as is known."""
        return self._declaration is not None and self._link.reaches

    def connect(self) -> WorkerDeclaration:
        """
        Reach the server, wait for its greeting, and return what its policy is taken to need.

        Raises
        ------
        WorkerLost
            Nobody greeted within `connect_timeout_s`.
        HandshakeRefused
            The peer is no such server, or refuses the key.
        ValueError
            The greeting asks for what the key map does not give.
        PolicyClosed
            `close` was called.

        """
        talk = self._reached(time.monotonic() + self._times.connect_timeout_s)
        declaration = self._dialect.declare(talk).model_copy(
            update={'keeps_state': self._dialect.keeps_state}
        )
        self._declaration = declaration
        if self._keeper is None:
            self._keeper = Keeper(self._link, self._notices, self._cancel, self._idle)
        self._notices.say('link', f'connected to {self._dialect.address}')
        return declaration

    def warm_up(self, observation: Observation) -> Any:
        """
        Ask once about `observation`, in an episode of its own, and return the outputs.

        Waits as long as connecting does, for a first inference may compile.

        Raises
        ------
        PolicyError, WorkerLost, ActAbandoned, ValueError
            The question failed.
        PolicyClosed
            `close` was called.

        """
        longest_s = self._times.connect_timeout_s
        scope = self._open(lambda: 0, longest_s, longest_s)
        try:
            return scope.infer(Step(0, 0, observation))
        except PolicyError as error:
            sent = self._declaration.io if self._declaration else None
            raise naming_both(error, observation, sent or '') from error
        except Retired:
            raise PolicyClosed('closed while warming up') from None
        finally:
            scope.close()

    def open_episode(self, clock_ns: Callable[[], int]) -> PlainScope:
        """
        Open an episode; `clock_ns` reads the playback clock, in ns.

        Raises
        ------
        PolicyClosed
            After `close`.
        RuntimeError
            Before `connect`.

        """
        scope = self._open(clock_ns, self._times.act_timeout_s, self._times.max_request_age_s)
        self._newest = scope
        return scope

    def figures(self) -> dict[str, Any]:
        """Return plain figures of the connection and of the newest episode, for people."""
        newest, declaration = self._newest, self._declaration
        return {
            'connected': self.connected,
            'instance': declaration.instance if declaration is not None else None,
            **(asdict(newest.figures()) if newest is not None else {}),
        }

    def close(self) -> None:
        """Interrupt whatever waits for the server, end episodes, and release the connection."""
        self._cancel.set()
        for scope in self._scopes:
            scope.close()
        self._link.close()

    def _reached(self, deadline_s: float) -> Any:
        wait_s = FIRST_WAIT_S
        while True:
            left_s = deadline_s - time.monotonic()
            try:
                return self._link.connection(left_s, self._cancel)
            except Unreachable as error:
                reason = str(error)
            if self._cancel.is_set():
                raise PolicyClosed('closed while connecting')
            left_s = deadline_s - time.monotonic()
            if left_s <= 0:
                raise WorkerLost(
                    f'no server greeted at {self._dialect.address} within '
                    f'{self._times.connect_timeout_s:g} s: {reason}'
                )
            self._notices.say('link', f'waiting for the server: {reason}', again_s=PROGRESS_S)
            self._cancel.wait(min(wait_s, left_s))
            wait_s = min(2 * wait_s, LAST_WAIT_S)

    def _open(
        self, clock_ns: Callable[[], int], act_timeout_s: float, max_request_age_s: float
    ) -> PlainScope:
        if self._cancel.is_set():
            raise PolicyClosed('no episode can be opened: the policy is closed')
        if self._declaration is None:
            raise RuntimeError('nothing is known of the server yet: call connect first')
        rules = PlainRules(
            address=self._dialect.address,
            act_timeout_s=act_timeout_s,
            max_request_age_s=max_request_age_s,
            reconnect_s=self._times.reconnect_s,
            keeps_state=self._dialect.keeps_state,
        )
        scope = PlainScope(rules, self._link, self._notices, clock_ns)
        self._scopes = (*(known for known in self._scopes if not known.closed), scope)
        return scope

    def _say_waiting(self, text: str) -> None:
        self._notices.say('link', text, again_s=PROGRESS_S / 2)

    def _idle(self) -> bool:
        return all(scope.closed for scope in self._scopes)


def plain_endpoint(
    url: str,
    options: Mapping[str, Any],
    *,
    port: int | None = None,
    path: str = '',
) -> Endpoint:
    """
    Read the address of a server, and with which secret it is spoken to.

    `port` is that of a `ws` URL without one; None demands one.

    Raises
    ------
    UnknownScheme, EndpointRefused
        The URL is no such server's, or must not be spoken to as it is.

    """
    parts = urlsplit(url)
    if ':' not in parts.netloc.rpartition(']')[2] and parts.scheme.endswith('ws'):
        if port is None:
            raise EndpointRefused(f'the port of {parts.netloc!r} was expected: this wire has none')
        url = parts._replace(netloc=f'{parts.netloc}:{port}').geturl()
    tls: ssl.SSLContext | None = options.get('tls')
    return Endpoint.read(
        url,
        options.get('token'),
        allow_plaintext=bool(options.get('allow_plaintext')),
        tls=tls,
        fingerprint=options.get('fingerprint'),
        max_message_bytes=options.get('max_message_bytes', MAX_MESSAGE_BYTES),
        path=path,
    )


def plain_policy(dialect: Dialect, options: Mapping[str, Any]) -> PlainPolicy:
    """Make the policy of a wire with those of the wires' options that it takes."""
    times = {name: options[name] for name in PlainTimes.__annotations__ if name in options}
    return PlainPolicy(dialect, PlainTimes(**times), options.get('on_state'))


def refuse_options(wire: str, options: Mapping[str, Any], *names: str) -> None:
    """
    Refuse options that a wire has no word for, so that nobody believes that they are sent.

    Raises
    ------
    ValueError
        One of `names` is set.

    """
    for name in names:
        value = options.get(name)
        if value or (value == 0 and value is not False):
            raise ValueError(
                f'{PARAMETERS.get(name, name)} is set, and {wire} has no word for it: leave it out'
            )


PARAMETERS = {'via_gateway': 'gateway_url', 'params': 'policy_params'}
"""The parameters whose options have another name."""

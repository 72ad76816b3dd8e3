"""The robot's side of the worker wire: one policy, its connections and its episodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
import ssl
import time
from typing import Any
import uuid

from seq_harness.client.acting import Acting, ActRules, Wires
from seq_harness.client.cancel import Cancel
from seq_harness.client.endpoint import Endpoint
from seq_harness.client.figures import ActTally
from seq_harness.client.gateway import GatewayRoute, Wanted
from seq_harness.client.greeting import Greeting, ping
from seq_harness.client.keeper import Keeper
from seq_harness.client.link import Link
from seq_harness.client.notices import Notices
from seq_harness.client.outage import Outage
from seq_harness.client.posts import StreamLimits, WhenBehind
from seq_harness.client.routes import DirectRoute
from seq_harness.client.scope import SequenceScope
from seq_harness.client.stream import ObservationStream
from seq_harness.client.transport import NotReady, Route, Unreachable
from seq_harness.client.uploader import Uploader
from seq_harness.contract import obs_schedule, wire
from seq_harness.contract.connect import WorkerDeclaration
from seq_harness.contract.limits import MAX_MESSAGE_BYTES
from seq_harness.contract.msgpack import pack
from seq_harness.contract.obs_schedule import Keys, Schedule
from seq_harness.contract.params import cast_params
from seq_harness.playback.session import Observation
from seq_harness.playback.uplink import Retired, Step, WorkerLost

ATTEMPT_S = 0.25
"""How long to wait before connecting again to a worker that is not there yet."""

ENVELOPE_BYTES = 4096
"""What a message holds beside its observations, at the most."""

PROGRESS_S = 10.0
"""How often it is said that a worker is waited for."""

CLOSE_S = 2.0
"""How long closing waits for the ends of episodes to be told."""


class PolicyClosed(RuntimeError):
    """The policy was closed, perhaps while something waited for its worker."""


class SequencePolicy:
    """
    A policy served by a worker, over the websocket or over HTTP.

    `connect` and `warm_up` block and may be interrupted by `close` from any thread; the rest
    returns at once.
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
        when_behind: WhenBehind | None = None,
        limits: StreamLimits | None = None,
        max_message_bytes: int = MAX_MESSAGE_BYTES,
        on_state: Callable[[str], None] | None = None,
    ) -> None:
        """
        Take note of a worker; nothing is connected yet.

        Parameters
        ----------
        url
            `ws://host:port`, `http://host:port` or their secure kin; the path is that of the
            binding unless given.
        token
            The worker's bearer, or the gateway's.
        allow_plaintext
            Let the token travel in clear to another machine.
        tls
            What to trust of a secure worker, in place of the system's certificates.
        fingerprint
            The sha256 of the one certificate to trust, in hex, in place of those.
        via_gateway
            Ask the server at `url` where the worker is, and hold a place there.
        reconnect_s
            How long a lost worker is looked for during an episode.
        act_timeout_s
            How long one act may take before its connection is closed.
        max_request_age_s
            An act is repeated only while its observation is younger than this.
        connect_timeout_s
            How long `connect` waits for the worker to answer and to load its policy.
        model, embodiment
            Which of the worker's policies, and which of its bodies, this session drives.
        seed, params
            What every act hands to the policy, as far as it declares them.
        when_behind
            What to do when the upload is behind, in place of what the policy declares.
        limits
            What the robot holds of an episode, in place of half of what the worker keeps.
        max_message_bytes
            The longest answer that is read.
        on_state
            Told, from any thread, of everything that changes between us and the worker, once.

        Raises
        ------
        UnknownScheme, EndpointRefused
            The URL is no worker's, or must not be spoken to as it is.

        """
        endpoint = Endpoint.read(
            url,
            token,
            allow_plaintext=allow_plaintext,
            tls=tls,
            fingerprint=fingerprint,
            max_message_bytes=max_message_bytes,
        )
        self._notices = Notices(on_state)
        self._cancel = Cancel()
        request = {wire.KEY_MODEL: model, wire.KEY_EMBODIMENT: embodiment}
        self._route: Route
        if via_gateway:
            wanted = Wanted(model, embodiment, allow_plaintext, max_message_bytes)
            gateway = GatewayRoute(endpoint, wanted, self._notices.say, self._cancel)
            self._route, declared = gateway, gateway.declared
        else:
            self._route, declared = DirectRoute(endpoint, self._notices.say), _nothing
        self._greeting = Greeting(
            str(endpoint), {k: v for k, v in request.items() if v is not None}, declared
        )
        self._reconnect_s = reconnect_s
        self._act_timeout_s = act_timeout_s
        self._max_request_age_s = max_request_age_s
        self._connect_timeout_s = connect_timeout_s
        self._embodiment = embodiment
        self._seed = seed
        self._params = params
        self._when_behind = when_behind
        self._limits = limits
        self._link = Link(self._route, self._greeting)
        self._keeper: Keeper | None = None
        self._schedule: Schedule | None = None  # written once, by `connect`
        self._proven: str | None = None  # the process that was warmed up; written by `warm_up`
        # Replaced whole, by the thread that opens episodes.
        self._scopes: tuple[SequenceScope, ...] = ()
        self._newest: SequenceScope | None = None

    @property
    def connected(self) -> bool:
        """Tell whether the worker is there to be asked, as far as is known."""
        return self._link.reaches

    @property
    def process(self) -> str | None:
        """Return what the worker process calls itself that greeted last; None before any did."""
        declaration = self._greeting.declaration
        return None if declaration is None else declaration.instance

    def connect(self) -> WorkerDeclaration:
        """
        Reach the worker, wait until its policy is loaded, and return what it declares.

        Raises
        ------
        WorkerLost
            Nobody answered, or the policy was not loaded, within `connect_timeout_s`.
        HandshakeRefused
            The peer is no worker, or refuses the token or the body.
        ValueError
            The policy's needs cannot be met, or a parameter is not one that it declares.
        PolicyClosed
            `close` was called.

        """
        deadline_s = time.monotonic() + self._connect_timeout_s
        while True:
            wait_s = self._try_to_connect(deadline_s)
            if wait_s is None:
                break
            self._cancel.wait(min(wait_s, deadline_s - time.monotonic()))
        declaration = self._known_declaration()
        self._schedule = obs_schedule.of(declaration.observations, _rate_hz(declaration))
        obs_schedule.check_reach(self._schedule, declaration.max_stream_frames)
        _check_observes(self._schedule, declaration)
        cast_params(declaration.params, self._params)
        if self._keeper is None:
            self._keeper = Keeper(self._link, self._notices, self._cancel, self._idle)
        self._notices.say('link', f'connected to {self._route}')
        return declaration

    def warm_up(self, observation: Observation) -> Any:
        """
        Ask once about `observation`, in an episode of its own, and return the outputs.

        Waits as long as connecting does, for a first inference may compile.

        Raises
        ------
        PolicyError, WorkerLost, ActAbandoned
            The act failed.
        PolicyClosed
            `close` was called.

        """
        scope = self._open(lambda: 0, self._connect_timeout_s, self._connect_timeout_s)
        try:
            outputs = scope.infer(Step(0, 0, observation))
        except Retired:
            raise PolicyClosed('closed while warming up') from None
        finally:
            scope.close()
            scope.join(time.monotonic() + CLOSE_S)
        self._proven = scope.process
        return outputs

    def open_episode(self, clock_ns: Callable[[], int]) -> SequenceScope:
        """
        Open an episode; `clock_ns` reads the playback clock, in ns.

        Raises
        ------
        PolicyClosed
            After `close`.
        RuntimeError
            Before `connect`.

        """
        scope = self._open(clock_ns, self._act_timeout_s, self._max_request_age_s)
        self._newest = scope
        return scope

    def figures(self) -> dict[str, Any]:
        """Return plain figures of the connection and of the newest episode, for people."""
        newest = self._newest
        return {
            'connected': self.connected,
            'instance': self.process,
            **(asdict(newest.figures()) if newest is not None else {}),
        }

    def close(self) -> None:
        """
        Interrupt whatever waits for the worker, end episodes, and release the connections.

        May be called from any thread, and again; takes `CLOSE_S` at the most, and a goodbye.
        """
        self._cancel.set()
        scopes = self._scopes
        for scope in scopes:
            scope.close()
        deadline_s = time.monotonic() + CLOSE_S
        for scope in scopes:
            scope.join(deadline_s)
        self._link.close()
        self._route.close()

    def _try_to_connect(self, deadline_s: float) -> float | None:
        """Return None once connected, or how long to wait before the next attempt."""
        left_s = deadline_s - time.monotonic()
        try:
            self._link.connection(max(left_s, ATTEMPT_S), self._cancel)
        except NotReady as error:
            reason, wait_s = str(error), max(ATTEMPT_S, error.retry_after_s)
        except Unreachable as error:
            reason, wait_s = str(error), ATTEMPT_S
        else:
            return None
        if self._cancel.is_set():
            raise PolicyClosed('closed while connecting')
        if left_s <= wait_s:
            raise WorkerLost(
                f'no worker served at {self._route} within {self._connect_timeout_s:g} s: {reason}'
            )
        self._notices.say('link', f'waiting for the worker: {reason}', again_s=PROGRESS_S)
        return wait_s

    def _open(
        self, clock_ns: Callable[[], int], act_timeout_s: float, max_request_age_s: float
    ) -> SequenceScope:
        declaration = self._known_declaration()
        tally = ActTally()
        uploader = self._uploader(declaration)
        rules = self._rules(declaration, act_timeout_s, max_request_age_s)
        outage = Outage(str(self._route), self._reconnect_s)
        wires = Wires(self._link, outage, uploader, self._notices, tally)
        before = self._link.opened
        scope = SequenceScope(
            Acting(rules, wires, clock_ns),
            uploader,
            tally,
            reconnects=lambda: self._link.opened - before,
        )
        self._scopes = (*(known for known in self._scopes if not known.ended), scope)
        if self._cancel.is_set():
            scope.close()
            raise PolicyClosed('no episode can be opened: the policy is closed')
        return scope

    def _uploader(self, declaration: WorkerDeclaration) -> Uploader:
        observations = declaration.observations
        declared = WhenBehind(observations.when_behind) if observations else WhenBehind.WAIT
        stream = ObservationStream(
            self._schedule,
            uuid.uuid4().hex,
            declaration.instance,
            self._limits or _limits(declaration),
            self._when_behind or declared,
        )
        link = Link(self._route, ping)
        posts = _observes(declaration)
        return Uploader(stream, link, self._notices, self._reconnect_s, posts)

    def _rules(
        self, declaration: WorkerDeclaration, act_timeout_s: float, max_request_age_s: float
    ) -> ActRules:
        params = cast_params(declaration.params, self._params)
        constants = {
            wire.KEY_SEED: self._seed,
            wire.KEY_PARAMS: params or None,
            wire.KEY_EMBODIMENT: self._embodiment,
        }
        return ActRules(
            keys=_keys(declaration),
            constants={key: pack(value) for key, value in constants.items() if value is not None},
            act_timeout_s=act_timeout_s,
            max_request_age_s=max_request_age_s,
            keeps_state=declaration.keeps_state,
            runs_once=wire.FORMAT_ACT_ONCE in declaration.formats,
            max_message_bytes=declaration.max_message_bytes - ENVELOPE_BYTES,
            proven=self._proven,
        )

    def _known_declaration(self) -> WorkerDeclaration:
        declaration = self._greeting.declaration
        if declaration is None:
            raise RuntimeError('nothing is known of the worker yet: call connect first')
        return declaration

    def _idle(self) -> bool:
        return all(scope.closed for scope in self._scopes)


def _check_observes(schedule: Schedule | None, declaration: WorkerDeclaration) -> None:
    if obs_schedule.reads_past(schedule) and not _observes(declaration):
        raise ValueError(
            'the policy reads observations before its own, and its worker takes none: it names '
            f'{declaration.formats}, and {wire.FORMAT_OBSERVE} was expected'
        )


def _observes(declaration: WorkerDeclaration) -> bool:
    return wire.FORMAT_OBSERVE in declaration.formats


def _nothing() -> None:
    """Tell that nobody but the worker itself declares its policy."""


def _rate_hz(declaration: WorkerDeclaration) -> float | None:
    if declaration.actions is not None and declaration.actions.hz is not None:
        return declaration.actions.hz
    return declaration.action.control_frequency_hz if declaration.action is not None else None


def _keys(declaration: WorkerDeclaration) -> Keys:
    streams = declaration.observations.streams if declaration.observations is not None else None
    return None if streams is None else tuple(streams)


def _limits(declaration: WorkerDeclaration) -> StreamLimits:
    """Hold half of what the worker keeps of an episode, and no more than the defaults."""
    usual = StreamLimits()
    room = declaration.max_message_bytes - ENVELOPE_BYTES
    return StreamLimits(
        unsent_frames=min(usual.unsent_frames, max(1, declaration.max_stream_frames // 2)),
        unsent_bytes=min(usual.unsent_bytes, max(1, declaration.max_stream_bytes // 2)),
        post_bytes=min(usual.post_bytes, room // 2),
        frame_bytes=room,
        kept_frames=declaration.max_stream_frames,
        kept_bytes=declaration.max_stream_bytes,
    )

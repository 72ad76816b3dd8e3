"""The robot's side of the websocket binding: one policy, its connection and its episodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
import ssl
import time
from typing import Any
import uuid

from pydantic import ValidationError
from seq_harness.client.acting import Acting, ActRules, Wires
from seq_harness.client.cancel import Cancel
from seq_harness.client.endpoint import Endpoint
from seq_harness.client.figures import ActTally
from seq_harness.client.keeper import Keeper
from seq_harness.client.link import Link, NotReady
from seq_harness.client.notices import Notices
from seq_harness.client.outage import Outage
from seq_harness.client.posts import StreamLimits, WhenBehind
from seq_harness.client.scope import SequenceScope
from seq_harness.client.stream import ObservationStream
from seq_harness.client.uploader import Uploader
from seq_harness.client.websocket import Connection, HandshakeRefused, Reply, Unreachable
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

HELLO_S = 5.0
"""How long the first request on a connection may take."""

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
    A policy served by a worker behind `/v1/ws`.

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
            `ws://host:port` or `wss://host:port`; the path is that of the binding unless given.
        token
            The worker's bearer.
        allow_plaintext
            Let the token travel in clear to another machine.
        tls
            What to trust of a `wss` worker, in place of the system's certificates.
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
        self._endpoint = Endpoint.read(
            url,
            token,
            allow_plaintext=allow_plaintext,
            tls=tls,
            max_message_bytes=max_message_bytes,
        )
        self._reconnect_s = reconnect_s
        self._act_timeout_s = act_timeout_s
        self._max_request_age_s = max_request_age_s
        self._connect_timeout_s = connect_timeout_s
        self._model = model
        self._embodiment = embodiment
        self._seed = seed
        self._params = params
        self._when_behind = when_behind
        self._limits = limits
        self._notices = Notices(on_state)
        self._cancel = Cancel()
        self._link = Link(self._endpoint, self._hello)
        self._keeper: Keeper | None = None
        self._declaration: WorkerDeclaration | None = None  # replaced whole, by who connects
        self._schedule: Schedule | None = None  # written once, by `connect`
        # Replaced whole, by the thread that opens episodes.
        self._scopes: tuple[SequenceScope, ...] = ()
        self._newest: SequenceScope | None = None

    @property
    def connected(self) -> bool:
        """Tell whether the connection for acts is open, as far as is known."""
        return self._link.is_open

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
        cast_params(declaration.params, self._params)
        if self._keeper is None:
            self._keeper = Keeper(self._link, self._notices, self._cancel, self._idle)
        self._notices.say('link', f'connected to {self._endpoint}')
        return declaration

    def warm_up(self, observation: Observation) -> None:
        """
        Ask once about `observation`, in an episode of its own, and discard the answer.

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
            scope.infer(Step(0, 0, observation))
        except Retired:
            raise PolicyClosed('closed while warming up') from None
        finally:
            scope.close()
            scope.join(time.monotonic() + CLOSE_S)

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
        newest, declaration = self._newest, self._declaration
        return {
            'connected': self.connected,
            'instance': declaration.instance if declaration is not None else None,
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
                f'no worker served at {self._endpoint} within {self._connect_timeout_s:g} s: '
                f'{reason}'
            )
        self._notices.say('link', f'waiting for the worker: {reason}', again_s=PROGRESS_S)
        return wait_s

    def _hello(self, connection: Connection, cancel: Cancel) -> Reply:
        body: dict[str, Any] = {wire.KEY_MODEL: self._model}
        if self._embodiment is not None:
            body[wire.KEY_EMBODIMENT] = self._embodiment
        reply = connection.call(wire.CONNECT, pack(body), HELLO_S, cancel)
        if reply.ok:
            self._learn(reply)
        return reply

    def _learn(self, reply: Reply) -> None:
        """Take the declaration, which must be the one known so far but for the instance."""
        known = {
            name: reply.body[name] for name in reply.body if name in WorkerDeclaration.model_fields
        }
        try:
            declaration = WorkerDeclaration.model_validate(known)
        except ValidationError as error:
            raise HandshakeRefused(
                f'{self._endpoint} declares its policy in a way that is not understood: {error}'
            ) from error
        before = self._declaration
        if before is not None and _facts(declaration) != _facts(before):
            raise HandshakeRefused(
                f'{self._endpoint} serves another policy than the one this robot was configured '
                'for: configure again'
            )
        self._declaration = declaration

    def _open(
        self, clock_ns: Callable[[], int], act_timeout_s: float, max_request_age_s: float
    ) -> SequenceScope:
        declaration = self._known_declaration()
        tally = ActTally()
        uploader = self._uploader(declaration)
        rules = self._rules(declaration, act_timeout_s, max_request_age_s)
        outage = Outage(str(self._endpoint), self._reconnect_s)
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
        return Uploader(stream, Link(self._endpoint, _ping), self._notices, self._reconnect_s)

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
        )

    def _known_declaration(self) -> WorkerDeclaration:
        if self._declaration is None:
            raise RuntimeError('nothing is known of the worker yet: call connect first')
        return self._declaration

    def _idle(self) -> bool:
        return all(scope.closed for scope in self._scopes)


def _facts(declaration: WorkerDeclaration) -> dict[str, Any]:
    return declaration.model_dump(exclude={'instance'})


def _ping(connection: Connection, cancel: Cancel) -> Reply:
    """Ask a new connection for observations whose it is."""
    return connection.call(wire.PING, pack({}), HELLO_S, cancel)


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

"""The methods of a worker, whichever wire they are called by."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
import secrets
import time
from typing import Any, TypeVar

from pydantic import Field, ValidationError
from seq_harness.contract import wire
from seq_harness.contract.connect import ConnectRequest, WorkerDeclaration
from seq_harness.contract.errors import ErrorCode, TransportError
from seq_harness.contract.limits import MAX_EPISODE_ID
from seq_harness.contract.model import WireModel
from seq_harness.contract.observe import ObserveRequest
from seq_harness.worker.acts import Act
from seq_harness.worker.ask import Caller, MAX_REQUEST_ID, read_ask
from seq_harness.worker.limits import Limits
from seq_harness.worker.loading import Loading
from seq_harness.worker.policy import Policy
from seq_harness.worker.reply import accept, invalid, refuse, Reply
from seq_harness.worker.serving import Serving
from seq_harness.worker.thread import PolicyThread

M = TypeVar('M', bound=WireModel)

SWEEP_S = 5.0
"""How often idle episodes are looked for, at the most."""

FORMATS = (wire.FORMAT_MSGPACK, wire.FORMAT_OBSERVE, wire.FORMAT_ACT_ONCE)


class _EpisodeEnd(WireModel):
    episode_id: str = Field(min_length=1, max_length=MAX_EPISODE_ID)


class Worker:
    """
    Serve one policy: connect, act, observe, episode_end and ping.

    Belongs to one event loop; the policy's code runs on a thread of its own. Every reply names
    `instance`, a random id of this worker.
    """

    def __init__(
        self,
        policy: Policy,
        limits: Limits | None = None,
        *,
        formats: tuple[str, ...] = FORMATS,
        debug: bool = False,
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self.instance = secrets.token_hex(8)
        self.limits = limits or Limits()
        self._formats = formats
        self._debug = debug
        self._clock_ns = clock_ns
        self._loading = Loading(policy, self.limits.stream_frames, clock_ns, debug)
        self._thread = PolicyThread()
        self._serving: Serving | None = None
        self._loaded = asyncio.Event()

    async def run(self) -> None:
        """
        Load the policy and serve it until cancelled.

        Raises
        ------
        TransportError
            The policy could not be loaded.

        """
        loaded = await self._loading.run(self._thread)
        if loaded is None:
            raise self._loading.not_ready()
        self._serving = Serving(
            loaded, self._thread, self.instance, self.limits, self._clock_ns, self._debug
        )
        self._loaded.set()
        while True:
            await asyncio.sleep(min(SWEEP_S, self.limits.episode_idle_s / 4))
            self._serving.expire()

    def close(self, timeout_s: float) -> bool:
        """Let the policy's thread end; tell whether it did within `timeout_s`."""
        return self._thread.close(timeout_s)

    def answer(self, method: str, body: Any, caller: Caller) -> Reply:
        """Answer any method but act; never blocks and never raises."""
        methods: dict[str, Callable[[Any], Mapping[str, Any]]] = {
            wire.CONNECT: self._connect,
            wire.OBSERVE: self._observe,
            wire.EPISODE_END: self._episode_end,
            wire.PING: self._ping,
        }
        try:
            if method not in methods:
                known = ', '.join(wire.METHODS)
                raise TransportError(
                    ErrorCode.NOT_FOUND, f'there is no method {method[:80]!r}; known are {known}'
                )
            return accept(self.instance, methods[method](body))
        except Exception as error:
            return refuse(self.instance, error, self._debug, caller.request_id)

    def take(self, body: Any, nbytes: int, caller: Caller, bare: bool = False) -> Act | Reply:
        """Take an act of `nbytes`, or answer at once why not; never blocks and never raises."""
        try:
            serving = self._ready()
            ask = read_ask(body, caller, bare)
            return serving.take(ask, caller.session, nbytes)
        except Exception as error:
            return refuse(self.instance, error, self._debug, _request_id(body, caller))

    async def reply(self, act: Act | Reply) -> Reply:
        """
        Wait for the reply of an act.

        Whoever is cancelled here no longer waits; an act that nobody waits for and whose inference
        has not begun is given up.
        """
        return act if isinstance(act, Reply) else await act.answered()

    def refuse(self, error: Exception) -> Reply:
        """Answer why a request cannot even be read."""
        return refuse(self.instance, error, self._debug)

    @property
    def formats(self) -> tuple[str, ...]:
        """Name what this worker reads, as far as it is known before the policy is loaded."""
        arms = self._serving is not None and self._serving.loaded.bodies.are_arms
        return (*self._formats, wire.FORMAT_FRAMES) if arms else self._formats

    @property
    def is_ready(self) -> bool:
        """Whether acts are taken."""
        return self._serving is not None

    async def until_ready(self) -> None:
        """Wait until acts are taken; for ever where the policy cannot be loaded."""
        await self._loaded.wait()

    @property
    def metadata(self) -> Mapping[str, Any]:
        """Return what the policy says of itself beside what it declares, such as `reset_pose`."""
        return self._ready().loaded.metadata

    @property
    def reads_past(self) -> bool:
        """Whether acts read observations that no act carries, as far as it is known yet."""
        return self._serving is not None and self._serving.loaded.reads_past

    def not_ready(self) -> TransportError:
        """Make the error that tells why acts are not taken yet."""
        return self._loading.not_ready()

    def declaration(self, request: Any) -> WorkerDeclaration:
        """
        Return what the policy declares, of the body that a request names, and what we allow.

        Raises
        ------
        TransportError
            The policy is not loaded, or drives no such body.

        """
        loaded = self._ready().loaded
        declared = loaded.declaration
        said = request.get(wire.KEY_EMBODIMENT) if isinstance(request, Mapping) else None
        body = loaded.bodies.choose(None if said is None else str(said))
        return WorkerDeclaration(
            instance=self.instance,
            io=declared.io,
            observations=declared.observations,
            actions=declared.actions,
            action=body.action,
            observation=body.observation,
            embodiment=body.name,
            params=declared.params,
            columns=declared.columns,
            rtc=loaded.rtc,
            keeps_state=loaded.keeps_state,
            max_message_bytes=self.limits.message_bytes,
            max_stream_frames=self.limits.stream_frames,
            max_stream_bytes=self.limits.stream_bytes,
            formats=list(self.formats),
        )

    def _ready(self) -> Serving:
        if self._serving is None:
            raise self._loading.not_ready()
        return self._serving

    def _connect(self, body: Any) -> Mapping[str, Any]:
        request = _known(ConnectRequest, 'connect', body)
        declaration = self.declaration(request.model_dump())
        return declaration.model_dump(mode='json', exclude_none=True)

    def _observe(self, body: Any) -> Mapping[str, Any]:
        serving = self._ready()
        self._check_length(body)
        post = _known(ObserveRequest, 'observe', body)
        frames = [(frame.seq, frame.inputs) for frame in post.frames]
        return {wire.KEY_THROUGH: serving.observe(post.episode_id, frames, post.skipped)}

    def _check_length(self, body: Any) -> None:
        """Refuse an over-long post before its parts are looked at."""
        for name in (wire.KEY_FRAMES, wire.KEY_SKIPPED):
            items = body.get(name) if isinstance(body, Mapping) else None
            if isinstance(items, list) and len(items) > self.limits.stream_frames:
                raise TransportError(
                    ErrorCode.PAYLOAD_TOO_LARGE,
                    f'a post holds {len(items)} {name}; {self.limits.stream_frames} fit in one',
                    hint='send them in several posts',
                    details={wire.DETAIL_REASON: wire.FRAMES_OVER_LIMIT},
                )

    def _episode_end(self, body: Any) -> Mapping[str, Any]:
        end = _known(_EpisodeEnd, 'episode_end', body)
        return {'ended': self._ready().end(end.episode_id)}

    def _ping(self, body: Any) -> Mapping[str, Any]:
        request_id = body.get(wire.ACT) if isinstance(body, Mapping) else None
        if self._serving is None:
            return {wire.ACT: {wire.KEY_RUNNING: False, wire.KEY_ANSWERED: False}}
        acts = self._serving.under_way(None)
        told: dict[str, Any] = {'oldest_act_s': self._age_s(acts[0])} if acts else {}
        if isinstance(request_id, str):
            asked = self._serving.under_way(request_id)
            answered = self._serving.answered(request_id)
        else:
            asked, answered = acts, False
        if asked:
            for_s = self._age_s(asked[0])
            return {**told, wire.ACT: {wire.KEY_RUNNING: True, wire.KEY_FOR_S: for_s}}
        return {**told, wire.ACT: {wire.KEY_RUNNING: False, wire.KEY_ANSWERED: answered}}

    def _age_s(self, act: Act) -> float:
        return (self._clock_ns() - act.taken_ns) / 1e9


def _known(model: type[M], method: str, body: Any) -> M:
    """Read the keys that the model knows; a later contract's clients send more."""
    fields = body if isinstance(body, Mapping) else {}
    known = {name: fields[name] for name in model.model_fields if name in fields}
    try:
        return model.model_validate(known)
    except ValidationError as error:
        raise invalid(method, error) from None


def _request_id(body: Any, caller: Caller) -> str | None:
    said = body.get(wire.KEY_REQUEST_ID) if isinstance(body, Mapping) else None
    if isinstance(said, str) and said.isascii() and len(said) <= MAX_REQUEST_ID:
        return said
    return caller.request_id

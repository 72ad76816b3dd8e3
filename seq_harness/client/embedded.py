"""A policy that runs in this process, under the worker's own rules and without a wire."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import asdict
import inspect
import json
import logging
from pkgutil import resolve_name
import threading
from typing import Any, TypeVar
from urllib.parse import parse_qsl
import uuid

from seq_harness.client.embedded_scope import EmbeddedScope
from seq_harness.client.posts import StreamLimits, WhenBehind
from seq_harness.client.stream import ObservationStream
from seq_harness.client.transport import Reply
from seq_harness.client.verdict import judge
from seq_harness.contract import obs_schedule, wire
from seq_harness.contract.connect import WorkerDeclaration
from seq_harness.contract.errors import TransportError
from seq_harness.contract.excerpt import excerpt
from seq_harness.contract.msgpack import unpack
from seq_harness.contract.params import cast_params
from seq_harness.playback.session import Observation
from seq_harness.playback.uplink import PolicyError, Step, WorkerLost
from seq_harness.worker.ask import Caller
from seq_harness.worker.limits import Limits
from seq_harness.worker.policy import Policy as ServedPolicy
from seq_harness.worker.service import Worker

T = TypeVar('T')

log = logging.getLogger('seq_harness.client')

SCHEME = 'embedded'

LOOK_S = 0.005
"""How often it is looked whether a policy is loaded."""

NEVER_IDLE_S = 1e9
"""Nobody else needs the room of an episode that is idle in this process."""

CLOSE_S = 2.0
"""How long closing waits for what the policy still does."""


class EmbeddedPolicy:
    """
    Serve a policy to this process alone.

    Whatever the worker checks, stores and refuses, it does here too; `infer` runs on a thread of
    its own. Takes, and has no use for, the options of the wires.
    """

    def __init__(
        self,
        policy: Any,
        *,
        connect_timeout_s: float = 120.0,
        embodiment: str | None = None,
        seed: int | None = None,
        params: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        """
        Take note of a policy; nothing is loaded yet.

        Parameters
        ----------
        policy
            An object with `infer(inputs)`, its class, or `embedded:MODULE:POLICY` where either is
            found; `?name=value&...` after it are arguments of the class, as JSON or text.
        connect_timeout_s
            How long `connect` waits for the policy to load.
        embodiment
            Which of the policy's bodies is driven.
        seed, params
            What every act hands to the policy, as far as it declares them.
        **options
            Those of the wires.

        Raises
        ------
        ValueError
            The text names nothing that can be imported.

        """
        served = _found(policy) if isinstance(policy, str) else ServedPolicy(policy)
        self._host = _Host(served)
        self._connect_timeout_s = connect_timeout_s
        self._embodiment = embodiment
        self._seed = seed
        self._params = params
        self._declaration: WorkerDeclaration | None = None
        self._newest: EmbeddedScope | None = None

    @property
    def connected(self) -> bool:
        """Tell whether the policy is loaded."""
        return self._declaration is not None

    def connect(self) -> WorkerDeclaration:
        """
        Load the policy and return what it declares.

        Raises
        ------
        PolicyError
            It could not be loaded.
        WorkerLost
            It was not loaded within `connect_timeout_s`.
        ValueError
            A parameter is not one that it declares.

        """
        self._host.load(self._connect_timeout_s)
        asked = {wire.KEY_MODEL: '', wire.KEY_EMBODIMENT: self._embodiment}
        body = dict(self._host.call(wire.CONNECT, asked))
        declaration = WorkerDeclaration.model_validate(body)
        cast_params(declaration.params, self._params)
        self._declaration = declaration
        return declaration

    def warm_up(self, observation: Observation) -> Any:
        """Ask once about `observation`, in an episode of its own, and return the outputs."""
        scope = self._open()
        try:
            return scope.infer(Step(0, 0, observation))
        finally:
            scope.close()

    def open_episode(self, clock_ns: Callable[[], int]) -> EmbeddedScope:
        """Open an episode; no clock is needed, for nothing is sent again here."""
        self._newest = self._open()
        return self._newest

    def figures(self) -> dict[str, Any]:
        """Return plain figures of the newest episode, for people."""
        newest, declaration = self._newest, self._declaration
        return {
            'connected': self.connected,
            'instance': declaration.instance if declaration is not None else None,
            **(asdict(newest.figures()) if newest is not None else {}),
        }

    def close(self) -> None:
        """Let the policy's threads end."""
        self._host.close()

    def _open(self) -> EmbeddedScope:
        declared = self._declaration
        if declared is None:
            raise RuntimeError('nothing is known of the policy yet: call connect first')
        hz = declared.actions.hz if declared.actions is not None else None
        if hz is None and declared.action is not None:
            hz = declared.action.control_frequency_hz
        observations = declared.observations
        behind = WhenBehind(observations.when_behind) if observations else WhenBehind.WAIT
        streams = observations.streams if observations is not None else None
        stream = ObservationStream(
            obs_schedule.of(observations, hz),
            uuid.uuid4().hex,
            declared.instance,
            StreamLimits(),
            behind,
        )
        constants = {
            wire.KEY_EMBODIMENT: self._embodiment,
            wire.KEY_SEED: self._seed,
            wire.KEY_PARAMS: cast_params(declared.params, self._params) or None,
        }
        given = {key: value for key, value in constants.items() if value is not None}
        keys = None if streams is None else tuple(streams)
        return EmbeddedScope(self._host, stream, keys, given)


class _Host:
    """A worker on an event loop of its own; `call` may be called from any thread."""

    def __init__(self, policy: ServedPolicy) -> None:
        self._policy = policy
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._worker: Worker | None = None
        self._running: asyncio.Task[None] | None = None

    def load(self, within_s: float) -> None:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(
                target=self._loop.run_forever, name='embedded', daemon=True
            )
            self._thread.start()
        self._run(self._load(within_s))

    def call(self, method: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        reply = self._run(self._answer(method, body))
        if not reply.ok:
            raise PolicyError(judge(reply).text)
        return reply.body

    def close(self) -> None:
        loop, thread = self._loop, self._thread
        if loop is None or thread is None or not thread.is_alive():
            return
        asyncio.run_coroutine_threadsafe(self._end(), loop)
        thread.join(CLOSE_S)
        if not thread.is_alive():
            loop.close()
        if self._worker is not None and not self._worker.close(CLOSE_S):
            log.warning('the policy was still busy and was left')

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        # The loop takes work before its thread has come to run it.
        if self._loop is None or self._thread is None or not self._thread.is_alive():
            work.close()
            raise PolicyError('the policy is not loaded, or was closed: call connect first')
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _load(self, within_s: float) -> None:
        if self._worker is None:
            self._worker = Worker(self._policy, Limits(episode_idle_s=NEVER_IDLE_S))
            self._running = asyncio.create_task(self._worker.run())
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + within_s
        while not self._worker.is_ready:
            if self._running is not None and self._running.done():
                error = self._running.exception()
                text = error.detail if isinstance(error, TransportError) else str(error)
                raise PolicyError(f'the policy could not be loaded: {excerpt(text)}')
            if loop.time() >= deadline_s:
                raise WorkerLost(f'the policy was not loaded within {within_s:g} s')
            await asyncio.sleep(LOOK_S)

    async def _end(self) -> None:
        loop = asyncio.get_running_loop()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        loop.call_soon(loop.stop)

    async def _answer(self, method: str, body: Mapping[str, Any]) -> Reply:
        worker, caller = self._worker, Caller(session=SCHEME, refills=True)
        if worker is None:
            raise PolicyError('the policy is not loaded: call connect first')
        if method == wire.ACT:
            reply = await worker.reply(worker.take(body, 0, caller))
        else:
            reply = worker.answer(method, body, caller)
        return Reply(reply.status, unpack(reply.body))


def _found(text: str) -> ServedPolicy:
    """Import what `embedded:MODULE:POLICY?name=value` names."""
    reference, _, query = text.removeprefix(f'{SCHEME}:').partition('?')
    try:
        if reference.count(':') != 1:
            raise ValueError('MODULE:POLICY was expected')
        served = resolve_name(reference)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f'{text!r} names no policy of this process: {error}') from error
    arguments = {name: _value(said) for name, said in parse_qsl(query, keep_blank_values=True)}
    if arguments and not inspect.isclass(served):
        raise ValueError(f'{text!r} gives arguments, and {reference} is no class')
    return ServedPolicy(served, arguments)


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text

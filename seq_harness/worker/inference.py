"""One act's work on the policy's thread: decode, convert, infer, pack."""

from __future__ import annotations

from collections.abc import Callable, Mapping
import contextlib
import logging
from typing import Any, NamedTuple, TypeVar

from seq_harness.contract.errors import ErrorCode, Rejected, TransportError
from seq_harness.contract.msgpack import MsgpackError, pack
from seq_harness.contract.obs_schedule import reads_past, Schedule
from seq_harness.contract.params import cast_params, ParamValue
from seq_harness.contract.wire import (
    KEY_ACTION_CHUNK,
    KEY_HANDLER_MS,
    KEY_INSTANCE,
    KEY_OBSERVATIONS,
    KEY_OUTPUTS,
    KEY_PERF,
    KEY_REQUEST_ID,
    KEY_STEPS,
    KEY_WARNINGS,
)
from seq_harness.worker.acts import Act
from seq_harness.worker.ask import Ask, VERSION_1
from seq_harness.worker.bodies import Bodies, Body
from seq_harness.worker.cameras import Cameras
from seq_harness.worker.declaration import Declaration
from seq_harness.worker.episodes import OpenEpisode
from seq_harness.worker.frames import Frame
from seq_harness.worker.policy import Policy
from seq_harness.worker.reply import describe, exception_details, FAILURES, OK, Reply
from seq_harness.worker.tensors import import_torch, TensorSeam

T = TypeVar('T')

ENVELOPE_BYTES = 64
"""The most that a message adds to the body it carries."""

log = logging.getLogger('seq_harness.worker')


class UnreadableFrame(Rejected):
    """An observation whose frame cannot be decoded; knows the observation's number."""

    def __init__(self, number: int, error: TransportError) -> None:
        super().__init__(
            f'observation {number}: {error.detail}', hint=error.hint, details=error.details
        )
        self.number = number


class Reading(NamedTuple):
    """What one act is to be given."""

    inputs: Any
    """The act's own observation, or `observations` and `steps` where the policy declares any."""
    before: tuple[Frame, ...] = ()
    """Observations to hand to the policy's `observe` first, in order."""


class LoadedPolicy:
    """A policy that is ready; everything but the checks runs on its thread."""

    def __init__(self, policy: Policy, most_frames: int) -> None:
        self.declaration: Declaration = policy.declaration
        self.schedule: Schedule | None = policy.declaration.schedule(most_frames)
        self.observes = policy.observes
        self.metadata = policy.metadata
        self.reads_past = policy.observes or reads_past(self.schedule)
        self.keeps_state = policy.keeps_state
        self.rtc = 'plan' in policy.takes
        self.bodies = Bodies(policy.declaration)
        self._cameras = Cameras(policy.declaration.observations)
        self._policy = policy
        tensors = policy.declaration.tensors
        self._seam = TensorSeam(tensors, import_torch(), policy.device) if tensors else None

    def check(self, ask: Ask) -> list[str]:
        """
        Check what an act asks before it is taken; return what the answer must warn of.

        Raises
        ------
        Rejected
            A parameter, the body or a frame is not as the policy declares.

        """
        body = self.bodies.choose(ask.embodiment)
        self.params(ask)
        if ask.carries_own:
            self._cameras.check(ask.inputs)
            body.read(ask.inputs, ask.style == VERSION_1)
        if ask.seed is not None and 'seed' not in self._policy.takes:
            return ['seed was ignored: the policy takes none']
        return []

    def check_posted(self, inputs: Any) -> None:
        """
        Check an observation that no act carries; with several bodies the act that reads it does.

        Raises
        ------
        TransportError
            It is not as the policy declares.

        """
        self._cameras.check(inputs)
        if self.bodies.only is not None:
            self.bodies.only.read(inputs)

    def params(self, ask: Ask) -> dict[str, ParamValue]:
        """
        Return the act's inference parameters, checked and with their defaults.

        Raises
        ------
        Rejected
            One is not declared, or not allowed.

        """
        try:
            return cast_params(self.declaration.params, ask.params)
        except ValueError as error:
            raise Rejected(str(error)) from None

    def run(self, act: Act, reading: Reading, episode: OpenEpisode) -> dict[str, Any]:
        """
        Run the act's inference and return what its answer holds.

        Raises
        ------
        UnreadableFrame
            A frame that was read cannot be decoded.
        TransportError
            A chunk is not as its contract says.
        Exception
            Whatever the policy raises.

        """
        body = self.bodies.choose(act.ask.embodiment)
        if not episode.started:
            self._policy.start(episode.policy_side)
            episode.started = True
        for frame in reading.before:
            observation = self._decoded(body, frame.number, frame.inputs)
            self._policy.observe(observation, episode.policy_side)
            episode.observed = frame.number
        inputs = self._decoded_reading(body, act.ask, reading.inputs)
        outputs = self._policy.infer(
            self._seam.into(inputs) if self._seam else inputs,
            seed=act.ask.seed,
            params=self.params(act.ask),
            episode=episode.policy_side,
            plan=act.ask.plan,
            embodiment=body.name,
        )
        outputs = self._seam.out_of(outputs) if self._seam else outputs
        if body.action is None:
            return {KEY_OUTPUTS: outputs}
        chunk = body.chunk(outputs, act.warnings)
        return {KEY_OUTPUTS: chunk, KEY_ACTION_CHUNK: chunk}

    def end(self, episode: OpenEpisode) -> None:
        """Tell the policy that an episode it knows is over; what it raises goes to the log."""
        if not episode.started:
            return
        with contextlib.suppress(TransportError):
            guarded(lambda: self._policy.end(episode.policy_side), debug=False)

    def _decoded_reading(self, body: Body, ask: Ask, inputs: Any) -> Any:
        if self.schedule is None:
            version_1 = ask.style == VERSION_1
            return (
                body.read(inputs, version_1)
                if ask.carries_own
                else self._decoded(body, ask.number or 0, inputs)
            )
        numbered = zip(inputs[KEY_STEPS], inputs[KEY_OBSERVATIONS], strict=True)
        decoded = [self._decoded(body, number, observation) for number, observation in numbered]
        return {**inputs, KEY_OBSERVATIONS: decoded}

    def _decoded(self, body: Body, number: int, observation: Any) -> Any:
        try:
            return body.read(self._cameras.decode(observation))
        except TransportError as error:
            raise UnreadableFrame(number, error) from error


def answer(
    act: Act,
    run: Callable[[], Mapping[str, Any]],
    instance: str,
    clock_ns: Callable[[], int],
    most_bytes: int,
    debug: bool,
) -> Reply:
    """
    Run an act and pack its answer at once, so that a policy may reuse what it returned.

    Raises
    ------
    TransportError
        The policy failed (`policy_error`), or what it returned cannot be sent.

    """
    held = guarded(run, debug)
    body = {
        **held,
        KEY_PERF: {KEY_HANDLER_MS: (clock_ns() - act.taken_ns) / 1e6},
        KEY_WARNINGS: act.warnings,
        KEY_REQUEST_ID: act.ask.request_id,
        KEY_INSTANCE: instance,
    }
    try:
        packed = pack(body)
    except MsgpackError as error:
        raise TransportError(
            ErrorCode.POLICY_ERROR,
            f'the policy returned what cannot be sent: {error}',
            hint='return mappings, lists, numbers, text, bytes and numpy arrays',
        ) from error
    if len(packed) + ENVELOPE_BYTES > most_bytes:
        raise TransportError(
            ErrorCode.POLICY_ERROR,
            f'the policy returned {len(packed)} bytes; a message holds {most_bytes}',
        )
    return Reply(OK, packed)


def guarded(call: Callable[[], T], debug: bool) -> T:
    """
    Call a policy's code; whatever it raises is logged and becomes a `policy_error`.

    That holds for SystemExit, StopIteration and their like too, which a future or the event loop
    would take for its own.

    Raises
    ------
    TransportError
        The policy failed, or raised one of the wire's own errors.

    """
    try:
        return call()
    except TransportError:
        raise
    except BaseException as error:
        FAILURES.tell('the policy failed', error)
        raise TransportError(
            ErrorCode.POLICY_ERROR,
            f'the policy failed: {describe(error)}',
            details=exception_details(error, debug),
        ) from error

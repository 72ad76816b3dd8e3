"""Replay a recording through a harness, in lockstep on the recording's time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
import json
from pathlib import Path
import time
from typing import Any

from seq_harness.bags.arrivals import Arrivals
from seq_harness.bags.blanks import serialised
from seq_harness.bags.charges import Act, Cost, uncharged
from seq_harness.bags.exact import limits_of
from seq_harness.bags.faults import Fault, FaultKind, Faults, OnFault, Place
from seq_harness.bags.lockstep import BagClock, Charged, Flushed, Lockstep, paced
from seq_harness.bags.mending import opened
from seq_harness.bags.params import Params, settings_from
from seq_harness.bags.reading import Bag
from seq_harness.bags.record_format import RECORDED
from seq_harness.bags.records import BagError, Record
from seq_harness.bags.run_recording import RunRecorder
from seq_harness.bags.setpoints import SetpointLog, Setpoints
from seq_harness.bags.unrecorded import Unrecorded
from seq_harness.client.embedded import EmbeddedPolicy
from seq_harness.client.registry import open_policy, Policy
from seq_harness.contract import obs_schedule
from seq_harness.contract.connect import WorkerDeclaration
from seq_harness.harness import Harness, OnInstruction, Opened, Parts
from seq_harness.inputs import Inputs
from seq_harness.pipeline import Pipeline
from seq_harness.settings import Settings

BAG_ENDED = 'bag_ended'
"""The reason of an episode that outlasts its recording."""


@dataclass(frozen=True)
class ReplayOptions:
    """What of a recording is replayed, and how."""

    start_s: float = 0.0
    """Where to begin, in seconds after the recording's first message."""
    stop_s: float | None = None
    """Where to end, likewise; None for its end."""
    rate: float | None = None
    """How many times as fast as recorded; None for as fast as it goes."""
    cost: Cost = uncharged
    """What an inference costs in the recording's time."""
    on_fault: OnFault = OnFault.USE
    remaps: Mapping[str, str] = field(default_factory=dict)
    """Topics of the parameters to topics of the recording."""
    warm_up: bool = True
    """Ask once beforehand, in an episode of its own, as a node does."""
    broken: str = ''
    """How the recording breaks off, where that is known and what is before is to be used."""
    on_progress: Callable[[int], None] | None = None
    """Told of every message's log time, in ns."""
    record: Path | None = None
    """Where to write an exact record of the replay itself; None for nowhere."""


@dataclass(frozen=True)
class Run:
    """What a replay did."""

    reason: str
    """Why the episode ended; `bag_ended` where the recording was over first."""
    setpoints: Mapping[str, Setpoints]
    """By channel."""
    hash: str
    """The SHA-256 of every setpoint's channel, instant and message, in hex."""
    figures: Mapping[str, Any]
    """The episode's figures, as a node tells them, with those of the policy."""
    acts: tuple[Act, ...]
    faults: tuple[Fault, ...]
    """What was wrong with the recording, and where."""
    start_ns: int
    end_ns: int
    """What was replayed, in the recording's time; the end is where the episode ended."""
    real_s: float
    """How long that took."""

    @property
    def speed_x(self) -> float:
        """How many times as fast as recorded."""
        return (self.end_ns - self.start_ns) / 1e9 / self.real_s if self.real_s else 0.0


def replay(
    bag: Path | str, params: Params, policy: Any, options: ReplayOptions | None = None
) -> Run:
    """
    Replay a recording; the same inputs, loop, player and outputs as on a robot, in one thread.

    Parameters
    ----------
    bag
        A rosbag2 folder, or one of its files.
    params
        A parameter file of the node, or its parameters by name.
    policy
        A worker's URL, `embedded:MODULE:POLICY`, an object with `infer(inputs)`, or its class.
    options
        What of the recording, how fast, and what an inference costs there.

    Raises
    ------
    BagError
        The recording cannot be read, or has a fault that was to be refused.
    SettingsError, DeclarationRefused
        The parameters are wrong, or do not fit the policy.
    PolicyError, WorkerLost
        The policy cannot be reached, or its warm-up failed.

    """
    chosen = options or ReplayOptions()
    overrides = {'worker_url': policy} if isinstance(policy, str) else None
    settings = settings_from(params, overrides if not isinstance(params, Settings) else None)
    with opened(bag, mend=chosen.on_fault is OnFault.USE) as (read, broken):
        client = client_of(policy, settings)
        try:
            return replay_with(read, settings, client, replace(chosen, broken=broken))
        finally:
            client.close()


def replay_with(bag: Bag, settings: Settings, policy: Policy, options: ReplayOptions) -> Run:
    """Replay an open recording with a client that is not connected yet, or was before."""
    declaration = policy.connect()
    frozen: list[tuple[str, str]] = []
    pipeline = Pipeline(
        settings, declaration, on_frozen=lambda topic, text: frozen.append((topic, text))
    )
    if options.warm_up:
        policy.warm_up(pipeline.blank(settings['instruction']))
    return _Replay(bag, settings, policy, pipeline, declaration, options, frozen).run()


def client_of(policy: Any, settings: Settings) -> Policy:
    """Return a policy's client: that of a worker's URL, or one that runs it in this process."""
    if isinstance(policy, str):
        return open_policy({**settings.general, 'worker_url': policy, 'gateway_url': ''})
    if hasattr(policy, 'open_episode'):
        client: Policy = policy
        return client
    return EmbeddedPolicy(
        policy,
        connect_timeout_s=settings['connect_timeout_s'],
        embodiment=settings['embodiment'] or None,
        seed=settings['seed'] if settings['seed'] >= 0 else None,
        params=json.loads(settings['policy_params'] or 'null'),
    )


class _Replay:
    """One recording on its way through one harness."""

    def __init__(
        self,
        bag: Bag,
        settings: Settings,
        policy: Policy,
        pipeline: Pipeline,
        declaration: WorkerDeclaration,
        options: ReplayOptions,
        frozen: list[tuple[str, str]],
    ) -> None:
        """`frozen` holds the topics and texts of frozen states that a round found."""
        self._bag = bag
        self._frozen = frozen
        self._settings = settings
        self._policy = policy
        self._pipeline = pipeline
        self._options = options
        self._start_ns, self._stop_ns = _span(bag, options)
        self._ended_ns = self._stop_ns - 1
        self._clock = BagClock(self._start_ns)
        self._charged = Charged(self._clock, options.cost)
        self._recording = self._recorder(declaration)
        now_ns = self._clock.now_ns
        stamp_ns = self._recording.stamping(now_ns)
        self._log = SetpointLog(settings.channels, pipeline.period_ns, now_ns, stamp_ns)
        self._faults = Faults(options.on_fault)
        schedule = obs_schedule.of(declaration.observations, pipeline.rate_hz)
        self._streams = obs_schedule.reads_past(schedule)
        spread_s = settings['max_camera_spread_s']
        self._inputs = Inputs(settings.inputs, max_camera_spread_s=spread_s)
        self._arrivals = Arrivals(
            settings.inputs, self._inputs, self._faults, bag.decode, options.remaps
        )
        self._harness = self._made(self._inputs)

    def run(self) -> Run:
        pace = paced(self._options.rate, self._start_ns) if self._options.rate else None
        loop = Lockstep(
            self._harness,
            self._clock,
            self._charged,
            self._arrivals.put,
            pace,
            self._round,
        )
        began_s = time.perf_counter()
        topics = self._arrivals.check(self._bag.topics, self._start_ns)
        try:
            loop.begin()
            for record in self._records(topics):
                self._arrivals.watch(record)
                loop.arrive(record)
                if not loop.live:
                    break
                if self._options.on_progress is not None:
                    self._options.on_progress(record.log_ns)
            loop.end(self._ended_ns, self._over())
        finally:
            self._recording.close_harness(self._harness, 'replay_failed')
            self._recording.close()
        return self._told(time.perf_counter() - began_s)

    def _round(self) -> int:
        wake_ns = self._recording.round(self._harness)
        while self._frozen:
            topic, text = self._frozen.pop(0)
            self._arrivals.note_frozen(topic, text, self._clock.now_ns())
        return wake_ns

    def _over(self) -> str:
        """Return why an episode ends with its recording: one that never began lacked inputs."""
        missing = self._inputs.missing(self._inputs.snapshot()) if self._harness.waiting else []
        return f'inputs_missing: {", ".join(missing)}' if missing else BAG_ENDED

    def _records(self, topics: list[str]) -> Iterator[Record]:
        """Yield the messages; where the file breaks off, those before."""
        last: Record | None = None
        count, broken = 0, self._options.broken
        try:
            for record in self._bag.records(
                topics, start_ns=self._start_ns, stop_ns=self._stop_ns
            ):
                last, count = record, count + 1
                yield record
        except BagError as error:
            broken = str(error)
        if broken:
            self._ended_ns = last.log_ns if last else self._start_ns
            place = Place(last.topic if last else ', '.join(topics), self._ended_ns, count)
            self._faults.note(FaultKind.BROKEN_OFF, place, broken)

    def _made(self, inputs: Inputs) -> Harness:
        settings = self._settings
        parts = Parts(
            clock=self._clock,
            inputs=inputs,
            outputs=self._log.outputs,
            spec=self._pipeline.spec,
            open_episode=self._open,
            limits=limits_of(settings),
            instruction=settings['instruction'],
            on_instruction=OnInstruction(settings['on_instruction']),
            look=inputs.snapshot,
            unavailable=lambda snapshot: inputs.unavailable(snapshot, self._clock.now_ns()),
        )
        return self._recording.parts(parts).harness()

    def _recorder(self, declaration: WorkerDeclaration) -> Unrecorded:
        if self._options.record is None:
            return Unrecorded()
        return RunRecorder(
            self._options.record,
            self._settings,
            declaration,
            now_ns=self._clock.now_ns,
            ros_now_ns=self._clock.now_ns,
            serialise=_serialised,
            period_ns=self._pipeline.period_ns,
            instruction=self._settings['instruction'],
            playback_clock=RECORDED,
            may_wait=True,
        )

    def _open(self) -> Opened:
        scope = self._policy.open_episode(self._clock.now_ns)
        if self._streams:
            scope = Flushed(scope, self._settings['act_timeout_s'])
        return self._charged.opened(self._pipeline, scope, self._recording.episode)

    def _told(self, real_s: float) -> Run:
        report = self._harness.report()
        figures = {**report.figures, 'policy': self._policy.figures()}
        return Run(
            reason=report.reason,
            setpoints=self._log.setpoints(),
            hash=self._log.digest,
            figures=figures,
            acts=self._charged.acts,
            faults=self._faults.met(),
            start_ns=self._start_ns,
            end_ns=self._clock.now_ns(),
            real_s=real_s,
        )


def _serialised(message: Any) -> bytes:
    """Return the CDR of an input's message, or of a setpoint, which is serialised already."""
    return bytes(message[1]) if isinstance(message, tuple) else serialised(message)


def _span(bag: Bag, options: ReplayOptions) -> tuple[int, int]:
    """Return the first instant to replay, and the one after the last, in ns."""
    start_ns = bag.start_ns + round(options.start_s * 1e9)
    stop_ns = bag.end_ns + 1
    if options.stop_s is not None:
        stop_ns = min(stop_ns, bag.start_ns + round(options.stop_s * 1e9))
    if not bag.count or stop_ns <= start_ns:
        raise BagError(
            f'{bag.path} holds nothing from {options.start_s:g} s on'
            f'{"" if options.stop_s is None else f" and before {options.stop_s:g} s"}: it has '
            f'{bag.count} messages in {(bag.end_ns - bag.start_ns) / 1e9:.3f} s'
        )
    return start_ns, stop_ns

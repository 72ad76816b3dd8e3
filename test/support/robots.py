"""A harness on a clock moved by hand, over a policy scope that a test answers by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any

import numpy as np
from seq_harness.contract import Actions, WorkerDeclaration
from seq_harness.harness import Harness, Limits, Opened
from seq_harness.inputs import Inputs
from seq_harness.outputs import Output, Outputs
from seq_harness.pipeline import Pipeline
from seq_harness.playback.answer import Answer
from seq_harness.playback.chunk import Chunk
from seq_harness.playback.uplink import Queued, Step
from seq_harness.settings import parse, Settings
from support.uplinks import HandAnswer, MS, S

JOINTS = ('j1', 'j2')


def settings_of(**changes: Any) -> Settings:
    """Return the settings of a two-joint arm; dots in a changed name are written as `__`."""
    values: dict[str, Any] = {
        'input_names': ['state'],
        'inputs.state.topic': 'joint_states',
        'inputs.state.type': 'joint_state',
        'inputs.state.joints': list(JOINTS),
        'inputs.state.max_age_s': 0.5,
        'channel_names': ['arm'],
        'channels.arm.topic': 'commands',
        'channels.arm.type': 'float64_multi_array',
        'channels.arm.joints': list(JOINTS),
        'channels.arm.state': 'state',
        'channels.arm.lower': [-1.0, -1.0],
        'channels.arm.upper': [1, 1],
        'channels.arm.max_velocity': [10.0, 10.0],
        'rate_hz': 10,
        'preview': False,
    }
    values.update({name.replace('__', '.'): value for name, value in changes.items()})
    return parse(values)


def joint_state(
    position: Sequence[float], stamp_ns: int = 0, name: Sequence[str] = JOINTS
) -> SimpleNamespace:
    """Return a message with the fields of a sensor_msgs/JointState."""
    sec, nanosec = divmod(stamp_ns, S)
    stamp = SimpleNamespace(sec=sec, nanosec=nanosec)
    return SimpleNamespace(
        header=SimpleNamespace(stamp=stamp),
        name=list(name),
        position=list(position),
        velocity=[],
        effort=[],
    )


class HandClock:
    """A clock that stands where a test puts it."""

    def __init__(self, now: int = 100 * S) -> None:
        self.now = now
        self.on_read: Callable[[], None] | None = None

    def now_ns(self) -> int:
        return self.now


class HandScope:
    """A policy's episode whose steps a test can look at."""

    def __init__(self) -> None:
        self.asked: list[Step] = []
        self.observed: list[Step] = []
        self.skipped: list[int] = []
        self.expected: list[int] = []
        self.full = False
        self.calls: list[str] = []

    def infer(self, step: Step, plan: Any = None) -> Any:
        raise AssertionError('answers are given by hand')

    def observe(self, step: Step) -> Queued:
        if self.full:
            return Queued.FULL
        self.observed.append(step)
        return Queued.ACCEPTED

    def skip(self, number: int) -> None:
        self.skipped.append(number)

    def expect(self, next_ask: int) -> None:
        self.expected.append(next_ask)

    def retire(self) -> None:
        self.calls.append('retire')

    def close(self) -> None:
        self.calls.append('close')


class Bench:
    """A harness under a hand-moved clock: move it, look at what was sent."""

    def __init__(
        self,
        episode_s: float | None = None,
        options: Mapping[str, Any] | None = None,
        declaration: WorkerDeclaration | None = None,
        **changes: Any,
    ) -> None:
        """`options` are more keywords of the harness; `changes` are those of its settings."""
        self.settings = settings_of(**changes)
        self.clock = HandClock()
        self.scope = HandScope()
        self.answers: list[HandAnswer] = []
        self.sent: list[tuple[int, list[float]]] = []
        self.wakes = 0
        self.fail_publish: Exception | None = None
        self.during_encode: Callable[[], None] | None = None
        self.on_open: Callable[[Opened], None] | None = None
        self.changes: list[str] = []
        self.works: list[Callable[[], Chunk | None]] = []
        plain = WorkerDeclaration(instance='one', actions=Actions(hz=10))
        self.pipeline = Pipeline(self.settings, declaration or plain)
        self.inputs = Inputs(self.settings.inputs)
        self.harness = Harness(
            clock=self.clock,
            inputs=self.inputs,
            outputs=Outputs({'arm': Output(self._encode, self._publish)}),
            spec=self.pipeline.spec,
            open_episode=self._open,
            limits=Limits(None if episode_s is None else round(episode_s * S), 5 * S),
            instruction='go',
            wake=self._wake,
            on_change=lambda: self.changes.append(self.harness.report().state.value),
            **(options or {}),
        )

    def state(self, position: Sequence[float] = (0.0, 0.0)) -> None:
        """Let a joint state arrive now."""
        now = self.clock.now
        self.inputs.put('state', joint_state(position, now), now_ns=now, ros_now_ns=now)

    def begin(self) -> int:
        """Start an episode with fresh inputs and do its first round."""
        self.state()
        if not self.harness.start().accepted:
            raise AssertionError('the start was refused')
        return self.harness.round()

    def give(self, *values: float, end: str | None = None, hz: float = 10) -> None:
        """Answer the newest ask with rows that hold both joints at each value."""
        commands = [{'arm': np.array([value, value])} for value in values]
        self.answers[-1].give(Chunk.at_rate(commands, hz, end))

    def until(self, instant: int) -> None:
        """Run rounds at the instants that the harness asks for, with fresh inputs, until then."""
        wake = self.harness.round()
        while wake <= instant and self.live:
            self.clock.now = max(wake, self.clock.now)
            self.state()
            wake = self.harness.round()
        self.clock.now = instant

    @property
    def live(self) -> bool:
        return self.harness.report().state.value != 'idle'

    @property
    def reason(self) -> str:
        return self.harness.report().reason

    def _open(self) -> Opened:
        with ExitStack() as stack:
            stack.callback(self.scope.close)
            stack.callback(self.scope.retire)
            opened = self.pipeline.open(self.scope, self._start, stack)
            if self.on_open is not None:
                self.on_open(opened)
            opened.stack = stack.pop_all()
            return opened

    def _start(self, work: Callable[[], Chunk | None]) -> Answer[Chunk | None]:
        answer = HandAnswer()
        self.answers.append(answer)
        self.works.append(work)
        return answer

    def _wake(self) -> None:
        self.wakes += 1

    def _encode(self, value: Any) -> list[float]:
        if self.during_encode is not None:
            self.during_encode()
        return [float(item) for item in value]

    def _publish(self, message: list[float]) -> None:
        if self.fail_publish is not None:
            raise self.fail_publish
        self.sent.append((self.clock.now, message))


__all__ = ['JOINTS', 'MS', 'Bench', 'HandClock', 'HandScope', 'S', 'joint_state', 'settings_of']

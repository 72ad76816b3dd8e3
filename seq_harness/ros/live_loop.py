"""The loop of a configured node: its clock, thread, subscriptions and publishers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
import time
from typing import Any

from rclpy.lifecycle import LifecycleNode
from seq_harness.client.registry import Policy
from seq_harness.client.runtime import Runtime
from seq_harness.harness import (
    Harness,
    Limits,
    OnInstruction,
    Opened,
    Parts,
    RequestAnswer,
    State,
)
from seq_harness.harness.lateness import FROZEN_NS, STALLED
from seq_harness.inputs import Inputs, Snapshot, Verdict
from seq_harness.outputs import Outputs
from seq_harness.pipeline import Pipeline
from seq_harness.playback.answer import Answer
from seq_harness.playback.uplink import PolicyScope
from seq_harness.ros.commanding import Commanding
from seq_harness.ros.manual import manual_subscription
from seq_harness.ros.memory import give_back
from seq_harness.ros.meters import Meters
from seq_harness.ros.pacing import PacedThread, Pacer, RoundClock, SimulatedPacer, SteadyPacer
from seq_harness.ros.recording import recorder_of, telling
from seq_harness.ros.safety import Safety
from seq_harness.ros.shared_memory import FILES_GONE, KEEP_FILES, lost_ports
from seq_harness.ros.starting import Obstacle
from seq_harness.ros.subscribing import Arrived, InputSubscription, Tell
from seq_harness.ros.time_watch import SystemWatch
from seq_harness.ros.warming import Warming
from seq_harness.settings import InputSettings, Settings

SILENT_PERIODS = 3
"""A loop this many row periods past its own instant sends no beat any more."""

CLOSE_WITHIN_S = 1.0
"""How long each part may take to close."""

LOOKS_A_SECOND = 50
"""How often the loop is watched."""

REANCHOR = 'reanchor'


class LiveLoop:
    """
    Build, watch and close what runs episodes with one policy.

    The executor's thread owns it; the paced thread that it starts runs the rounds.
    """

    def __init__(
        self,
        node: LifecycleNode,
        settings: Settings,
        policy: Policy,
        pipeline: Pipeline,
        safety: Safety,
        *,
        instruction: str,
        on_change: Callable[[], None],
        tell: Tell,
        owns_process: bool,
        number: int,
    ) -> None:
        """
        Start the loop's thread.

        `on_change` hears of a new state of the loop, from any thread; `number` is that of the
        last episode before it.
        """
        self.policy = policy
        self.pipeline = pipeline
        self.meters = Meters(item.name for item in settings.inputs)
        self.system = SystemWatch()
        self._node = node
        self._settings = settings
        self._owns_process = owns_process
        self._late_for: int | None = None
        self._scope: PolicyScope | None = None  # replaced whole by the paced thread
        self._looks = 0
        self._deaf = False
        self._standing: Mapping[str, str] = {}
        self._number = number
        self._said = (0, False, 0)  # episode, whether it is live, manual commands before it
        with ExitStack() as parts:
            self.pacer: Pacer = self._make_pacer()
            parts.callback(self.pacer.close)
            self.recording = recorder_of(node, settings, pipeline, self.pacer, instruction)
            parts.callback(self.recording.close)
            self._tell = telling(self.recording, tell)
            self._runtime = Runtime(close_within_s=CLOSE_WITHIN_S)
            parts.callback(self._runtime.close)
            self.warming = Warming(policy, pipeline, node.get_logger().info)
            parts.callback(self.warming.close, CLOSE_WITHIN_S)
            self.inputs = Inputs(
                settings.inputs, max_camera_spread_s=settings['max_camera_spread_s']
            )
            self.harness = self._make_harness(instruction, safety, on_change, parts)
            self.commanding.watch(self.harness.stop)
            self.paced = PacedThread(
                self._round,
                self._prepare,
                self.pacer,
                settings['rt_priority'],
                settings['niceness'],
            )
            parts.callback(self._close_loop)
            self._subscribe(parts)
            self._parts = parts.pop_all()
        self.paced.start()

    def close(self) -> None:
        """End what is live, and close everything in reverse order."""
        self._parts.close()

    def start(self, caution: str = '') -> RequestAnswer:
        """Ask for an episode; the answer tells what to be careful of, `caution` first."""
        answer = self.harness.start()
        cautions = [*filter(None, [caution]), *self.pipeline.cautions]
        if not answer.accepted or not cautions:
            return answer
        return RequestAnswer(True, f'accepted, but {"; ".join(cautions)}')

    def let_go(self, reason: str) -> None:
        """
        End what is live, and wait for what the policy still does; from any thread.

        Closing waits for nothing after that.
        """
        self.harness.stop(reason)
        until_s = time.monotonic() + CLOSE_WITHIN_S
        while self.harness.report().state is not State.IDLE and time.monotonic() < until_s:
            time.sleep(0.005)
        self.policy.close()
        self._runtime.close()
        self.warming.close(CLOSE_WITHIN_S)

    @property
    def obstacle(self) -> Obstacle | None:
        """Return what a start is to wait for."""
        if not self.policy.connected:
            return Obstacle('worker_missing', 'no worker is connected')
        return self.warming.obstacle

    def watch(self) -> None:
        """Withhold everything once the loop is stuck past its own instant; else beat."""
        expected_ns = self.harness.expected_ns
        late_ns = self._late_ns()
        stuck = late_ns > FROZEN_NS
        # Seen late twice: a jump of simulated time alone makes the loop late once.
        if stuck and self._late_for == expected_ns:
            self.harness.withhold(STALLED)
        self._late_for = expected_ns if stuck else None
        if late_ns <= SILENT_PERIODS * self.pipeline.period_ns:
            self._beat()
        self._tell_standing()
        self._looks += 1
        if self._looks % LOOKS_A_SECOND == 0:
            self._tell_memory()

    def _tell_memory(self) -> None:
        """Tell once the middleware is deaf, as the files of its shared memory are gone (G52)."""
        lost = lost_ports()
        if lost and not self._deaf:
            self._deaf = True
            said = f'{", ".join(lost)} {FILES_GONE}; {KEEP_FILES}'
            self._tell('the middleware', said, Verdict.LOST)

    def _tell_standing(self) -> None:
        """Tell what rates are commanded while every joint stands, and that they no longer are."""
        said = self.pipeline.standing.said
        if said is not self._standing:
            for name in {*said, *self._standing}:
                self._tell(f'{name} (rate)', said.get(name, ''), Verdict.UNAVAILABLE)
            self._standing = said

    @property
    def request_id(self) -> str:
        """Return what the newest act is called on the wire; empty where that has no ids."""
        return str(getattr(self._scope, 'request_id', ''))

    def changed(self) -> None:
        """Notice that an episode began or ended, and tell the watchdog at once."""
        report = self.harness.report()
        ended = self._said[1] and report.state is State.IDLE
        self._said = report.number, report.state is not State.IDLE, self._sent_by_hand()
        self._beat()
        self.commanding.changed(report)
        if ended and self._owns_process:
            give_back()

    def facts(self) -> dict[str, Any]:
        """Return what is told beside the figures of an episode."""
        manual, shadow = self.harness.manual, self.pipeline.shadow
        return {
            'policy': self.policy.figures(),
            'scheduling': self.paced.scheduling,
            'preview': self._settings['preview'],
            **self.recording.figures(),
            **self.commanding.figures(),
            **({} if shadow is None else {'preview_distance': shadow.figures()}),
            **({} if manual is None else {'manual': dict(manual.counts)}),
        }

    def _beat(self) -> None:
        watchdog = self.commanding.watchdog
        if watchdog is None:
            return
        episode, live, sent = self._said
        watchdog.beat(episode, live or self._sent_by_hand() > sent)
        trouble = watchdog.trouble(episode) if live else ''
        if trouble:
            self.harness.stop(trouble)

    def _sent_by_hand(self) -> int:
        manual = self.harness.manual
        return 0 if manual is None else manual.counts['sent']

    def _late_ns(self) -> int:
        expected_ns = self.harness.expected_ns
        return 0 if expected_ns is None else self.pacer.now_ns() - expected_ns

    def _round(self) -> int:
        if self.harness.expected_ns is not None:
            self._end_if_overdue()
        return self.recording.round(self.harness)

    def _await_instant(self, instant_ns: int) -> None:
        self.pacer.await_instant(instant_ns)
        self._end_if_overdue()

    def _end_if_overdue(self) -> None:
        """End what was under way once the watchdog takes this process for dead."""
        watchdog = self.commanding.watchdog
        if watchdog is not None and watchdog.overdue:
            self.harness.stop(STALLED)

    def _prepare(self, instant_ns: int) -> bool:
        return self.recording.prepare(self.harness, instant_ns)

    def _make_pacer(self) -> Pacer:
        if not self._node.get_parameter('use_sim_time').value:
            return SteadyPacer(owns_process=self._owns_process)
        reanchor = self._settings['on_time_jump'] == REANCHOR
        return SimulatedPacer(self._node.get_clock(), self._jumped, reanchor=reanchor)

    def _jumped(self, by_ns: int) -> None:
        """Take a jump of simulated time; on the executor's thread."""
        way = f'went back by {-by_ns / 1e9:.3f} s' if by_ns < 0 else f'jumped {by_ns / 1e9:.3f} s'
        logger = self._node.get_logger()
        if self._settings['on_time_jump'] == REANCHOR:
            logger.warning(f'the clock {way}: what is held is dropped, and asked for afresh')
            self.harness.restart()
            return
        logger.warning(f'the clock {way}: an episode that is under way ends')
        self.harness.stop('time_went_back' if by_ns < 0 else 'time_jumped')
        self.inputs.clear()

    def _make_harness(
        self,
        instruction: str,
        safety: Safety,
        on_change: Callable[[], None],
        parts: ExitStack,
    ) -> Harness:
        settings, pipeline = self._settings, self.pipeline
        by_hand = settings['manual_commands']

        def unavailable(snapshot: Snapshot) -> str | None:
            return safety.reason or self.inputs.unavailable(snapshot, self.pacer.now_ns())

        made = Parts(
            clock=RoundClock(self.pacer),
            inputs=self.inputs,
            outputs=self._make_outputs(parts),
            spec=pipeline.spec,
            open_episode=self._open_episode,
            limits=Limits(
                episode_ns=round(settings['episode_s'] * 1e9) or None,
                inputs_ns=round(settings['inputs_timeout_s'] * 1e9),
            ),
            instruction=instruction,
            look=self.inputs.snapshot,
            on_instruction=OnInstruction(settings['on_instruction']),
            wake=self.pacer.wake,
            on_change=on_change,
            manual=pipeline.by_hand() if by_hand else None,
            unavailable=unavailable,
            reap=self._runtime.reap,
            await_instant=self._await_instant,
            number=self._number,
            clock_step_ns=self.pacer.step_ns,
        )
        return self.recording.parts(made).harness()

    def _make_outputs(self, parts: ExitStack) -> Outputs:
        clock = self._node.get_clock()
        stamp_ns = self.recording.stamping(lambda: int(clock.now().nanoseconds))
        self.commanding = Commanding(
            self._node, self._settings, self.pipeline.period_ns, self._tell, stamp_ns
        )
        parts.callback(self.commanding.close)
        return self.commanding.outputs

    def _subscribe(self, parts: ExitStack) -> None:
        for item in self._settings.inputs:
            for topic in item.topics:
                callback = self._on_input(item)
                subscription = InputSubscription(self._node, item, topic, callback, self._tell)
                parts.callback(subscription.close)
                self.meters.follow(item.name, subscription.losses)
        if self._settings['manual_commands']:
            for channel in self._settings.channels:
                subscribed = manual_subscription(self._node, channel, self.harness.command)
                parts.callback(self._node.destroy_subscription, subscribed)

    def _on_input(self, item: InputSettings) -> Arrived:
        wake = self.recording.waking('input', self.pacer.wake)

        def arrived(message: Any, topic: str, sequence: int | None) -> None:
            now_ns, ros_now_ns = self.pacer.now_ns(), self._node.get_clock().now().nanoseconds
            if not now_ns:
                # Simulated time has not begun: what comes now could only be aged wrongly.
                return
            if isinstance(self.pacer, SteadyPacer):
                ros_now_ns = self._judged(message, now_ns, ros_now_ns)
            arrival = self.inputs.put(
                item.name,
                message,
                now_ns=now_ns,
                ros_now_ns=ros_now_ns,
                topic=topic,
                sequence=sequence,
            )
            self.meters.note(item.name, arrival)
            at = now_ns, ros_now_ns
            self.recording.arrived(item.name, topic, sequence, at, arrival)
            self._tell(item.name, arrival.reason, arrival.verdict)
            if self.harness.waiting:
                wake()

        return arrived

    def _judged(self, message: Any, now_ns: int, ros_now_ns: int) -> int:
        """Return the reading of the system clock by which a message's stamp is to be judged."""
        set_by_ns = self.system.look(now_ns, ros_now_ns)
        if set_by_ns:
            self._node.get_logger().warning(
                f'the system clock was set by {set_by_ns / 1e9:+.3f} s; playback goes by the '
                'steady clock, so nothing moves by it'
            )
        header = getattr(message, 'header', None)
        stamp = None if header is None else header.stamp
        stamp_ns = None if stamp is None else stamp.sec * 1_000_000_000 + stamp.nanosec
        return self.system.ros_now_ns(stamp_ns, now_ns, ros_now_ns)

    def _open_episode(self) -> Opened:
        """Open the policy's scope, then the session on it; one stack closes both (R54, R55)."""
        if self.commanding.watchdog is not None:
            self.commanding.watchdog.begin()
        with ExitStack() as stack:
            scope = self._scope = self.policy.open_episode(self.pacer.now_ns)
            stack.callback(scope.close)
            stack.callback(self._runtime.retire)
            stack.callback(scope.retire)
            answered: list[int | None] = [None]  # written by the runtime's thread
            wake = self.recording.waking('answer', self.pacer.wake)

            def note_answer() -> None:
                answered[0] = self.pacer.now_ns()
                wake()

            def start(work: Callable[[], Any]) -> Answer[Any]:
                return self._runtime.start(work, on_done=note_answer)

            opened = self.pipeline.open(*self.recording.episode(scope, start), stack)
            opened.answered_ns = lambda: answered[0]
            opened.stack = stack.pop_all()
            return opened

    def _close_loop(self) -> None:
        self.harness.stop('node_closed')
        if self.paced.close(CLOSE_WITHIN_S):
            self.recording.close_harness(self.harness, 'node_closed')
            self.changed()
        else:
            self.harness.withhold(STALLED)
            self._node.get_logger().error('the loop did not end; its setpoints are withheld')

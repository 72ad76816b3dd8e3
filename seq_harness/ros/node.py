"""The harness as a lifecycle node: topics and services around the loop."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
import json
import threading
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.qos import DurabilityPolicy, QoSProfile
from seq_harness.client.registry import open_policy, Policy
from seq_harness.client.runtime import Runtime
from seq_harness.harness import Harness, Limits, OnInstruction, Opened, State
from seq_harness.inputs import Inputs, Verdict
from seq_harness.outputs import Outputs
from seq_harness.pipeline import Pipeline
from seq_harness.playback.answer import Answer
from seq_harness.ros.diagnostics import diagnostics
from seq_harness.ros.pacing import PacedThread, Pacer, SimulatedPacer, SteadyPacer
from seq_harness.ros.parameters import read_settings
from seq_harness.ros.subscribing import Arrived, InputSubscription
from seq_harness.ros.topics import output, setpoint_publisher
from seq_harness.settings import InputSettings
from std_msgs.msg import String
from std_srvs.srv import Trigger

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)

STALLED_PERIODS = 3
"""A loop this many row periods past its own instant is stuck: nothing more goes out."""

NOT_ACTIVE = 'the node is not active: activate it first'

CLOSE_WITHIN_S = 1.0
"""How long each part may take to close."""


@dataclass(frozen=True)
class _Configured:
    """What configuring opened; replaced whole by the executor's thread."""

    policy: Policy
    pipeline: Pipeline
    pacer: Pacer
    harness: Harness
    paced: PacedThread


class HarnessNode(LifecycleNode):
    """
    A lifecycle node around one harness.

    Configuring connects to the worker and asks it once, in an episode that is discarded; an
    episode starts by ~/start while the node is active. It touches nothing of its process.
    """

    def __init__(self, name: str = 'harness', **kwargs: Any) -> None:
        """
        Read and declare the parameters; keywords are those of a lifecycle node.

        Raises
        ------
        SettingsError
            A parameter is wrong; names it and what is allowed.

        """
        super().__init__(
            name,
            allow_undeclared_parameters=True,
            automatically_declare_parameters_from_overrides=True,
            **kwargs,
        )
        self.settings = read_settings(self)
        self._instruction: str = self.settings['instruction']
        self._interrupted = threading.Event()
        self._connecting: Policy | None = None  # set while configuring waits; read by interrupt
        self._parts = ExitStack()  # closes what configuring opened
        self._configured: _Configured | None = None
        self._active = False
        self._late_for: int | None = None
        self._faults: dict[str, str] = {}
        self._episode = self.create_publisher(String, '~/episode', LATCHED)
        self._diagnostics = self.create_publisher(DiagnosticArray, '/diagnostics', 1)
        self._changed = self.create_guard_condition(self._publish_episode)
        self.create_service(Trigger, '~/start', self._on_start)
        self.create_service(Trigger, '~/stop', self._on_stop)
        for name in ('pause', 'resume', 'take_over', 'replan'):
            self.create_service(Trigger, f'~/{name}', self._request(name))
        self.create_subscription(String, '~/instruction', self._on_instruction, LATCHED)
        for period_s, callback in (
            (0.02, self._watch_loop),
            (0.2, self._publish_progress),
            (1.0, self._publish_diagnostics),
        ):
            self.create_timer(period_s, callback, clock=_steady())

    # -- life

    def configure_soon(self, on_failure: Callable[[], None]) -> None:
        """Configure and activate on the executor's thread as soon as it spins."""

        def once() -> None:
            timer.cancel()
            for trigger in (self.trigger_configure, self.trigger_activate):
                if trigger() != TransitionCallbackReturn.SUCCESS:
                    on_failure()
                    return

        timer = self.create_timer(0.0, once, clock=_steady())

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Connect, load, shake hands and warm up; then build the loop."""
        with ExitStack() as parts:
            try:
                self._configured = self._configure(parts)
            except Exception as error:
                self.get_logger().error(f'configuring failed: {error}')
                return TransitionCallbackReturn.FAILURE
            finally:
                self._connecting = None
            self._parts = parts.pop_all()
        return TransitionCallbackReturn.SUCCESS

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Allow episodes."""
        self._active = True
        self._changed.trigger()
        return TransitionCallbackReturn.SUCCESS

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop now, and allow no more episodes."""
        self._active = False
        if self._configured is not None:
            self._configured.harness.stop('deactivated')
        return TransitionCallbackReturn.SUCCESS

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Close what configuring opened, in reverse order."""
        self._active = False
        self._parts.close()
        self._configured = None
        return TransitionCallbackReturn.SUCCESS

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop now, and close."""
        return self.on_cleanup(state)

    @property
    def episode_is_live(self) -> bool:
        """Whether an episode is under way."""
        configured = self._configured
        return configured is not None and configured.harness.report().state is not State.IDLE

    def interrupt(self, reason: str) -> None:
        """Stop the episode at once and end a connect that is under way; from any thread."""
        self._interrupted.set()
        configured, connecting = self._configured, self._connecting
        if configured is not None:
            configured.harness.stop(reason)
        if connecting is not None:
            connecting.close()

    def close(self) -> None:
        """Stop, and close what configuring opened; once nothing spins the node any more."""
        self.interrupt('node_closed')
        self._parts.close()

    def _configure(self, parts: ExitStack) -> _Configured:
        policy = open_policy(self.settings, self._say)
        parts.callback(policy.close)
        self._connecting = policy
        if self._interrupted.is_set():
            raise InterruptedError('interrupted')
        self._say(f'connecting to {self.settings["worker_url"]}')
        pipeline = Pipeline(self.settings, policy.connect())
        policy.warm_up(pipeline.blank(self._instruction))
        self._say(f'the policy is ready\n{pipeline.describe()}')
        return self._build(policy, pipeline, parts)

    def _build(self, policy: Policy, pipeline: Pipeline, parts: ExitStack) -> _Configured:
        settings = self.settings
        pacer = self._make_pacer()
        parts.callback(pacer.close)
        runtime = Runtime(close_within_s=CLOSE_WITHIN_S)
        parts.callback(runtime.close)
        inputs = Inputs(settings.inputs, max_camera_spread_s=settings['max_camera_spread_s'])
        harness = Harness(
            clock=pacer,
            inputs=inputs,
            outputs=self._make_outputs(pipeline, parts),
            spec=pipeline.spec,
            open_episode=lambda: _open_episode(policy, pipeline, runtime, pacer),
            limits=Limits(
                episode_ns=round(settings['episode_s'] * 1e9) or None,
                inputs_ns=round(settings['inputs_timeout_s'] * 1e9),
            ),
            instruction=self._instruction,
            on_instruction=OnInstruction(settings['on_instruction']),
            wake=pacer.wake,
            on_change=self._changed.trigger,
            unavailable=lambda snapshot: inputs.unavailable(snapshot, pacer.now_ns()),
            reap=runtime.reap,
        )
        paced = PacedThread(harness.round, harness.prepare, pacer, settings['rt_priority'])
        parts.callback(self._close_loop, harness, paced)
        for item in settings.inputs:
            callback = self._on_input(item, inputs, harness, pacer)
            for topic in item.topics:
                parts.callback(
                    InputSubscription(self, item, topic, callback, self._note_fault).close
                )
        paced.start()
        return _Configured(policy, pipeline, pacer, harness, paced)

    def _make_pacer(self) -> Pacer:
        if self.get_parameter('use_sim_time').value:
            return SimulatedPacer(self.get_clock(), self._on_backward)
        return SteadyPacer()

    def _make_outputs(self, pipeline: Pipeline, parts: ExitStack) -> Outputs:
        outputs = {}
        for item in self.settings.channels:
            publisher = setpoint_publisher(self, item, self.settings['preview'])
            parts.callback(self.destroy_publisher, publisher)
            outputs[item.name] = output(publisher, item, pipeline.period_ns)
        return Outputs(outputs)

    def _close_loop(self, harness: Harness, paced: PacedThread) -> None:
        harness.stop('node_closed')
        if paced.close(CLOSE_WITHIN_S):
            harness.close('node_closed')
        else:
            harness.withhold('loop_stalled')
            self.get_logger().error('the loop did not end; its setpoints are withheld')

    # -- what the executor's thread is called for

    def _on_input(
        self, item: InputSettings, inputs: Inputs, harness: Harness, pacer: Pacer
    ) -> Arrived:
        def arrived(message: Any, topic: str, sequence: int | None) -> None:
            arrival = inputs.put(
                item.name,
                message,
                now_ns=pacer.now_ns(),
                ros_now_ns=self.get_clock().now().nanoseconds,
                topic=topic,
                sequence=sequence,
            )
            self._note_fault(item.name, arrival.reason, arrival.verdict)
            if harness.waiting:
                pacer.wake()

        return arrived

    def _on_start(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        configured = self._configured
        if configured is None or not self._active:
            response.success, response.message = False, NOT_ACTIVE
        elif not configured.policy.connected:
            response.success, response.message = False, 'no worker is connected'
        else:
            answer = configured.harness.start()
            response.success, response.message = answer.accepted, answer.reason
        return response

    def _on_stop(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        live = self._configured is not None and self._configured.harness.stop('stop')
        response.success = True
        response.message = 'stopping' if live else 'no episode is running'
        return response

    def _request(
        self, name: str
    ) -> Callable[[Trigger.Request, Trigger.Response], Trigger.Response]:
        """Return the callback of a service that asks the loop for what its method `name` does."""

        def asked(request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
            if self._configured is None:
                response.success, response.message = False, NOT_ACTIVE
                return response
            answer = getattr(self._configured.harness, name)()
            response.success, response.message = answer.accepted, answer.reason
            return response

        return asked

    def _on_instruction(self, message: String) -> None:
        self._instruction = message.data
        if self._configured is not None:
            self._configured.harness.instruct(message.data)

    def _on_backward(self) -> None:
        if self._configured is not None:
            self._configured.harness.stop('time_went_back')

    def _watch_loop(self) -> None:
        """Withhold everything once the loop is stuck past its own instant."""
        if self._configured is None:
            return
        harness, pacer = self._configured.harness, self._configured.pacer
        expected_ns = harness.expected_ns
        late_ns = 0 if expected_ns is None else pacer.now_ns() - expected_ns
        late = late_ns > STALLED_PERIODS * self._configured.pipeline.period_ns
        # Seen late twice: a jump of simulated time alone makes the loop late once.
        if late and self._late_for == expected_ns:
            harness.withhold('loop_stalled')
        self._late_for = expected_ns if late else None

    def _note_fault(self, name: str, reason: str, verdict: Verdict) -> None:
        """Log a fault of an input once, and its recovery."""
        if reason and self._faults.get(name) is None:
            self.get_logger().warning(f'input {name} {verdict.value}: {reason}')
        elif not reason and name in self._faults:
            self.get_logger().info(f'input {name} is well again')
        if reason:
            self._faults[name] = reason
        else:
            self._faults.pop(name, None)

    def _say(self, text: str) -> None:
        self.get_logger().info(text)

    # -- what is told

    def _publish_progress(self) -> None:
        if self.episode_is_live:
            self._publish_episode()

    def _publish_episode(self) -> None:
        self._episode.publish(String(data=json.dumps(self._facts_and_report())))

    def _facts_and_report(self) -> dict[str, Any]:
        configured = self._configured
        if configured is None:
            return {'ready': False, 'state': State.IDLE.value, 'episode': 0, 'reason': ''}
        report = configured.harness.report()
        return {
            'ready': self._active,
            'state': report.state.value,
            'episode': report.number,
            'reason': report.reason,
            **report.figures,
            **self._facts(configured),
        }

    def _facts(self, configured: _Configured) -> dict[str, Any]:
        return {
            'policy': configured.policy.figures(),
            'scheduling': configured.paced.scheduling,
            'preview': self.settings['preview'],
        }

    def _publish_diagnostics(self) -> None:
        configured = self._configured
        if configured is None:
            return
        stamp = self.get_clock().now().to_msg()
        name = f'{self.get_fully_qualified_name().lstrip("/")}: episode'
        report = configured.harness.report()
        faults = dict(self._faults)
        self._diagnostics.publish(
            diagnostics(name, stamp, report, self._facts(configured), faults)
        )


def _steady() -> Clock:
    return Clock(clock_type=ClockType.STEADY_TIME)


def _open_episode(policy: Policy, pipeline: Pipeline, runtime: Runtime, pacer: Pacer) -> Opened:
    """Open the policy's scope, then the session on it; one stack closes both (R54, R55)."""
    with ExitStack() as stack:
        scope = policy.open_episode(pacer.now_ns)
        stack.callback(scope.close)
        stack.callback(runtime.retire)
        stack.callback(scope.retire)

        answered: list[int | None] = [None]  # written by the runtime's thread

        def note_answer() -> None:
            answered[0] = pacer.now_ns()
            pacer.wake()

        def start(work: Callable[[], Any]) -> Answer[Any]:
            return runtime.start(work, on_done=note_answer)

        opened = pipeline.open(scope, start, stack)
        opened.answered_ns = lambda: answered[0]
        opened.stack = stack.pop_all()
        return opened

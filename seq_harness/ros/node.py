"""The harness as a lifecycle node: topics and services around the loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
import json
import time
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.qos import DurabilityPolicy, QoSProfile
from seq_harness.harness import RequestAnswer, State
from seq_harness.pipeline import Pipeline
from seq_harness.ros.chunks import ChunkTopic
from seq_harness.ros.connecting import Connected, Connector
from seq_harness.ros.diagnostics import array, Facts
from seq_harness.ros.episode_log import EpisodeLog
from seq_harness.ros.fault_log import FaultLog
from seq_harness.ros.live_loop import LiveLoop
from seq_harness.ros.overrides import read_given
from seq_harness.ros.pacing import SimulatedPacer
from seq_harness.ros.robot_description import bounded_by_description
from seq_harness.ros.safety import Safety
from seq_harness.ros.safety_topics import subscribe_safety
from seq_harness.ros.time_watch import SimulatedWatch
from seq_harness.ros.transitions import answer_invalid_transitions, leave_graph
from seq_harness.ros.watchdog_link import ARRIVES_WITHIN
from std_msgs.msg import String
from std_srvs.srv import Trigger

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)

NOT_ACTIVE = 'the node is not active: activate it first'

CLOCK = 'clock'
"""The name under which what is odd about simulated time is told."""


class HarnessNode(LifecycleNode):
    """
    A lifecycle node around one harness.

    Configuring connects to the worker and asks it once, in an episode that is discarded; an
    episode starts by ~/start while the node is active. It touches nothing of its process, so it
    may stand beside other nodes in any executor; while a manager has it connect, that executor
    waits.
    """

    def __init__(
        self, name: str = 'harness', *, arguments: Sequence[str] = (), **kwargs: Any
    ) -> None:
        """
        Read and declare the parameters; other keywords are those of a lifecycle node.

        With the process's own `arguments` a value that ROS did not take over is refused.

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
        self.settings = read_given(self, arguments)
        self._instruction: str = self.settings['instruction']
        self._connector = Connector(self.settings, self._say)
        self._parts = ExitStack()  # closes what configuring opened
        self._loop: LiveLoop | None = None  # replaced whole by the executor's thread
        self._active = False
        self._episodes = EpisodeLog(self._say, self._warn, self._fail)
        self._faults = FaultLog(self._warn, self._say, time.monotonic_ns)
        self._forgiven = 0  # the number of the episode whose fault was reset
        self.process_facts: Mapping[str, str] = {}
        """What the process's own main says of its set-up; empty in a process of somebody else."""
        self._safety = Safety(self.settings, self._on_safety)
        self._clock_watch = SimulatedWatch(self._ros_now_ns, self._largest_tick_ns)
        self._episode = self.create_publisher(String, '~/episode', LATCHED)
        self._diagnostics = self.create_publisher(DiagnosticArray, '/diagnostics', 1)
        asked_as = lambda: '' if self._loop is None else self._loop.request_id  # noqa: E731
        self._chunks = ChunkTopic(self, self.settings.channels, asked_as)
        self._changed = self.create_guard_condition(self._on_changed)
        self.create_service(Trigger, '~/start', self._on_start)
        self.create_service(Trigger, '~/stop', self._on_stop)
        self.create_service(Trigger, '~/reset_fault', self._on_reset)
        for name in ('pause', 'resume', 'take_over', 'replan'):
            self.create_service(Trigger, f'~/{name}', self._request(name))
        # Volatile: it hears every publisher, latched or not.
        self.create_subscription(String, '~/instruction', self._on_instruction, 10)
        for period_s, callback in (
            (0.02, self._watch),
            (0.2, self._publish_progress),
            (1.0, self._publish_diagnostics),
        ):
            self.create_timer(period_s, callback, clock=_steady())
        subscribe_safety(self, self.settings, self._safety)
        answer_invalid_transitions(self)

    # -- life

    def configure_soon(self, on_failure: Callable[[], None]) -> None:
        """
        Connect on a thread of its own, then configure and activate on the executor's.

        So the node answers while it connects: a start is refused then, and never kept for later.
        """
        ready = self.create_guard_condition(lambda: self._configure_now(on_failure))

        def failed(error: Exception) -> None:
            self._tell_failure(error)
            on_failure()

        self._connector.connect_ahead(self._instruction, ready.trigger, failed)

    def _configure_now(self, on_failure: Callable[[], None]) -> None:
        try:
            for trigger in (self.trigger_configure, self.trigger_activate):
                if trigger() != TransitionCallbackReturn.SUCCESS:
                    on_failure()
                    return
        except Exception as error:
            # Somebody else manages the node already.
            self.get_logger().warning(f'autostart is left out: {error}')

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Connect, load, shake hands and warm up; then build the loop."""
        try:
            connected = self._connector.take(self._instruction)
            with connected.parts as parts:
                self._loop = self._configure(connected)
                self._parts = parts.pop_all()
        except Exception as error:
            self._tell_failure(error)
            return TransitionCallbackReturn.FAILURE
        return TransitionCallbackReturn.SUCCESS

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Allow episodes."""
        self._active = True
        self._changed.trigger()
        return TransitionCallbackReturn.SUCCESS

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop now, and allow no more episodes."""
        self._active = False
        if self._loop is not None:
            self._loop.harness.stop('deactivated')
        return TransitionCallbackReturn.SUCCESS

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Close what configuring opened, in reverse order."""
        self._active = False
        self._parts.close()
        self._loop = None
        self._changed.trigger()
        return TransitionCallbackReturn.SUCCESS

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop now, and close."""
        return self.on_cleanup(state)

    def on_error(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Close after a transition that failed, so that the node can be configured again."""
        return self.on_cleanup(state)

    @property
    def episode_is_live(self) -> bool:
        """Whether an episode is under way."""
        loop = self._loop
        return loop is not None and loop.harness.report().state is not State.IDLE

    def interrupt(self, reason: str) -> None:
        """Stop the episode at once and end a connect that is under way; from any thread."""
        if (loop := self._loop) is not None:
            loop.harness.stop(reason)
        self._connector.interrupt()

    def stand_aside(self) -> None:
        """Return once no setpoint is near; for the executor of a process that is ours alone."""
        if (loop := self._loop) is not None:
            loop.pacer.stand_aside()

    def close(self) -> None:
        """Stop, and close what configuring opened; once nothing spins the node any more."""
        self.interrupt('node_closed')
        self._connector.close()
        self._parts.close()
        if self.context.ok():
            self._active = False
            self._say_change()
            self._publish_episode()
            self._episode.wait_for_all_acked(ARRIVES_WITHIN)

    def destroy_node(self) -> None:
        """Destroy the node and all that it has on the graph."""
        super().destroy_node()
        leave_graph(self)

    def _configure(self, connected: Connected) -> LiveLoop:
        settings = bounded_by_description(self, self.settings)
        pipeline = Pipeline(settings, connected.declaration, on_chunk=self._chunks.publish)
        self._say(f'the policy is ready\n{pipeline.describe()}')
        for caution in pipeline.cautions:
            self._warn(caution)
        loop = LiveLoop(
            self,
            settings,
            connected.policy,
            pipeline,
            self._safety,
            instruction=self._instruction,
            on_change=self._changed.trigger,
            tell=self._faults.note,
            owns_process=bool(self.process_facts),
        )
        connected.parts.callback(loop.close)
        return loop

    def _tell_failure(self, error: Exception) -> None:
        if self._connector.interrupted:
            self._say(f'connecting ends: {error}')
        else:
            self.get_logger().error(f'configuring failed: {error}')

    # -- what the executor's thread is called for

    def _on_start(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        return _answered(response, self._start())

    def _start(self) -> RequestAnswer:
        loop, kept = self._loop, self._safety.reason
        if loop is None or not self._active:
            return RequestAnswer(False, NOT_ACTIVE)
        if not loop.policy.connected:
            return RequestAnswer(False, 'no worker is connected')
        if kept is not None:
            remedy = ': call ~/reset_fault once it is well' if self._safety.latched else ''
            return RequestAnswer(False, f'{kept}{remedy}')
        if others := loop.commanding.refusal():
            return RequestAnswer(False, others)
        return loop.start(self._faults.current.get(CLOCK, ''))

    def _on_stop(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        live = self._loop is not None and self._loop.harness.stop('stop')
        said = 'stopping' if live else 'no episode is running'
        return _answered(response, RequestAnswer(True, said))

    def _on_reset(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        answer = self._safety.reset()
        if answer.accepted and self._loop is not None:
            self._forgiven = self._loop.harness.report().number
        return _answered(response, answer)

    def _on_safety(self, reason: str) -> None:
        loop = self._loop
        if loop is not None and loop.harness.stop(reason):
            self.get_logger().error(f'the episode ends: {reason}')

    def _request(
        self, name: str
    ) -> Callable[[Trigger.Request, Trigger.Response], Trigger.Response]:
        """Return the callback of a service that asks the loop for what its method `name` does."""

        def asked(request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
            if self._loop is None:
                return _answered(response, RequestAnswer(False, NOT_ACTIVE))
            return _answered(response, getattr(self._loop.harness, name)())

        return asked

    def _on_instruction(self, message: String) -> None:
        self._instruction = message.data
        if self._loop is not None:
            self._loop.harness.instruct(message.data)

    def _watch(self) -> None:
        self._safety.look()
        if self._loop is not None:
            self._loop.watch()

    def _ros_now_ns(self) -> int:
        return int(self.get_clock().now().nanoseconds)

    def _largest_tick_ns(self) -> int:
        pacer = None if self._loop is None else self._loop.pacer
        return pacer.take_largest_tick_ns() if isinstance(pacer, SimulatedPacer) else 0

    def _watch_clock(self) -> None:
        """Say what is odd about simulated time, and that it is well again."""
        if self._loop is None or not isinstance(self._loop.pacer, SimulatedPacer):
            return
        odd = self._clock_watch.look(self._loop.pipeline.period_ns)
        if odd != self._faults.current.get(CLOCK, ''):
            # rclpy lets one place in the code log at one severity alone.
            if odd:
                self.get_logger().warning(odd)
            else:
                self.get_logger().info('the clock is well again')
        if odd:
            self._faults.current[CLOCK] = odd
        else:
            self._faults.current.pop(CLOCK, None)

    def _warn(self, text: str) -> None:
        self.get_logger().warning(text)

    def _say(self, text: str) -> None:
        self.get_logger().info(text)

    def _fail(self, text: str) -> None:
        self.get_logger().error(text)

    # -- what is told

    def _on_changed(self) -> None:
        self._say_change()
        if self._loop is not None:
            self._loop.changed()
        self._publish_episode()

    def _say_change(self) -> None:
        if self._loop is not None:
            self._episodes.changed(self._loop.harness.report())

    def _publish_progress(self) -> None:
        if self._active:
            self._publish_episode()
        if self._loop is not None:
            self._episodes.progressed(self._loop.harness.report(), self._loop.pipeline.mode)

    def _publish_episode(self) -> None:
        self._episode.publish(String(data=json.dumps(self._facts_and_report())))

    def _facts_and_report(self) -> dict[str, Any]:
        loop = self._loop
        if loop is None:
            return {'ready': False, 'state': State.IDLE.value, 'episode': 0, 'reason': ''}
        report = loop.harness.report()
        return {
            'ready': self._active,
            'state': report.state.value,
            'episode': report.number,
            'reason': report.reason,
            'missing_inputs': loop.inputs.missing(loop.inputs.snapshot()),
            **report.figures,
            **self._facts(loop),
        }

    def _facts(self, loop: LiveLoop) -> dict[str, Any]:
        manual, shadow = loop.harness.manual, loop.pipeline.shadow
        return {
            'policy': loop.policy.figures(),
            'scheduling': loop.paced.scheduling,
            'preview': self.settings['preview'],
            **loop.recording.figures(),
            **loop.commanding.figures(),
            **({} if shadow is None else {'preview_distance': shadow.figures()}),
            **({} if manual is None else {'manual': dict(manual.counts)}),
            **self.process_facts,
        }

    def _publish_diagnostics(self) -> None:
        self._watch_clock()
        loop = self._loop
        if loop is None:
            return
        facts = Facts(
            node=self.get_fully_qualified_name().lstrip('/'),
            report=loop.harness.report(),
            forgiven=self._forgiven,
            connected=loop.policy.connected,
            more=self._facts(loop),
            inputs=loop.meters.figures(loop.inputs, loop.pacer.now_ns()),
            faults=dict(self._faults.current),
            kept=self._safety.reason,
        )
        self._diagnostics.publish(array(facts, self.get_clock().now().to_msg()))


def _answered(response: Trigger.Response, answer: RequestAnswer) -> Trigger.Response:
    response.success, response.message = answer.accepted, answer.reason
    return response


def _steady() -> Clock:
    return Clock(clock_type=ClockType.STEADY_TIME)

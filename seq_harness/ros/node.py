"""The harness as a lifecycle node: topics and services around the loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
import json
import time
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.qos import DurabilityPolicy, QoSProfile
from rclpy.task import Future
from seq_harness.harness import RequestAnswer, State
from seq_harness.pipeline import Pipeline
from seq_harness.ros.chunks import ChunkTopic
from seq_harness.ros.clock_fault import ClockFault
from seq_harness.ros.connecting import Connected, Connector
from seq_harness.ros.diagnostics import array, Facts
from seq_harness.ros.episode_log import EpisodeLog
from seq_harness.ros.fault_log import FaultLog
from seq_harness.ros.live_loop import LiveLoop
from seq_harness.ros.overrides import read_given
from seq_harness.ros.robot_description import bounded_by_description
from seq_harness.ros.safety import Safety
from seq_harness.ros.safety_topics import subscribe_safety
from seq_harness.ros.starting import answered, Obstacle, Starting, WaitedInVain
from seq_harness.ros.telling import episode_facts, report_of
from seq_harness.ros.transitions import CLEANUP, CONFIGURE, leave_graph, SHUTDOWN, Transitions
from seq_harness.ros.watchdog_link import ARRIVES_WITHIN
from std_msgs.msg import String
from std_srvs.srv import Trigger

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)

NOT_ACTIVE = 'the node is not active: activate it first'


class HarnessNode(LifecycleNode):
    """
    A lifecycle node around one harness.

    Configuring connects to the worker and asks it once, in an episode of its own; an episode
    starts by ~/start while the node is active. It touches nothing of its process, so it may stand
    beside other nodes in any executor, which never waits for it.
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
        bounded = partial(bounded_by_description, self)
        self._connector = Connector(self.settings, self._say, bounded)
        self._arriving: Future | None = None  # set until configuring has taken what connects
        self._starting = Starting(
            self.settings['inputs_timeout_s'], self._obstacle, self._begin, self._decline
        )
        self._in_vain = WaitedInVain(0, '')
        self._parts = ExitStack()  # closes what configuring opened
        self._loop: LiveLoop | None = None  # replaced whole by the executor's thread
        self._active = False
        self._episodes = EpisodeLog(self._say, self._warn, self._fail)
        self._faults = FaultLog(self._warn, self._say, time.monotonic_ns)
        self._forgiven = 0  # the number of the episode whose fault was reset
        self.process_facts: Mapping[str, str] = {}
        """What the process's own main says of its set-up; empty in a process of somebody else."""
        self._safety = Safety(self.settings, self._on_safety)
        self._clock_fault = ClockFault(self, self._faults.current)
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
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        for period_s, callback in (
            (0.02, self._watch),
            (0.2, self._publish_progress),
            (1.0, self._publish_diagnostics),
        ):
            self.create_timer(period_s, callback, clock=steady)
        subscribe_safety(self, self.settings, self._safety)
        self._transitions = Transitions(self, self._before)

    # -- life

    def configure_soon(self, on_failure: Callable[[], None]) -> None:
        """
        Connect on a thread of its own, then configure and activate on the executor's.

        So the node answers while it connects; a start waits meanwhile.
        """
        self._arriving = self._transitions.apart(
            self._connect, lambda: self._configure_now(on_failure)
        )

    def _connect(self) -> None:
        self._connector.connect_ahead(self._instruction)

    def _before(self, transition: str) -> Future | None:
        """Begin what a transition would keep the executor waiting for."""
        state = self._state_machine.current_state[1]
        if transition == CONFIGURE and state == 'unconfigured':
            self._arriving = self._arriving or self._transitions.apart(self._connect)
            return self._arriving
        if transition == SHUTDOWN or (transition == CLEANUP and state == 'inactive'):
            self._active = False
            return self._transitions.apart(lambda: self._let_go(transition == SHUTDOWN))
        return None

    def _let_go(self, for_good: bool) -> None:
        if for_good:
            self._connector.interrupt()
        if (loop := self._loop) is not None:
            loop.let_go('deactivated')

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
            self._starting.end(f'worker_missing: configuring failed: {error}')
            return TransitionCallbackReturn.FAILURE
        finally:
            self._arriving = None
        return TransitionCallbackReturn.SUCCESS

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Allow episodes."""
        self._active = True
        self._changed.trigger()
        return TransitionCallbackReturn.SUCCESS

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop now, and allow no more episodes."""
        self._active = False
        if not self._starting.end('deactivated') and self._loop is not None:
            self._loop.harness.stop('deactivated')
        return TransitionCallbackReturn.SUCCESS

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Close what configuring opened, in reverse order."""
        self._active = False
        self._starting.end('deactivated')
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
        self._starting.end('node_closed')
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
        settings = connected.settings
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
            number=self._in_vain.number,
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
        return answered(response, self._start())

    def _start(self) -> RequestAnswer:
        if not self._active and self._arriving is None:
            return RequestAnswer(False, NOT_ACTIVE)
        if (kept := self._safety.reason) is not None:
            remedy = ': call ~/reset_fault once it is well' if self._safety.latched else ''
            return RequestAnswer(False, f'{kept}{remedy}')
        answer = self._starting.ask()
        if self._starting.pending:
            self._changed.trigger()
        return answer

    def _obstacle(self) -> Obstacle | None:
        loop = self._loop
        if loop is not None and self._active:
            return loop.obstacle
        said = 'the node is not active yet'
        if loop is None:
            said = f'the node still connects to {self._connector.where}'
        return Obstacle('worker_missing' if loop is None else 'not_active', said)

    def _begin(self) -> RequestAnswer:
        loop = self._loop
        if loop is None:
            return RequestAnswer(False, NOT_ACTIVE)
        if refused := loop.commanding.refusal() or loop.warming.refusal:
            return RequestAnswer(False, refused)
        return loop.start(self._clock_fault.said)

    def _decline(self, reason: str) -> None:
        """End a start that waited, by name, as an episode that never began (R49)."""
        if self._loop is not None:
            self._loop.harness.decline(reason)
            return
        self._in_vain = WaitedInVain(self._in_vain.number + 1, reason)
        self._changed.trigger()

    def _on_stop(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        loop = self._loop
        live = self._starting.end('stop') or (loop is not None and loop.harness.stop('stop'))
        said = 'stopping' if live else 'no episode is running'
        return answered(response, RequestAnswer(True, said))

    def _on_reset(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        answer = self._safety.reset()
        if answer.accepted and self._loop is not None:
            self._forgiven = self._loop.harness.report().number
        return answered(response, answer)

    def _on_safety(self, reason: str) -> None:
        loop = self._loop
        if self._starting.end(reason) or (loop is not None and loop.harness.stop(reason)):
            self.get_logger().error(f'the episode ends: {reason}')

    def _request(
        self, name: str
    ) -> Callable[[Trigger.Request, Trigger.Response], Trigger.Response]:
        """Return the callback of a service that asks the loop for what its method `name` does."""

        def asked(request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
            if self._loop is None:
                return answered(response, RequestAnswer(False, NOT_ACTIVE))
            return answered(response, getattr(self._loop.harness, name)())

        return asked

    def _on_instruction(self, message: String) -> None:
        self._instruction = message.data
        if self._loop is not None:
            self._loop.harness.instruct(message.data)

    def _watch(self) -> None:
        self._safety.look()
        self._starting.look()
        if self._loop is not None:
            self._loop.watch()
            if not self.episode_is_live:
                self._loop.warming.look(self._instruction)

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
        if self._active or self._starting.pending:
            self._publish_episode()
        if self._loop is not None:
            self._episodes.progressed(self._loop.harness.report(), self._loop.pipeline.mode)

    def _publish_episode(self) -> None:
        loop, waits = self._loop, self._starting.pending
        report = report_of(loop, self._in_vain)
        facts = episode_facts(loop, report, self._active, waits, self.process_facts)
        self._episode.publish(String(data=json.dumps(facts)))

    def _publish_diagnostics(self) -> None:
        loop = self._loop
        if loop is None:
            return
        self._clock_fault.look(loop.pacer, loop.pipeline.period_ns)
        facts = Facts(
            node=self.get_fully_qualified_name().lstrip('/'),
            report=loop.harness.report(),
            forgiven=self._forgiven,
            connected=loop.policy.connected,
            more={**loop.facts(), **self.process_facts},
            inputs=loop.meters.figures(loop.inputs, loop.pacer.now_ns()),
            faults=dict(self._faults.current),
            kept=self._safety.reason,
        )
        self._diagnostics.publish(array(facts, self.get_clock().now().to_msg()))

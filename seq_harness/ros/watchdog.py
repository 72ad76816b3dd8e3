"""The node watchdog: it zeroes what a harness commands once that is dead or frozen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
import signal
import sys
import time
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.node import Node
from seq_harness.ros.beats import Beat, BEAT_QOS, BeatRefused, HEARTBEAT, STANDING, Standing
from seq_harness.ros.parameters import declare
from seq_harness.ros.process import Process
from seq_harness.ros.scheduling import request_fifo
from seq_harness.ros.vigil import Vigil, Watch
from seq_harness.ros.zeroing import Zeroing, ZeroRefused
from seq_harness.settings.parameter import Kind, Parameter, SettingsError
from std_msgs.msg import String
from std_srvs.srv import Trigger

PARAMETERS = (
    Parameter(
        'harness', Kind.STRING, 'harness', 'The name of the harness node to watch; one that does '
        'not begin with / is in the namespace of this node.',
    ),
    Parameter(
        'timeout_s', Kind.DOUBLE, 0.0, 'How long after the last sign of life the robot gets zero, '
        'in seconds; 0 for three row periods, and 0.1 at least.', 0.0, 10.0,
    ),
    Parameter(
        'rt_priority', Kind.INTEGER, 20, 'SCHED_FIFO priority of this process, where the system '
        'grants it; 0 for off.', 0, 49,
    ),
)  # fmt: skip

LOOK_S = 0.01
"""How often silence is looked at once there is some; a beat puts it off."""

TELL_S, DIAGNOSE_S = 0.1, 1.0
"""How often the harness is told of, and people."""

LEAST_ZERO_S = 0.02
"""Zeros follow each other by a row period, and by no less."""

QUIET_S = 10.0
"""What comes and goes is said no more often."""

LEVELS = {
    Watch.WAITING: DiagnosticStatus.OK,
    Watch.WATCHING: DiagnosticStatus.OK,
    Watch.GONE: DiagnosticStatus.WARN,
    Watch.HOLDING: DiagnosticStatus.ERROR,
}


class Watchdog(Node):
    """
    Hear the beats of a harness; publish on its command topics only while it is held.

    The executor's thread does everything.
    """

    def __init__(self, **kwargs: Any) -> None:
        """
        Declare the parameters and listen; keywords are those of a node.

        Raises
        ------
        SettingsError
            A parameter is wrong; names it and what is allowed.

        """
        super().__init__('watchdog', **kwargs)
        given = declare(self, PARAMETERS)
        self._harness: str = given['harness']
        self._rt_priority: int = given['rt_priority']
        self._vigil = Vigil(round(LOOK_S * 1e9), given['timeout_s'])
        self._zeroing = Zeroing(self)
        self._heard: tuple[str, Beat] | None = None  # the newest that could be read
        self._prepared: Beat | None = None  # whose channels are open
        self._trouble = ''  # what is wrong with what came last
        self._abandoned = ''  # what was said of who looks after this process
        self.abandoned: Callable[[], str] = lambda: ''
        """Why nobody looks after this process any more; set by its own main."""
        self.finish: Callable[[str], None] = lambda reason: None
        """Ends the process, likewise."""
        self._was = Watch.WAITING
        self._zeroed_ns = 0
        self._scheduling: str | None = None
        self._standing = self.create_publisher(String, f'{self._harness}/{STANDING}', BEAT_QOS)
        self._diagnostics = self.create_publisher(DiagnosticArray, '/diagnostics', 1)
        self.create_subscription(String, f'{self._harness}/{HEARTBEAT}', self._on_beat, BEAT_QOS)
        self.create_service(Trigger, '~/release', self._on_release)
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._looks = self.create_timer(LOOK_S, self._look, clock=steady)
        self.create_timer(TELL_S, self._tell, clock=steady)
        self.create_timer(DIAGNOSE_S, self._diagnose, clock=steady)

    def _on_beat(self, message: String) -> None:
        try:
            beat = self._read(message.data)
            if beat != self._prepared:
                self._prepare(beat)
        except (BeatRefused, ZeroRefused) as error:
            self._refuse(str(error))
            return
        self._trouble = ''
        self._vigil.heard(beat, time.monotonic_ns())
        self._look_later()
        self._note()

    def _read(self, text: str) -> Beat:
        """Read a beat; each is heard many times."""
        if self._heard is None or text != self._heard[0]:
            self._heard = text, Beat.read(text)
        return self._heard[1]

    def _refuse(self, text: str) -> None:
        """Say once what is no beat, or none that can be served; it counts for nothing."""
        if not self._trouble:
            self.get_logger().error(text, throttle_duration_sec=QUIET_S)
        self._trouble = text

    def _look_later(self) -> None:
        """Look again when silence may have lasted too long, counted from now."""
        self._looks.timer_period_ns = self._vigil.next_look_ns
        self._looks.reset()

    def _prepare(self, beat: Beat) -> None:
        held = self._vigil.held
        kept = () if held is None else held.channels
        self._prepared = None
        self._zeroing.prepare((*beat.channels, *kept), beat.period_s)
        self._prepared = beat
        self._tell()

    def _look(self) -> None:
        if self._scheduling is None:
            self._scheduling = request_fifo(self._rt_priority).text
        now_ns = time.monotonic_ns()
        if self._vigil.look(now_ns) is Watch.HOLDING:
            self._zero(now_ns)
        self._look_later()
        self._note()
        self._look_after()

    def _look_after(self) -> None:
        """End once nobody looks after this process, and its harness needs it no more."""
        abandoned, over = self.abandoned(), self._vigil.over
        if abandoned and abandoned != self._abandoned:
            self._abandoned = abandoned
            self.get_logger().warning(f'nobody looks after this watchdog ({abandoned}): it stays')
        if abandoned and over:
            self.get_logger().info(f'the watchdog ends: {over}')
            self.finish(over)

    def _zero(self, now_ns: int) -> None:
        held = self._vigil.held
        if held is None:
            return
        due_ns = self._zeroed_ns + round(max(held.period_s, LEAST_ZERO_S) * 1e9)
        if self._was is not Watch.HOLDING or now_ns >= due_ns:
            self._zeroed_ns = now_ns
            self._zeroing.publish(held.channels)

    def _note(self) -> None:
        """Say a change at once: in the log, to the harness, and to people."""
        state = self._vigil.state
        if state is self._was:
            return
        self._was = state
        # rclpy lets one place in the code log at one severity alone.
        if state is Watch.HOLDING:
            self.get_logger().error(self._told())
        elif state is Watch.GONE:
            self.get_logger().warning(self._told())
        else:
            self.get_logger().info(self._told())
        self._tell()
        self._diagnose()

    def _on_release(
        self, request: Trigger.Request, response: Trigger.Response
    ) -> Trigger.Response:
        response.success = self._vigil.release()
        response.message = 'released' if response.success else 'nothing is held'
        self._note()
        return response

    def _tell(self) -> None:
        held, ready = self._vigil.held, self._prepared
        standing = Standing(
            name=self.get_fully_qualified_name(),
            watches='' if ready is None else ready.instance,
            holds='' if held is None else held.instance,
            episode=0 if held is None else held.episode,
            timeout_s=self._vigil.timeout_ns / 1e9,
            endpoints=self._zeroing.endpoints,
        )
        self._standing.publish(String(data=standing.text()))

    def _told(self) -> str:
        """Say what it does, for people."""
        held, silent = self._vigil.held, f'nothing was heard for {self._vigil.silent_s:.2f} s'
        if held is not None:
            topics = ', '.join(sorted(channel.topic for channel in held.channels)) or 'no topic'
            back = silent if self._vigil.silent_s > LOOK_S * 10 else 'it is heard again'
            return (
                f'{self._harness} fell silent during episode {held.episode} ({back}): zero goes '
                f'to {topics} until a new episode starts, or ~/release is called'
            )
        if self._trouble:
            return f'{self._harness} cannot be watched: {self._trouble}'
        return {
            Watch.WAITING: f'{self._harness} was not heard yet',
            Watch.WATCHING: f'{self._harness} is heard',
            Watch.GONE: f'{self._harness} moved nothing when it fell silent: {silent}',
        }[self._vigil.state]

    def _diagnose(self) -> None:
        state = self._vigil.state
        status = DiagnosticStatus(
            name=f'{self.get_fully_qualified_name().lstrip("/")}: {self._harness}',
            level=DiagnosticStatus.ERROR if self._trouble else LEVELS[state],
            message=self._told(),
            values=[
                KeyValue(key=key, value=str(value))
                for key, value in (
                    ('state', state.value),
                    ('timeout_s', self._vigil.timeout_ns / 1e9),
                    ('silent_s', round(self._vigil.silent_s, 3)),
                    ('scheduling', self._scheduling),
                )
            ],
        )
        found = DiagnosticArray(status=[status])
        found.header.stamp = self.get_clock().now().to_msg()
        self._diagnostics.publish(found)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the node until a signal or its end; 0 after a wanted stop, 2 for wrong parameters."""
    process = Process(argv, endures=[signal.SIGHUP])
    try:
        node = Watchdog()
    except SettingsError as error:
        print(f'watchdog: {error}', file=sys.stderr)
        process.close()
        return 2
    node.abandoned = lambda: process.abandoned
    node.finish = lambda reason: process.finish(reason, 0)
    status = process.run(node, lambda reason: None)
    node.destroy_node()
    process.close()
    return status

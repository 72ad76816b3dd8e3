"""The playback clocks of a live node, and the thread that runs the loop on one."""

from __future__ import annotations

from collections.abc import Callable
import logging
import threading
import time
from typing import Protocol

from rclpy.clock import Clock as RosClock
from rclpy.clock import JumpThreshold, TimeJump
from rclpy.duration import Duration
from seq_harness.ros.scheduling import Interpreter, NICEST, request_fifo, request_more

logger = logging.getLogger(__name__)

LEAD_NS = 2_000_000
"""
A sleep ends this long before its instant, and what is left is spent awake.

That is about as long as the system may keep a processor, and other threads the interpreter
(`process.SWITCH_INTERVAL_S`), from a thread that wakes; and short beside the time between two
camera frames.
"""

LEAD_SHARE, QUIET_SHARE = 4, 3
"""At most one part in so many of a sleep is spent awake, and quiet."""

PREPARE_NS = 1_000_000
"""A setpoint is prepared this long before its instant, and no thread has the interpreter then."""

AHEAD_NS = 250_000
"""
A round with a setpoint begins this long before its instant: publishing alone is left for it.

That is what such a round takes, with room for a cold cache.
"""

QUIET_NS = 3_000_000
"""
From so long before an instant on, `stand_aside` lets nobody pass.

What began before has about as long to end as the callback of a camera frame takes.
"""

PAST_NS = 1_000_000
"""How long after an instant `stand_aside` waits at most for the round to end."""

CHANGE_S = 0.1
"""How long a reader waits for a clock that is being changed."""

BEFORE_OTHERS = 10
"""By how much the paced thread's niceness is below that of the process."""

Prepare = Callable[[int], bool]
"""Does what can be done shortly before an instant; tells whether a setpoint is due then."""


class Pacer(Protocol):
    """A playback clock, and sleeping on it."""

    def now_ns(self) -> int:
        """Return the reading in ns."""

    def round_ns(self) -> int:
        """Return the reading that a round goes by, in ns: at most `AHEAD_NS` ahead of `now_ns`."""

    def sleep_until(self, instant_ns: int, prepare: Prepare) -> None:
        """
        Return once `round_ns` has come to `instant_ns`, or at once when woken.

        `prepare` is called shortly before.
        """

    def await_instant(self, instant_ns: int) -> None:
        """Return once `now_ns` has come to a reading of `round_ns`."""

    def stand_aside(self) -> None:
        """Return once no instant is near, at which the paced thread wants the interpreter."""

    def step_ns(self) -> int:
        """Return how far apart the readings of a clock lie that goes by leaps; 0 for none."""

    def wake(self) -> None:
        """End the sleep that is under way, or else the next one; from any thread."""

    def close(self) -> None:
        """Release what the clock holds."""


class SteadyPacer:
    """
    The steady clock: a step of the system clock moves nothing.

    It is not awake for long: a thread that has used up its part of the processor is put aside for
    as long as another one may run.
    """

    def __init__(self, *, owns_process: bool = False) -> None:
        """
        Keep the interpreter before a setpoint, where `owns_process`.

        With a short switch interval, as our own main sets it, another thread would take it.
        """
        self._woken = threading.Event()
        self._passed = threading.Event()  # set whenever a sleep begins
        self._interpreter = Interpreter(owns_process=owns_process)
        self._round_ns = 0  # written by the paced thread
        self._quiet_ns = 0, 0  # from when until when; replaced whole by the paced thread

    def now_ns(self) -> int:
        return time.monotonic_ns()

    def round_ns(self) -> int:
        return max(time.monotonic_ns(), self._round_ns)

    def sleep_until(self, instant_ns: int, prepare: Prepare) -> None:
        self._interpreter.give_way()
        span_ns = max(0, instant_ns - time.monotonic_ns())
        quiet_ns = min(QUIET_NS, span_ns // QUIET_SHARE)
        self._quiet_ns = instant_ns - quiet_ns, instant_ns + PAST_NS
        self._passed.set()
        sleep_ns = span_ns - min(LEAD_NS, span_ns // LEAD_SHARE)
        if sleep_ns > 0:
            self._woken.wait(sleep_ns / 1e9)
        if not self._woken.is_set() and time.monotonic_ns() < instant_ns:
            self._come_to(instant_ns, prepare)
        self._woken.clear()

    def await_instant(self, instant_ns: int) -> None:
        while time.monotonic_ns() < instant_ns:
            pass

    def stand_aside(self) -> None:
        """Return once no instant is near; for the other threads of a process of our own."""
        quiet_ns = self._quiet_ns
        from_ns, until_ns = quiet_ns
        if not from_ns <= time.monotonic_ns() < until_ns:
            return
        self._passed.clear()
        rest_ns = until_ns - time.monotonic_ns()
        if self._quiet_ns is quiet_ns and rest_ns > 0:
            self._passed.wait(rest_ns / 1e9)

    def step_ns(self) -> int:
        return 0

    def wake(self) -> None:
        self._woken.set()

    def close(self) -> None:
        self._interpreter.give_way()

    def _come_to(self, instant_ns: int, prepare: Prepare) -> None:
        """Stay awake, and prepare; go on so for a setpoint, and sleep on to anything else."""
        self._interpreter.keep()
        if self._spun(instant_ns - PREPARE_NS):
            self._prepare(instant_ns, prepare)

    def _prepare(self, instant_ns: int, prepare: Prepare) -> None:
        due = False
        try:
            due = prepare(instant_ns)
        finally:
            if not due:
                self._interpreter.give_way()
        if not due:
            self._woken.wait(max(0, instant_ns - time.monotonic_ns()) / 1e9)
            return
        if self._spun(instant_ns - AHEAD_NS):
            self._round_ns = instant_ns

    def _spun(self, instant_ns: int) -> bool:
        """Stay awake to an instant; tell whether nobody woke the sleep."""
        while not self._woken.is_set():
            if time.monotonic_ns() >= instant_ns:
                return True
        return False


FORWARD_NS = 1_000_000_000
"""A simulated clock that goes on by more than this at once has jumped."""


STEPS = 8
"""So many steps of a simulated clock tell how far it goes at once."""


class SimulatedPacer:
    """
    ROS time: a sleep ends by the clock's own jumps and by `wake`, and never polls.

    Re-anchored, playback goes on through a jump as if no time had passed; else it goes by what the
    clock says. It reads 0 until the clock has begun.
    """

    def __init__(
        self, clock: RosClock, on_jump: Callable[[int], None], *, reanchor: bool = False
    ) -> None:
        """`on_jump` hears, on the executor's thread, by how many ns time went back or jumped."""
        self._clock = clock
        self._on_jump = on_jump
        self._reanchor = reanchor
        self._woken = threading.Event()
        self._until_ns = 0  # written by the paced thread, read by the executor's
        self._changing = threading.Lock()  # held while the clock and its offset change
        self._offset_ns = 0  # under _changing
        self._began = int(clock.now().nanoseconds) != 0  # the executor's thread alone
        self._largest_tick_ns = 0  # the executor's thread alone
        self._steps_ns: tuple[int, ...] = ()  # replaced whole by the executor's thread
        threshold = JumpThreshold(
            min_forward=Duration(nanoseconds=1), min_backward=Duration(nanoseconds=-1)
        )
        self._jumps = clock.create_jump_callback(
            threshold, pre_callback=self._about_to_jump, post_callback=self._jumped
        )

    def now_ns(self) -> int:
        held = self._changing.acquire(timeout=CHANGE_S)
        try:
            ros_ns = int(self._clock.now().nanoseconds)
            return ros_ns + self._offset_ns if ros_ns else 0
        finally:
            if held:
                self._changing.release()

    def round_ns(self) -> int:
        return self.now_ns()

    def sleep_until(self, instant_ns: int, prepare: Prepare) -> None:
        # A jump of this clock is the instant itself: nothing comes shortly before.
        self._until_ns = instant_ns
        if self.now_ns() < instant_ns:
            self._woken.wait()
        self._woken.clear()

    def await_instant(self, instant_ns: int) -> None:
        """Return at once: rounds of this clock begin at their instants."""

    def stand_aside(self) -> None:
        """Return at once: the executor itself brings the instants of this clock."""

    def step_ns(self) -> int:
        """Return the largest of the last steps but one: that one may be a freeze of ours."""
        steps = sorted(self._steps_ns)
        return steps[-2] if len(steps) > 1 else 0

    def wake(self) -> None:
        self._woken.set()

    def close(self) -> None:
        self._jumps.unregister()

    def take_largest_tick_ns(self) -> int:
        """Return the largest step of the clock since this was asked last."""
        largest_ns, self._largest_tick_ns = self._largest_tick_ns, 0
        return largest_ns

    def _about_to_jump(self) -> None:
        self._changing.acquire(timeout=CHANGE_S)

    def _jumped(self, jump: TimeJump) -> None:
        delta_ns = jump.delta.nanoseconds
        began, self._began = self._began, True
        odd = began and (delta_ns < 0 or delta_ns > FORWARD_NS)
        if odd and self._reanchor:
            self._offset_ns -= delta_ns
        if self._changing.locked():
            self._changing.release()
        if odd:
            self._on_jump(delta_ns)
            self._woken.set()
            return
        if began:
            self._largest_tick_ns = max(self._largest_tick_ns, delta_ns)
            self._steps_ns = (*self._steps_ns[1 - STEPS :], delta_ns)
        if self.now_ns() >= self._until_ns:
            self._woken.set()


class RoundClock:
    """The playback clock, as the loop reads it."""

    def __init__(self, pacer: Pacer) -> None:
        self.now_ns = pacer.round_ns
        """Return the reading in ns; it never goes back while an episode runs."""


class PacedThread:
    """The thread that runs rounds and publishes; it does nothing else."""

    def __init__(
        self,
        run_round: Callable[[], int],
        prepare: Prepare,
        pacer: Pacer,
        rt_priority: int,
        niceness: int = 0,
    ) -> None:
        """
        Ask for SCHED_FIFO by that priority, else for more than that niceness.

        0 asks for none of them.
        """
        self._round = run_round
        self._prepare = prepare
        self._pacer = pacer
        self._rt_priority = rt_priority
        self._niceness = niceness
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name='paced', daemon=True)
        self.scheduling = 'not started'
        """What the system granted, for people."""

    def start(self) -> None:
        self._thread.start()

    def close(self, within_s: float) -> bool:
        """End the thread after the round it is in; tell whether it ended within the bound."""
        self._closing.set()
        self._pacer.wake()
        if self._thread.ident is not None:
            self._thread.join(within_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        self.scheduling = self._request()
        while not self._closing.is_set():
            self._pacer.sleep_until(self._round(), self._prepare)

    def _request(self) -> str:
        fifo = request_fifo(self._rt_priority)
        if fifo.granted or self._niceness >= 0:
            return fifo.text
        niceness = max(NICEST, self._niceness - BEFORE_OTHERS)
        return f'{fifo.text}; niceness {request_more(niceness).text}'

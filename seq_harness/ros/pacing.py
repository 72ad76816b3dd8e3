"""The playback clocks of a live node, and the thread that runs the loop on one."""

from __future__ import annotations

from collections.abc import Callable
import logging
import os
import sys
import threading
import time
from typing import Protocol

from rclpy.clock import Clock as RosClock
from rclpy.clock import JumpThreshold, TimeJump
from rclpy.duration import Duration

logger = logging.getLogger(__name__)

LEAD_NS = 2_000_000
"""A sleep ends this long before its instant; the rest is for getting the interpreter back."""

HOLD_NS = 1_000_000
"""
The last part before a setpoint is spent without giving the interpreter away: no other thread has
it then.

It is longer than others may keep the interpreter (`process.SWITCH_INTERVAL_S`), so it is had in
time, and short beside the time between two camera frames.
"""

KEPT_S = 0.005
"""The switch interval while the interpreter is kept: longer than that lasts."""

LEAD_SHARE, HOLD_SHARE = 2, 4
"""At most one part in so many of a sleep is spent awake, and without giving way."""

CHANGE_S = 0.1
"""How long a reader waits for a clock that is being changed."""

Prepare = Callable[[int], bool]
"""Does what can be done shortly before an instant; tells whether a setpoint is due then."""


class Pacer(Protocol):
    """A playback clock, and sleeping on it."""

    def now_ns(self) -> int:
        """Return the reading in ns."""

    def sleep_until(self, instant_ns: int, prepare: Prepare) -> None:
        """Return at `instant_ns`, or at once when woken; call `prepare` shortly before."""

    def wake(self) -> None:
        """End the sleep that is under way, or else the next one; from any thread."""

    def close(self) -> None:
        """Release what the clock holds."""


class SteadyPacer:
    """The steady clock: a step of the system clock moves nothing."""

    def __init__(self, *, owns_process: bool = False) -> None:
        """
        Keep the interpreter whatever the switch interval says, where `owns_process`.

        With an interval shorter than the last part of a sleep, as our own main sets it, another
        thread would take the interpreter just before the instant.
        """
        self._woken = threading.Event()
        self._owns_process = owns_process

    def now_ns(self) -> int:
        return time.monotonic_ns()

    def sleep_until(self, instant_ns: int, prepare: Prepare) -> None:
        span_ns = max(0, instant_ns - time.monotonic_ns())
        sleep_ns = span_ns - min(LEAD_NS, span_ns // LEAD_SHARE)
        if sleep_ns > 0:
            self._woken.wait(sleep_ns / 1e9)
        hold_ns = min(HOLD_NS, span_ns // HOLD_SHARE)
        while not self._woken.is_set() and instant_ns - time.monotonic_ns() > hold_ns:
            time.sleep(0)
        if not self._woken.is_set() and time.monotonic_ns() < instant_ns:
            self._hold(instant_ns, prepare)
        self._woken.clear()

    def _hold(self, instant_ns: int, prepare: Prepare) -> None:
        """Prepare, and stay awake to the instant of a setpoint; sleep to any other."""
        interval_s = sys.getswitchinterval()
        try:
            if self._owns_process:
                sys.setswitchinterval(KEPT_S)
            if prepare(instant_ns):
                while not self._woken.is_set() and time.monotonic_ns() < instant_ns:
                    pass
        finally:
            if self._owns_process:
                sys.setswitchinterval(interval_s)
        rest_ns = instant_ns - time.monotonic_ns()
        if rest_ns > 0:
            self._woken.wait(rest_ns / 1e9)

    def wake(self) -> None:
        self._woken.set()

    def close(self) -> None:
        """Hold nothing."""


FORWARD_NS = 1_000_000_000
"""A simulated clock that goes on by more than this at once has jumped."""


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

    def sleep_until(self, instant_ns: int, prepare: Prepare) -> None:
        # A jump of this clock is the instant itself: nothing comes shortly before.
        self._until_ns = instant_ns
        if self.now_ns() < instant_ns:
            self._woken.wait()
        self._woken.clear()

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
        if self.now_ns() >= self._until_ns:
            self._woken.set()


class PacedThread:
    """The thread that runs rounds and publishes; it does nothing else."""

    def __init__(
        self, run_round: Callable[[], int], prepare: Prepare, pacer: Pacer, rt_priority: int
    ) -> None:
        """`rt_priority` is the SCHED_FIFO priority to ask for; 0 asks for none."""
        self._round = run_round
        self._prepare = prepare
        self._pacer = pacer
        self._rt_priority = rt_priority
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
        self.scheduling = request_fifo(self._rt_priority)
        while not self._closing.is_set():
            self._pacer.sleep_until(self._round(), self._prepare)


def request_fifo(priority: int) -> str:
    """Ask for SCHED_FIFO for the calling thread; return what was granted, for people."""
    if priority == 0:
        return 'normal (rt_priority is 0)'
    try:
        # Threads that this one starts are not to inherit it: they would hold it up.
        policy = os.SCHED_FIFO | os.SCHED_RESET_ON_FORK
        os.sched_setscheduler(0, policy, os.sched_param(priority))
    except (OSError, AttributeError) as error:
        return (
            f'normal: SCHED_FIFO {priority} was refused ({error}); grant rtprio in '
            '/etc/security/limits.d or CAP_SYS_NICE for punctual setpoints'
        )
    return f'SCHED_FIFO {priority}'

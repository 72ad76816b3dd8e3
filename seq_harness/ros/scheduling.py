"""What a punctual thread asks for: the processor of the system, and the interpreter of Python."""

from __future__ import annotations

from contextlib import suppress
import os
import sys
from typing import NamedTuple

KEPT_S = 0.003
"""The switch interval while the interpreter is kept: longer than that lasts."""

NICEST = -20


class Grant(NamedTuple):
    """What the system answered."""

    granted: bool
    text: str
    """The same for people, with what would help where it refused."""


def request_fifo(priority: int) -> Grant:
    """Ask for SCHED_FIFO for the calling thread; a priority of 0 asks for nothing."""
    if priority == 0:
        return Grant(granted=False, text='normal (rt_priority is 0)')
    try:
        # Threads that this one starts are not to inherit it: they would hold it up.
        policy = os.SCHED_FIFO | os.SCHED_RESET_ON_FORK
        os.sched_setscheduler(0, policy, os.sched_param(priority))
    except (OSError, AttributeError) as error:
        return Grant(
            granted=False,
            text=f'normal: SCHED_FIFO {priority} was refused ({error}); grant rtprio in '
            '/etc/security/limits.d or CAP_SYS_NICE for punctual setpoints',
        )
    return Grant(granted=True, text=f'SCHED_FIFO {priority}')


def request_more(niceness: int) -> Grant:
    """
    Ask for a niceness for the calling thread alone.

    Threads that it starts get the usual one, as those of a thread with SCHED_FIFO do.
    """
    answer = request_niceness(niceness)
    if answer.granted:
        with suppress(OSError, AttributeError):
            policy = os.SCHED_OTHER | os.SCHED_RESET_ON_FORK
            os.sched_setscheduler(0, policy, os.sched_param(0))
    return answer


def request_niceness(niceness: int) -> Grant:
    """
    Ask for a niceness for the calling thread, and those it starts; 0 asks for nothing.

    A thread that the system puts aside while it has the interpreter holds up the setpoint.
    """
    if niceness == 0:
        return Grant(granted=False, text='as it is (niceness is 0)')
    try:
        os.setpriority(os.PRIO_PROCESS, 0, niceness)
    except OSError as error:
        return Grant(
            granted=False,
            text=f'as it was: {niceness} was refused ({error}); grant nice in '
            '/etc/security/limits.d or CAP_SYS_NICE for punctual setpoints',
        )
    return Grant(granted=True, text=str(niceness))


class Interpreter:
    """The interpreter, kept by a thread that is awake; of one thread."""

    def __init__(self, *, owns_process: bool) -> None:
        """Keep it whatever the switch interval says, where `owns_process`."""
        self._owns_process = owns_process
        self._usual_s: float | None = None  # the switch interval to go back to

    def keep(self) -> None:
        """Let no thread have it that asks for it from now on, until `give_way`."""
        if self._owns_process and self._usual_s is None:
            self._usual_s = sys.getswitchinterval()
            sys.setswitchinterval(KEPT_S)

    def give_way(self) -> None:
        """Let others have it as usual."""
        if self._usual_s is not None:
            sys.setswitchinterval(self._usual_s)
            self._usual_s = None

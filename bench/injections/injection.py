"""One injection: what is done, and the reason that must be told for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
import re
from typing import Any

from injections.judge import Judge, NotSeen
from injections.processes import Processes
from injections.rig import GOES_ON, last_line, Rig, Setup

ENDS_S, ON_S = 12.0, 15.0
"""How long an end, and more setpoints, are waited for by default."""

REFUSED_S = 30.0
"""How long a harness may take to refuse what it cannot run with."""

LATER_S = 0.4
"""How long is listened after the end for what must not come."""

Fault = Callable[[Rig], object]


class Family(Enum):
    """Where a fault is."""

    WORKER = 'worker'
    PROXY = 'proxy'
    SENSORS = 'sensors'
    CLOCK = 'clock'
    PROCESS = 'process'
    CONSOLE = 'console'
    FILES = 'files'


@dataclass(frozen=True)
class Injection:
    """A fault, and what must be told for it: known before it runs."""

    name: str
    expected: str
    """A pattern that the whole reason matches."""
    run: Callable[[Rig], str]
    """Brings all up, injects, and returns the reason that was told."""
    tested: bool = False
    """Whether the test suite runs it too."""


@dataclass(frozen=True)
class Outcome:
    """What became of one injection."""

    family: str
    name: str
    expected: str
    reason: str
    named: bool
    last_ms: float | None
    """From the fault to the last setpoint; None where none followed, or play went on."""
    setpoints: int
    beyond: int
    """Setpoints that broke a limit, or were sent after the end was."""


def ends(fault: Fault, within_s: float = ENDS_S, **setup: Any) -> Callable[[Rig], str]:
    """Inject while it plays; return why the episode ended."""

    def run(rig: Rig) -> str:
        rig.bring_up(Setup(**setup))
        rig.play()
        rig.inject(fault)
        return rig.reason(within_s)

    return run


def lasts(fault: Fault, within_s: float = ON_S, **setup: Any) -> Callable[[Rig], str]:
    """Inject while it plays; return that it went on, else why the episode ended."""

    def run(rig: Rig) -> str:
        rig.bring_up(Setup(**setup))
        rig.play()
        rig.inject(fault)
        return rig.goes_on(within_s)

    return run


def refused(fault: Fault | None = None, **setup: Any) -> Callable[[Rig], str]:
    """Inject before all is brought up; return with which line the harness ended."""

    def run(rig: Rig) -> str:
        if fault is not None:
            rig.inject(fault)
        rig.bring_up(Setup(**setup))
        return ended(rig)

    return run


def ended(rig: Rig, within_s: float = REFUSED_S) -> str:
    """Wait for the end of the harness; return the last line that it wrote, without its head."""
    status = rig.ends('harness', within_s)
    said = re.sub(
        r'^\[\w+\] \[[\d.]+\] \[harness\]: ', '', last_line(rig.processes.said('harness'))
    )
    return said if status else f'ended with 0: {said}'


def carried_out(family: Family, injection: Injection, folder: Path) -> Outcome:
    """Run an injection in the ROS domain of this process."""
    with Judge() as judge, Processes(folder) as processes:
        rig = Rig(processes, judge, folder)
        try:
            reason = injection.run(rig)
        except (NotSeen, RuntimeError, OSError) as error:
            reason = f'not told: {error}'
        ended_ns = judge.ended_ns
        if reason != GOES_ON:
            judge.rest(LATER_S)
        heard = [each for each in judge.setpoints if not rig.setup.velocities or any(each.values)]
    beyond = sum(each.beyond for each in heard)
    late = 0 if ended_ns is None else sum(each.sent_ns > ended_ns for each in heard)
    last_ms = None
    if rig.fault_at is not None and reason != GOES_ON:
        after = [each.at - rig.fault_at for each in heard if each.at > rig.fault_at]
        last_ms = round(1e3 * after[-1], 1) if after else None
    return Outcome(
        family=family.value,
        name=injection.name,
        expected=injection.expected,
        reason=reason,
        named=re.fullmatch(injection.expected, reason, re.DOTALL) is not None,
        last_ms=last_ms,
        setpoints=len(heard),
        beyond=beyond + late,
    )

"""Faults of clocks: the system's is set, and simulated time leaps, stands or never begins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from injections.injection import ends, Fault, Injection, lasts
from injections.rig import GOES_ON, Rig, Setup
from support.clock_steps import SystemClock

DAY_S = 86_400.0
REANCHOR = {'on_time_jump': 'reanchor'}


def _set(*offsets_s: float) -> Callable[[Rig], str]:
    """Return a run in which the system's clock is set so far off, one after the other."""

    def run(rig: Rig) -> str:
        clock = SystemClock(rig.folder)

        def fault(rig: Rig) -> None:
            for offset_s in offsets_s:
                clock.set_off(offset_s)
                rig.judge.rest(0.2)

        return lasts(fault, variables=clock.environment)(rig)

    return run


def _simulated(**mode: Any) -> Fault:
    """Return a change of simulated time as a fault."""
    return lambda rig: rig.processes.tell('robot', **mode)


def _ends(fault: Fault, **changes: Any) -> Callable[[Rig], str]:
    return ends(fault, simulated=True, changes=changes)


def _lasts(fault: Fault, **changes: Any) -> Callable[[Rig], str]:
    return lasts(fault, simulated=True, changes=changes)


def _stands_until_a_stop(rig: Rig) -> None:
    rig.processes.tell('robot', clock=False)
    rig.judge.rest(1.0)
    rig.judge.call('stop')


def _stands_for_a_while(rig: Rig) -> None:
    rig.processes.tell('robot', clock=False)
    rig.judge.rest(0.5)
    rig.processes.tell('robot', clock=True, clock_offset_s=-0.5)


def _never_begins(rig: Rig) -> str:
    rig.bring_up(Setup(simulated=True, robot={'clock': False}))
    rig.judge.until(lambda: bool(rig.judge.figures.get('ready')), 40.0, 'a ready harness')

    def start_and_stop(rig: Rig) -> None:
        rig.judge.call('start')
        rig.judge.rest(0.5)
        rig.judge.call('stop')

    rig.inject(start_and_stop)
    return rig.reason(5.0)


CLOCK = (
    Injection('set on by 5 s', GOES_ON, _set(5.0)),
    Injection('set back by 5 s', GOES_ON, _set(-5.0)),
    Injection('set on by a day', GOES_ON, _set(DAY_S)),
    Injection('set back by ten years', GOES_ON, _set(-3652 * DAY_S)),
    Injection('set to and fro', GOES_ON, _set(*(0.3, -0.3) * 5)),
    Injection(
        'simulated time goes back',
        r'time_went_back',
        _ends(_simulated(clock_offset_s=-10.0)),
        tested=True,
    ),
    Injection(
        'simulated time leaps on', r'time_jumped', _ends(_simulated(clock_offset_s=10.0)), True
    ),
    Injection(
        'it goes back, to be borne', GOES_ON, _lasts(_simulated(clock_offset_s=-10.0), **REANCHOR)
    ),
    Injection(
        'it leaps on, to be borne', GOES_ON, _lasts(_simulated(clock_offset_s=10.0), **REANCHOR)
    ),
    Injection('simulated time stands, until a stop', r'stop', _ends(_stands_until_a_stop), True),
    Injection('simulated time stands for a while', GOES_ON, _lasts(_stands_for_a_while)),
    Injection('four ticks a second', GOES_ON, _lasts(_simulated(clock_hz=4.0))),
    Injection('simulated time never begins', r'stop', _never_begins),
)

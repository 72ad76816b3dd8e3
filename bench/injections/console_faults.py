"""Faults of the console: nobody reads it, it is closed, or it is full."""

from __future__ import annotations

from collections.abc import Callable
import os
import signal
from typing import Any

from injections.consoles import Console
from injections.injection import Fault, Injection
from injections.rig import GOES_ON, Rig, Setup

END_S = 12.0


def _with_console(
    how: str, fault: Fault | None = None, terminal: bool = False, **setup: Any
) -> Callable[[Rig], str]:
    """Return a run whose console goes wrong, as `how` says, and after which comes a fault."""

    def run(rig: Rig) -> str:
        console = Console(rig.processes.log('harness'), terminal)
        rig.bring_up(Setup(launch=console.options, **setup))
        rig.play()
        getattr(console, how)()
        if fault is None:
            rig.inject(lambda rig: None)
            return rig.goes_on(END_S)
        rig.inject(fault)
        return rig.reason(END_S)

    return run


def _then_ends(run: Callable[[Rig], str]) -> Callable[[Rig], str]:
    """As `run`, and then the harness must end with 0."""

    def both(rig: Rig) -> str:
        reason, status = run(rig), rig.ends('harness')
        return reason if status == 0 else f'{reason}, and it ended with {status}'

    return both


def _written_to(**launch: Any) -> Callable[[Rig], str]:
    """Return a run whose console is of no use from the start."""

    def run(rig: Rig) -> str:
        rig.bring_up(Setup(launch=launch))
        rig.play()
        rig.inject(lambda rig: rig.judge.call('stop'))
        return rig.reason(END_S)

    return run


def _closed() -> None:
    for descriptor in (0, 1, 2):
        os.close(descriptor)


def _stop(rig: Rig) -> None:
    rig.judge.call('stop')


def _silence(rig: Rig) -> None:
    rig.processes.tell('robot', joints=False)


def _term(rig: Rig) -> None:
    rig.processes.send('harness', signal.SIGTERM)


def _lost(rig: Rig) -> None:
    rig.processes.send('worker', signal.SIGKILL)


def _zeroed(rig: Rig) -> str:
    """Kill a harness whose watchdog's console nobody reads."""
    console = Console(rig.processes.log('watchdog'))
    rig.bring_up(Setup(velocities=True, launch=console.options))
    rig.play()
    console.block()
    rig.inject(lambda rig: rig.processes.send('harness', signal.SIGKILL))
    rig.judge.until(lambda: bool(rig.judge.watchdog), END_S, 'a watchdog that holds')
    return rig.judge.watchdog


CONSOLE = (
    Injection('nobody reads it', GOES_ON, _with_console('block')),
    Injection('unread, and a stop', r'stop', _with_console('block', _stop)),
    Injection(
        'unread, and joints silent', r'stale_input: state', _with_console('block', _silence)
    ),
    Injection('unread, and a lost worker', r'worker_lost: .*', _with_console('block', _lost)),
    Injection(
        'unread, and SIGTERM',
        r'signal: SIGTERM',
        _then_ends(_with_console('block', _term)),
    ),
    Injection("the watchdog's is unread, and SIGKILL", r'harness fell silent .*', _zeroed),
    Injection('its reader ends', GOES_ON, _with_console('hang_up')),
    Injection(
        'its reader ends, and a stop', r'stop', _with_console('hang_up', _stop), tested=True
    ),
    Injection('a terminal stops', GOES_ON, _with_console('block', terminal=True)),
    Injection(
        'a terminal is closed',
        r'signal: SIGHUP',
        _then_ends(_with_console('hang_up', lambda rig: None, terminal=True)),
    ),
    Injection(
        'it is full', r'stop', _written_to(stdout=os.open('/dev/full', os.O_WRONLY)), tested=True
    ),
    Injection('there is none', r'stop', _written_to(preexec_fn=_closed), tested=True),
)

"""Faults of the worker: it dies, freezes, and answers nothing or what may not play."""

from __future__ import annotations

from collections.abc import Callable
import signal
from typing import Any

from injections.injection import ends, Fault, Injection, lasts, refused
from injections.rig import GOES_ON, Rig

LOST, REFUSED = r'worker_lost: .*', r'chunk_refused: .*'
CONFIGURING = r'configuring failed: .*'


def _does(what: str, **how: Any) -> Fault:
    """Return a fault of the policy."""
    return lambda rig: rig.policy_does(what, **how)


def _killed(rig: Rig) -> None:
    rig.processes.send('worker', signal.SIGKILL)


def _restarted(rig: Rig) -> None:
    port = rig.worker_port
    _killed(rig)
    rig.ends('worker')
    rig.worker(port)


def _told_to_end(rig: Rig) -> None:
    rig.processes.send('worker', signal.SIGTERM)


def _frozen(rig: Rig) -> None:
    rig.processes.send('worker', signal.SIGSTOP)


def _frozen_for_a_second(rig: Rig) -> None:
    _frozen(rig)
    rig.judge.rest(1.0)
    rig.processes.send('worker', signal.SIGCONT)


def _at_the_warm_up(what: str, **how: Any) -> Callable[[Rig], str]:
    """Return a run whose policy misbehaves before the node is configured."""
    return refused(_does(what, **how))


WORKER = (
    Injection('killed', LOST, ends(_killed), tested=True),
    Injection('told to end', LOST, ends(_told_to_end)),
    Injection(
        'killed and started again', GOES_ON, lasts(_restarted, changes={'reconnect_s': 15.0})
    ),
    Injection(
        'killed and started again, with what it remembered',
        r'policy_state_lost: .*',
        ends(_restarted, within_s=20.0, changes={'reconnect_s': 15.0}, policy={'remembers': True}),
    ),
    Injection('frozen', LOST, ends(_frozen)),
    Injection('frozen for a second', GOES_ON, lasts(_frozen_for_a_second)),
    Injection('its policy raises', r'policy_error: PolicyBroke: .*', ends(_does('raise'))),
    Injection('its policy ends the process', LOST, ends(_does('exit'))),
    Injection('slower than a chunk lasts', GOES_ON, lasts(_does('delay', s=1.2))),
    Injection('NaN in a row', REFUSED, ends(_does('value', value='nan', row=5)), tested=True),
    Injection('inf in the first row', REFUSED, ends(_does('value', value='inf'))),
    Injection('beyond the upper limit', REFUSED, ends(_does('value', value='2.5'))),
    Injection('a leap within a chunk', REFUSED, ends(_does('shift', by=0.5, row=5))),
    Injection('a leap at the join', REFUSED, ends(_does('shift', by=-1.0))),
    Injection('rows too wide', REFUSED, ends(_does('wide'))),
    Injection('rows too narrow', REFUSED, ends(_does('narrow'))),
    Injection('rows of two widths', REFUSED, ends(_does('ragged'))),
    Injection('rows of words', REFUSED, ends(_does('words'))),
    Injection('text in place of rows', REFUSED, ends(_does('text'))),
    Injection('an axis between rows and columns', REFUSED, ends(_does('deep'))),
    Injection('the axis of a batch of one', GOES_ON, lasts(_does('batch'))),
    Injection('complex numbers', REFUSED, ends(_does('complex'))),
    Injection('twenty thousand rows', REFUSED, ends(_does('many'))),
    Injection('rows under another key', REFUSED, ends(_does('key'))),
    Injection(
        'no rows at all',
        r'starved: no rows for 2 s.*',
        ends(_does('empty'), changes={'max_starved_s': 2.0}),
    ),
    Injection('the policy is done', r'policy:done', ends(_does('end'))),
    Injection('NaN at the warm-up', CONFIGURING, _at_the_warm_up('value', value='nan')),
    Injection('too wide at the warm-up', CONFIGURING, _at_the_warm_up('wide')),
    Injection('raises at the warm-up', CONFIGURING, _at_the_warm_up('raise'), tested=True),
    Injection(
        'loads for too long',
        CONFIGURING,
        refused(policy={'load_s': 60.0}, changes={'connect_timeout_s': 1.0}),
    ),
    Injection('columns that fit no channel', CONFIGURING, refused(policy={'width': 2})),
)

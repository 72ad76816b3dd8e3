"""Faults of the worker: it dies, freezes, answers nothing or what may not play."""

from __future__ import annotations

import signal

from injections.injection import Injection, ends, lasts
from injections.rig import GOES_ON, Rig

REFUSED = r'chunk_refused: .*'


def _kill(rig: Rig) -> None:
    rig.processes.send('worker', signal.SIGKILL)


def _restart(rig: Rig) -> None:
    port = rig.worker_port
    _kill(rig)
    rig.ends('worker')
    rig.worker(port)


def _freeze(rig: Rig) -> None:
    rig.processes.send('worker', signal.SIGSTOP)


def _nap(rig: Rig) -> None:
    _freeze(rig)
    rig.judge.rest(1.0)
    rig.processes.send('worker', signal.SIGCONT)


WORKER = (
    Injection('killed', r'worker_lost: .*', ends(_kill), tested=True),
    Injection('killed and started again', GOES_ON, lasts(_restart, changes={'reconnect_s': 15.0})),
)

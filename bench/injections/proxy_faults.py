"""Faults between the harness and its worker: what a network, or a proxy, does to bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from injections.injection import ends, Fault, Injection, lasts
from injections.rig import GOES_ON, Rig

LOST = r'worker_lost: .*'


def _told(**orders: Any) -> Fault:
    """Return orders to the proxy as a fault."""
    return lambda rig: rig.processes.tell('proxy', **orders)


def _once(**orders: Any) -> Fault:
    """As `_told`, for half a second, with a new connection after it."""

    def fault(rig: Rig) -> None:
        rig.processes.tell('proxy', **orders)
        rig.judge.rest(1.2)
        rig.processes.tell('proxy', down='pass', up='pass', door='open', drop='fin')

    return fault


def _dropped_again_and_again(rig: Rig) -> None:
    for _ in range(6):
        rig.processes.tell('proxy', drop='reset')
        rig.judge.rest(0.3)


def _ends(fault: Fault, **changes: Any) -> Callable[[Rig], str]:
    return ends(fault, within_s=20.0, proxied=True, changes=changes)


def _lasts(fault: Fault, **changes: Any) -> Callable[[Rig], str]:
    return lasts(fault, proxied=True, changes={'reconnect_s': 5.0, **changes})


PROXY = (
    Injection('a connection ends', GOES_ON, _lasts(_told(drop='fin')), tested=True),
    Injection('a connection is reset', GOES_ON, _lasts(_told(drop='reset'))),
    Injection('reset six times', GOES_ON, _lasts(_dropped_again_and_again)),
    Injection('the door closes', LOST, _ends(_told(door='closed', drop='fin')), tested=True),
    Injection('nobody answers at the door', LOST, _ends(_told(door='silent', drop='fin'))),
    Injection('503 at the door', LOST, _ends(_told(door='http', drop='fin')), tested=True),
    Injection('answers are held back', LOST, _ends(_told(down='hold'))),
    Injection('questions are held back', LOST, _ends(_told(up='hold'))),
    Injection('held back for a while', GOES_ON, _lasts(_once(down='hold'))),
    Injection('0.3 s later', GOES_ON, _lasts(_told(delay_s=0.3))),
    Injection('2 kB/s', GOES_ON, _lasts(_told(bytes_s=2000.0), act_timeout_s=10.0)),
    Injection('bits that flip, for a while', GOES_ON, _lasts(_once(down='flip'))),
    Injection('bits that flip', LOST, _ends(_told(down='flip'))),
    Injection('noise before each answer', LOST, _ends(_told(down='noise'))),
    Injection('half of each answer', LOST, _ends(_told(down='cut'))),
    Injection('each answer twice, for a while', GOES_ON, _lasts(_once(down='twice'))),
    Injection('a frame of 4 EiB', LOST, _ends(_told(down='huge'))),
    Injection('text in place of a message', LOST, _ends(_told(down='text'))),
)

"""Faults of what the robot says: silence, lies, and other commanders."""

from __future__ import annotations

from collections.abc import Callable
import signal
from typing import Any

from injections.injection import ends, Fault, Injection, lasts
from injections.rig import GOES_ON, Rig, Setup
from std_msgs.msg import Float64MultiArray

HELD = 'held'
STALE_STATE, STALE_FRONT = r'stale_input: .*state.*', r'stale_input: .*front.*'
STALE, REFUSED = r'stale_input: .*', r'chunk_refused: .*'
STOP = {'stop_topic': 'stop'}
BEATS = {**STOP, 'require_heartbeat': True}
DEADMAN = {'deadman_topic': 'deadman'}
MAX_AGE_S = 0.5
"""How old the input that a fault is about may be."""

TRACKED = {'channels__arm__max_tracking_error': 0.02, 'tracking_error_s': 0.2}
STATUS = {
    'input_names': ['front', 'state', 'status'],
    'inputs.status.topic': 'arm_status',
    'inputs.status.type': 'string',
    'inputs.status.available': ['ready'],
}


def _robot(**mode: Any) -> Fault:
    """Return a change of the driver as a fault."""
    return lambda rig: rig.processes.tell('robot', **mode)


def _state_stale(fault: Fault) -> Callable[[Rig], str]:
    return ends(fault, changes={'inputs__state__max_age_s': MAX_AGE_S})


def _front_stale(fault: Fault, **changes: Any) -> Callable[[Rig], str]:
    return ends(fault, changes={'inputs__front__max_age_s': MAX_AGE_S, **changes})


def _signalled(number: int) -> Fault:
    return lambda rig: rig.processes.send('robot', number)


def _another_commander(rig: Rig) -> None:
    rig.judge.node.create_publisher(Float64MultiArray, 'commands', 1)


def _never(**mode: Any) -> Callable[[Rig], str]:
    """Return a run whose driver lacks something from the start."""

    def run(rig: Rig) -> str:
        rig.bring_up(Setup(robot=mode, changes={'inputs_timeout_s': 2.0}))
        rig.judge.until(lambda: bool(rig.judge.figures.get('ready')), 40.0, 'a ready harness')
        rig.inject(lambda rig: rig.judge.call('start'))
        return rig.reason(12.0)

    return run


def _in_fault_for_a_while(rig: Rig) -> None:
    rig.processes.tell('robot', status='fault')
    rig.judge.rest(0.5)
    rig.processes.tell('robot', status='ready')


def _held(fault: Fault) -> Callable[[Rig], str]:
    """Return a run in which nothing goes out any more while the episode lasts."""

    def run(rig: Rig) -> str:
        rig.bring_up(Setup(changes=STATUS))
        rig.play()
        rig.inject(fault)
        rig.judge.rest(0.5)
        count = len(rig.judge.setpoints)
        rig.judge.rest(0.5)
        on = len(rig.judge.setpoints) - count
        return rig.judge.reason or (f'{on} setpoints go on' if on else HELD)

    return run


SENSORS = (
    Injection('joints fall silent', STALE_STATE, _state_stale(_robot(joints=False)), tested=True),
    Injection('a camera falls silent', STALE_FRONT, _front_stale(_robot(camera=False))),
    Injection('the driver is killed', STALE, _state_stale(_signalled(signal.SIGKILL))),
    Injection('the driver is frozen', STALE, _state_stale(_signalled(signal.SIGSTOP))),
    Injection('joints once in two seconds', STALE_STATE, _state_stale(_robot(joints_hz=0.5))),
    Injection('frames once in two seconds', STALE_FRONT, _front_stale(_robot(camera_hz=0.5))),
    Injection(
        'joints under other names', STALE_STATE, _state_stale(_robot(names=['a', 'b', 'c']))
    ),
    Injection(
        'a joint is missing', STALE_STATE, _state_stale(_robot(names=['shoulder', 'elbow']))
    ),
    Injection('NaN positions', STALE_STATE, _state_stale(_robot(value='nan'))),
    Injection('NaN velocities', GOES_ON, lasts(_robot(extra={'velocity': [float('nan')] * 3}))),
    Injection('the same stamp again and again', STALE, _state_stale(_robot(stamp='hung'))),
    Injection('stamps slower than time', STALE, _state_stale(_robot(stamp='slow'))),
    Injection('stamps of zero', GOES_ON, lasts(_robot(stamp='zero'))),
    Injection('stamps 4250 s ago', GOES_ON, lasts(_robot(stamp_offset_s=-4250.0))),
    Injection('stamps an hour ahead', GOES_ON, lasts(_robot(stamp_offset_s=3600.0))),
    Injection(
        'an arm that does not follow',
        r'frozen_state: .*',
        ends(_robot(standing=True), policy={'absolute': True}),
    ),
    Injection(
        'an arm that lags its command',
        r'guard: tracking error: .*',
        ends(_robot(standing=True), changes=TRACKED),
    ),
    Injection('an arm that leaps by 0.5 rad', REFUSED, ends(_robot(leap=0.5))),
    Injection('another encoding', r'input_changed: .*front.*', ends(_robot(encoding='16UC1'))),
    Injection('another size', r'input_changed: .*front.*', ends(_robot(size=[32, 24]))),
    Injection('frames cut short', STALE_FRONT, _front_stale(_robot(short=100))),
    Injection('rows shorter than pixels', STALE_FRONT, _front_stale(_robot(step=10))),
    Injection('an encoding that nobody knows', STALE_FRONT, _front_stale(_robot(encoding='rgb7'))),
    Injection(
        'frames that stay the same',
        STALE_FRONT,
        _front_stale(_robot(same=True), inputs__front__frozen_after_s=0.5),
    ),
    Injection('a camera that never comes', r'inputs_missing: front', _never(camera=False)),
    Injection('joints that never come', r'inputs_missing: state', _never(joints=False)),
    Injection('a stop', r'stop_input: .* says stop', ends(_robot(stop=True), changes=STOP)),
    Injection(
        'a stop falls silent', r'stop_input: .* silent', ends(_robot(stop=None), changes=BEATS)
    ),
    Injection(
        'the deadman is let go', r'deadman: .*', ends(_robot(deadman=False), changes=DEADMAN)
    ),
    Injection(
        'the deadman is silent', r'deadman: .*', ends(_robot(deadman=None), changes=DEADMAN)
    ),
    Injection('the arm says it is in fault', HELD, _held(_robot(status='fault')), tested=True),
    Injection('in fault for a while', GOES_ON, lasts(_in_fault_for_a_while, changes=STATUS)),
    Injection('another commander', r'other_publisher: .*', ends(_another_commander), tested=True),
)

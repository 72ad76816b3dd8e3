"""Faults of the harness's own process, of its watchdog, and of those who talk to both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
import json
import resource
import signal
from typing import Any

from injections.injection import ended, ends, ENDS_S, Fault, Injection, lasts
from injections.rig import GOES_ON, Rig, Setup
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from std_msgs.msg import String

WATCHED = r'harness fell silent during episode 1 .*: zero goes to /commands .*'
STALLED = r'loop_stalled'
NO_BEAT = {'instance': 3, 'episode': 'a', 'moving': 'yes', 'period_s': 'soon', 'channels': []}
OF_ANOTHER_VERSION = {'topic': 4, 'type': 'of tomorrow', 'joints': 3, 'kind': None, 'frame': []}
NO_STANDING = {
    'name': 4,
    'watches': [],
    'holds': {},
    'episode': 'a',
    'timeout_s': float('nan'),
    'endpoints': 5,
}
MALFORMED = (
    *(
        '',
        '{}',
        '[]',
        'null',
        '"beat"',
        '{"instance": 3}',
        '\x00',
        '[' * 100_000,
        '{"a":' * 20_000,
    ),
    json.dumps(NO_BEAT),
    json.dumps({**NO_BEAT, 'episode': float('nan'), 'period_s': float('inf')}),
    json.dumps({**NO_BEAT, 'channels': [OF_ANOTHER_VERSION]}),
    json.dumps(NO_STANDING),
)
"""What is neither a heartbeat nor a watchdog's standing."""


def _sent(*numbers: int, to: str = 'harness', pause_s: float = 0.0) -> Fault:
    """Return signals, one after the other, as a fault."""

    def fault(rig: Rig) -> None:
        for number in numbers:
            rig.processes.send(to, number)
            rig.judge.rest(pause_s)

    return fault


def _ends_by(*numbers: int, **setup: Any) -> Callable[[Rig], str]:
    """Return a run that a signal ends: the reason, and the status where that is not 0."""

    def run(rig: Rig) -> str:
        reason = ends(_sent(*numbers, pause_s=0.02), **setup)(rig)
        status = rig.ends('harness')
        return reason if status == 0 else f'{reason}, and it ended with {status}'

    return run


def _zeroed(*numbers: int) -> Callable[[Rig], str]:
    """Return a run whose watchdog takes over; the reason is what it says."""

    def run(rig: Rig) -> str:
        rig.bring_up(Setup(velocities=True))
        rig.play()
        rig.inject(_sent(*numbers))
        rig.judge.until(lambda: bool(rig.judge.watchdog), ENDS_S, 'a watchdog that holds')
        return rig.judge.watchdog

    return run


def _frozen(seconds: float, times: int = 1) -> Fault:
    """Return freezes of the harness, a second apart, as a fault."""

    def fault(rig: Rig) -> None:
        for _ in range(times):
            rig.processes.send('harness', signal.SIGSTOP)
            rig.judge.rest(seconds)
            rig.processes.send('harness', signal.SIGCONT)
            rig.judge.rest(1.0 if times > 1 else 0.0)

    return fault


def _told(topic: str, texts: Sequence[str]) -> Fault:
    """Return messages on a topic of the harness as a fault."""

    def fault(rig: Rig) -> None:
        publisher = rig.judge.node.create_publisher(String, topic, 20)
        rig.judge.until(lambda: publisher.get_subscription_count() > 0, 10.0, topic)
        for text in texts:
            publisher.publish(String(data=text))
            rig.judge.rest(0.05)

    return fault


def _watched(fault: Fault) -> Callable[[Rig], str]:
    """Return a run that goes on beside a watchdog that has not ended either."""

    def run(rig: Rig) -> str:
        reason = lasts(fault, velocities=True)(rig)
        return reason if rig.processes.runs('watchdog') else f'{reason}; the watchdog has ended'

    return run


def _deactivated(rig: Rig) -> None:
    client = rig.judge.node.create_client(ChangeState, '/harness/change_state')
    rig.judge.until(client.service_is_ready, 10.0, 'the service')
    request = ChangeState.Request(transition=Transition(id=Transition.TRANSITION_DEACTIVATE))
    client.call_async(request)


def _no_descriptors_left(rig: Rig) -> None:
    pid = rig.processes.pid('harness')
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, 3))
    rig.processes.tell('proxy', drop='reset')


def _another_harness(rig: Rig) -> None:
    file = rig.folder / 'harness.yaml'
    rig.launch('second', '--ros-args', '--params-file', str(file), '-r', '__node:=second')


def _while_connecting(number: int) -> Callable[[Rig], str]:
    """Return a run in which a signal comes while nobody answers."""

    def run(rig: Rig) -> str:
        rig.url = 'ws://127.0.0.1:1'
        rig.robot()
        rig.harness()
        rig.says('harness', 'connecting to')
        rig.inject(_sent(number))
        return ended(rig)

    return run


PROCESS = (
    Injection('SIGINT', r'signal: SIGINT', _ends_by(signal.SIGINT), tested=True),
    Injection('SIGTERM', r'signal: SIGTERM', _ends_by(signal.SIGTERM)),
    Injection('SIGHUP', r'signal: SIGHUP', _ends_by(signal.SIGHUP)),
    Injection('SIGINT twice', r'signal: SIGINT', _ends_by(signal.SIGINT, signal.SIGINT)),
    Injection('SIGTERM, then SIGINT', r'signal: SIGTERM', _ends_by(signal.SIGTERM, signal.SIGINT)),
    Injection(
        'SIGHUP that was ignored from the start',
        GOES_ON,
        lasts(
            _sent(signal.SIGHUP),
            launch={'preexec_fn': lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)},
        ),
    ),
    Injection('SIGPIPE', GOES_ON, lasts(_sent(signal.SIGPIPE))),
    Injection('SIGTERM while it connects', r'ended with 0: .*', _while_connecting(signal.SIGTERM)),
    Injection('SIGKILL', WATCHED, _zeroed(signal.SIGKILL), tested=True),
    Injection('SIGSEGV', WATCHED, _zeroed(signal.SIGSEGV)),
    Injection('SIGABRT', WATCHED, _zeroed(signal.SIGABRT)),
    Injection('SIGSTOP', WATCHED, _zeroed(signal.SIGSTOP)),
    Injection(
        'frozen for 0.8 s beside a watchdog',
        r'loop_stalled|watchdog: /watchdog heard nothing .*',
        ends(_frozen(0.8), velocities=True),
    ),
    Injection('frozen for 0.8 s', STALLED, ends(_frozen(0.8)), tested=True),
    Injection('frozen for 0.4 s', GOES_ON, lasts(_frozen(0.4))),
    Injection('frozen for 0.4 s, twice', STALLED, ends(_frozen(0.4, 2))),
    Injection(
        'the watchdog is killed',
        r'watchdog_lost: .*',
        ends(_sent(signal.SIGKILL, to='watchdog'), velocities=True),
    ),
    Injection(
        'the watchdog is frozen',
        r'watchdog_lost: .*',
        ends(_sent(signal.SIGSTOP, to='watchdog'), velocities=True),
    ),
    Injection(
        'heartbeats that are none', GOES_ON, _watched(_told('harness/heartbeat', MALFORMED))
    ),
    Injection('watchdogs that are none', GOES_ON, _watched(_told('harness/watchdog', MALFORMED))),
    Injection(
        'instructions of 1 MB and of controls',
        GOES_ON,
        lasts(_told('harness/instruction', ['a' * 1_000_000, '\x1b[2J\x00\x07', ''])),
    ),
    Injection('deactivated', r'deactivated', ends(_deactivated)),
    Injection(
        'no descriptors left to connect again',
        r'worker_lost: .*',
        ends(_no_descriptors_left, proxied=True),
    ),
    Injection('a second harness', r'other_publisher: .*', ends(_another_harness)),
)

"""The executor of a process of our own, its signals and its end."""

from __future__ import annotations

import subprocess
import sys

import pytest
from support.waiting import PATIENCE_S

SCRIPT = """
from rclpy.node import Node
from seq_harness.ros.process import Process

process, seen = Process([]), []
node = Node('polite')

def fire():
    seen.append('callback')
    if seen.count('callback') == 3:
        process.finish('seen', 0)

node.create_timer(0.01, fire)
process.run(node, lambda reason: None, lambda: seen.append('aside'))
process.close()
print(*seen)
"""


def ran(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, '-c', script, *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def test_the_executor_stands_aside_before_each_callback() -> None:
    done = ran(SCRIPT)
    seen = done.stdout.split()
    callbacks = [at for at, what in enumerate(seen) if what == 'callback']
    assert len(callbacks) >= 3
    assert all(seen[at - 1] == 'aside' for at in callbacks)


ORPHAN = """
import os, select, signal, sys
signal.signal(signal.SIGHUP, getattr(signal, sys.argv[1]))
parent, (made, done) = os.getpid(), os.pipe()
if os.fork():
    os.close(done)
    os.read(made, 1)
    os._exit(0)
from seq_harness.ros.process import Process
gone = os.pidfd_open(parent)
process = Process([], endures=[signal.SIGHUP])
said = [process.abandoned]
os.close(done)
select.select([gone], [], [])
said.append(process.abandoned)
os.kill(os.getpid(), signal.SIGHUP)
said.append(process.abandoned)
process.close()
print(said)
"""


@pytest.mark.parametrize(
    ('handler', 'said'),
    [
        ('SIG_DFL', ['', 'what started it is gone', 'signal: SIGHUP']),
        ('SIG_IGN', ['', '', '']),
    ],
)
def test_g48_a_process_knows_that_nobody_looks_after_it(handler: str, said: list[str]) -> None:
    done = ran(ORPHAN, handler)
    assert done.stdout.strip() == str(said)


SIGNALLED = """
import atexit, os, signal
from rclpy.node import Node
from seq_harness.ros.process import Process

process = Process([])
node = Node('signalled')

def end(reason):
    print(reason)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) * 20:
        os.kill(os.getpid(), number)

def fire():
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) * 20:
        os.kill(os.getpid(), number)

node.create_timer(0.01, fire)
status = process.run(node, end)
node.destroy_node()
process.close()
atexit.register(os.kill, os.getpid(), signal.SIGINT)
raise SystemExit(status)
"""


def test_g64_signals_upon_signals_end_it_once_and_well() -> None:
    done = subprocess.run(
        [sys.executable, '-c', SIGNALLED],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    # The middleware may write of its neighbours' ports.
    (line,) = [line for line in done.stdout.splitlines() if 'RTPS_' not in line]
    assert line.startswith('signal: SIG')
    assert done.stderr == ''


ENDED = """
from rclpy.node import Node
from seq_harness.ros.process import Process

process = Process([])
node = Node('ended')
for _ in range(3000):
    node.create_timer(1000.0, lambda: None)
node.create_timer(0.05, lambda: process.finish('enough', 3))
raise SystemExit(process.run(node, lambda reason: None))
"""


def test_an_executor_that_is_ended_says_nothing() -> None:
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, '-c', ENDED],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert (done.returncode, done.stderr) == (3, '')

"""Consoles that nobody reads, that are gone, or that were never there (G49)."""

from __future__ import annotations

from collections.abc import Iterator
import os
from pathlib import Path
import re
import signal
import subprocess
import sys

import pytest
from sensor_msgs.msg import JointState
from support.consoles import FullPipe, OnConsole
from support.waiting import PATIENCE_S
from support.watched import JOINTS, MOVING, Rig, STILL, watched

PRINTS = """
import os, sys
from seq_harness.ros.console import Console
console = Console()
{body}
"""

FLOOD = """
def write(text):
    # A burst may be faster than the writer, for a while.
    for _ in range(1_000_000):
        try:
            return os.write(1, text)
        except BlockingIOError:
            pass
    raise TimeoutError

before = console.lost
for _ in range(100_000):
    if console.lost:
        break
    write(b'%s\\n' % (b'x' * 99))
write(b'the last line\\n')
print(f'{before} lines, then {console.lost > 0}', file=sys.stderr, flush=True)
sys.stdin.read()
"""


def script(body: str) -> list[str]:
    return [sys.executable, '-c', PRINTS.format(body=body)]


def printed(body: str) -> subprocess.CompletedProcess[str]:
    """Run a program on two pipes that are read."""
    return subprocess.run(
        script(body), capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )


def test_each_stream_gets_its_own_lines() -> None:
    done = printed(
        "os.write(1, b'out\\n'); os.write(2, b'err\\n'); print('more'); console.close()"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, 'out\nmore\n', 'err\n')


def test_streams_that_lead_to_one_place_keep_their_order() -> None:
    body = """
for number in range(500):
    os.write(1 + number % 2, b'%d\\n' % number)
console.close()
"""
    done = subprocess.run(
        script(body),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=PATIENCE_S,
        check=True,
    )
    assert done.stdout.split() == [b'%d' % number for number in range(500)]


def test_streams_are_given_back() -> None:
    done = printed("console.close(); os.write(1, b'out\\n'); sys.exit('why it ends')")
    assert (done.returncode, done.stdout, done.stderr) == (1, 'out\n', 'why it ends\n')


@pytest.mark.parametrize('end', ['os.abort()', 'os.kill(os.getpid(), 9)', 'os._exit(1)'])
def test_the_last_words_of_a_process_that_dies_are_written(end: str) -> None:
    done = printed(f"os.write(2, b'why it dies\\n'); {end}")
    assert done.returncode != 0
    assert done.stderr == 'why it dies\n'


@pytest.mark.parametrize('end', ["raise OSError('why it ends')", "sys.exit('why it ends')"])
def test_the_last_words_are_written_before_a_process_has_ended(end: str, tmp_path: Path) -> None:
    file = tmp_path / 'log'
    with file.open('wb') as log:
        process = subprocess.Popen(script(end), stdout=log, stderr=log)
        assert process.wait(PATIENCE_S) == 1
    assert file.read_text().endswith('why it ends\n')


def test_a_flood_that_nobody_reads_is_counted_and_said_where_it_is_missing() -> None:
    with (
        FullPipe() as pipe,
        subprocess.Popen(
            script(FLOOD), stdin=subprocess.PIPE, stdout=pipe.write, stderr=subprocess.PIPE
        ) as process,
    ):
        assert process.stderr is not None
        assert process.stderr.readline() == b'0 lines, then True\n'
        assert os.get_blocking(pipe.write), 'others share it'
        found = pipe.read('the last line\n', PATIENCE_S)
        process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0
    (lost,) = re.findall(r'\[console\] (\d+) lines were lost here: nobody', found)
    assert int(lost) > 0


def test_a_writer_that_stands_holds_up_nobody() -> None:
    body = """
import pathlib, signal
children = pathlib.Path(f'/proc/{os.getpid()}/task/{os.getpid()}/children')
(writer,) = map(int, children.read_text().split())
os.kill(writer, signal.SIGSTOP)
try:
    while True:
        os.write(1, b'x' * 4096)
except BlockingIOError:
    pass
os.kill(writer, signal.SIGKILL)
console.close()
"""
    subprocess.run(script(body), stdout=subprocess.DEVNULL, timeout=PATIENCE_S, check=True)


def test_closing_waits_for_no_reader() -> None:
    with FullPipe() as pipe:
        body = "os.write(1, b'line\\n'); console.close(); print('x' * 100_000)"
        with subprocess.Popen(script(body), stdout=pipe.write) as process:
            assert process.wait(PATIENCE_S) == 0


def test_a_console_that_is_gone_ends_nothing() -> None:
    reading, writing = os.pipe()
    body = """
for number in range(1000):
    os.write(1, b'line\\n')
    print('line', flush=True)
while console.lost < 2000:
    pass
console.close()
"""
    with subprocess.Popen(script(body), stdout=writing, stderr=subprocess.PIPE) as process:
        os.close(reading)
        os.close(writing)
        assert process.wait(PATIENCE_S) == 0


def test_streams_that_were_closed_stay_without_lines() -> None:
    body = """
held = open('/dev/null')
assert held.fileno() > 2
os.write(2, b'line\\n')
console.close()
"""
    done = subprocess.run(
        ['sh', '-c', '"$@" >&- 2>&- <&-', 'sh', *script(body)], timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 0


@pytest.fixture
def pipe() -> Iterator[FullPipe]:
    with FullPipe() as made:
        yield made


@pytest.fixture
def rig(tmp_path: Path, pipe: FullPipe) -> Iterator[Rig]:
    """Give a harness and a watchdog, once they run, on a pipe that is full."""
    with OnConsole(tmp_path, pipe.write) as children, watched(children, tmp_path) as made:
        yield made


def test_g49_on_a_console_that_nobody_reads_everything_works(rig: Rig, pipe: FullPipe) -> None:
    rig.watchdog()
    rig.harness()
    rig.play()
    publisher = rig.robot.create_publisher(JointState, 'joint_states', 10)
    late = JointState(name=JOINTS, position=[0.0, 0.0])
    late.header.stamp.sec = int(rig.robot.get_clock().now().nanoseconds // 10**9) + 40
    rig.until(lambda: publisher.get_subscription_count() > 0, 'the harness')
    publisher.publish(late)
    count = len(rig.robot.commands)
    rig.until(lambda: len(rig.robot.commands) > count + 20, 'velocities after a warning')
    assert STILL not in [values for _, values in rig.robot.commands[count:]]
    assert rig.call('/harness/stop') == ''
    rig.until(lambda: rig.robot.last() == STILL, 'zero')
    rig.play()
    at = rig.signal('harness', signal.SIGTERM)
    rig.zeroed_after(at)
    rig.until(lambda: rig.children.ended('harness') == 0, 'the end of the harness')
    assert os.get_blocking(pipe.write)


def test_g49_a_watchdog_on_a_console_that_nobody_reads_zeroes(rig: Rig, pipe: FullPipe) -> None:
    rig.watchdog()
    rig.harness()
    rig.play()
    at = rig.signal('harness', signal.SIGKILL)
    rig.zeroed_after(at)
    rig.until(lambda: rig.robot.since(at).count(STILL) > 20, 'more zeros')
    assert MOVING not in rig.robot.since(at)[2:]
    assert 'zero goes to /commands' in pipe.read('is called', PATIENCE_S)
    rig.signal('watchdog', signal.SIGINT)
    rig.until(lambda: rig.children.ended('watchdog') == 0, 'the end of the watchdog')


def test_lost_lines_are_among_the_figures(rig: Rig) -> None:
    rig.watchdog()
    rig.harness()
    rig.until(lambda: rig.robot.episode.get('console') == '0 lines lost', 'the figure')

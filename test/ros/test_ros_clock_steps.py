"""The system clock is set while the node plays: neither playback nor its inputs notice."""

from __future__ import annotations

from collections.abc import Iterator
import itertools
from pathlib import Path
import re
import shutil
import time

import pytest
from seq_harness.cli.children import Children
from seq_harness.ros.watcher import Watcher
from std_msgs.msg import Float64MultiArray
from support.clock_steps import SystemClock
from support.sources import ROOT
from support.waiting import wait_for

pytestmark = pytest.mark.skipif(shutil.which('cc') is None, reason='needs a C compiler')

SINE = 'seq_harness.worker.policies.sine:Sine'
ROWS = 20
"""A second of them."""


@pytest.fixture
def clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SystemClock:
    made = SystemClock(tmp_path)
    for name, value in made.environment.items():
        monkeypatch.setenv(name, value)
    return made


@pytest.fixture
def children(clock: SystemClock, tmp_path: Path) -> Iterator[Children]:
    """Start an arm, a worker and a harness whose system clock is `clock`."""
    logs = tmp_path / 'logs'
    logs.mkdir()
    with Children(logs) as made:
        made.start('sim_arm', ['sim-arm'])
        made.start('worker', ['worker', SINE, '--port', '0'])
        log, pattern = made.log('worker'), re.compile(r'on (ws://\S+)')
        wait_for(lambda: bool(pattern.search(log.read_text())), 20.0, 'the worker')
        found = pattern.search(log.read_text())
        params = ['--params-file', str(ROOT / 'config' / 'demo.yaml')]
        url = found.group(1) if found else ''
        made.start('harness', ['harness', '--ros-args', *params, '-p', f'worker_url:={url}'])
        yield made


def test_a_system_clock_that_is_set_by_5_s_either_way_moves_nothing(
    clock: SystemClock, children: Children
) -> None:
    with Watcher() as watcher:
        at: list[float] = []
        watcher.node.create_subscription(
            Float64MultiArray,
            'forward_position_controller/commands',
            lambda _: at.append(time.monotonic()),
            10,
        )

        def more(what: str) -> None:
            count = len(at)
            watcher.wait(lambda: len(at) >= count + ROWS, 10.0, what, children.check)

        watcher.wait(lambda: watcher.ready, 20.0, 'a ready harness', children.check)
        watcher.wait(lambda: not watcher.figures['missing_inputs'], 20.0, 'inputs', children.check)
        assert watcher.call('start') == ''
        more('setpoints')
        for offset_s in (5.0, 0.0, -5.0, 0.0):
            clock.set_off(offset_s)
            more(f'setpoints with the clock at {offset_s:+g} s')
            assert watcher.live, watcher.reason
        gaps = [after - before for before, after in itertools.pairwise(at)]
        assert max(gaps) < 0.5, 'no setpoint waited for the clock'
        assert watcher.figures['steps'] < 2 * len(at), 'no steps were made up'

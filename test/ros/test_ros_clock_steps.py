"""The system clock is set while the node plays: neither playback nor its inputs notice."""

from __future__ import annotations

import itertools
from pathlib import Path
import shutil

import pytest
from seq_harness.cli.children import Children
from support.clock_steps import SystemClock
from support.driving import driven

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


def test_a_system_clock_that_is_set_by_5_s_either_way_moves_nothing(
    clock: SystemClock, tmp_path: Path
) -> None:
    with Children(tmp_path) as children, driven(children, SINE) as rig:
        rig.begin()
        rig.more(ROWS)
        for offset_s in (5.0, 0.0, -5.0, 0.0):
            clock.set_off(offset_s)
            rig.more(ROWS, f'setpoints with the clock at {offset_s:+g} s')
            assert rig.watcher.live, rig.watcher.reason
        gaps = [after - before for before, after in itertools.pairwise(rig.setpoints)]
        assert max(gaps) < 2.5, 'no setpoint waited for the clock'
        assert rig.watcher.figures['steps'] < 2 * len(rig.setpoints), 'no steps were made up'
        said = children.log('harness').read_text()
        assert 'the system clock was set by +5.000 s' in said
        assert 'the system clock was set by -5.000 s' in said

"""The program of the documentation that runs two arms in one process."""

from __future__ import annotations

from collections.abc import Iterator
import json
import os
from pathlib import Path
import re
import signal
import subprocess
import sys

import pytest
from support.composing import Arm, Caller, Composition, parameters
from support.sources import ROOT
from support.waiting import wait_for

SIDES = ('left', 'right')
END_S = 20.0


@pytest.fixture
def program(composed: Composition, tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    text = (ROOT / 'docs' / 'composing.md').read_text()
    found = re.search(r'```python\n(.*?)```', text, re.DOTALL)
    assert found
    script = tmp_path / 'two_arms.py'
    script.write_text(found.group(1))
    values = {item.name: item.value for item in parameters(composed.url)}
    named = {f'/{side}/harness': {'ros__parameters': values} for side in SIDES}
    params = tmp_path / 'two_arms.yaml'
    params.write_text(json.dumps(named))
    command = [sys.executable, str(script), '--ros-args', '--params-file', str(params)]
    process = subprocess.Popen(command, env=dict(os.environ))
    yield process
    if process.poll() is None:
        process.kill()
    process.wait(END_S)


def moved(caller: Caller, side: str, arm: Arm) -> None:
    """Start an episode of one arm, and wait until it is commanded."""
    caller.until(lambda: bool(arm.episode.get('ready')), f'a ready {side} harness')
    start = f'/{side}/harness/start'
    caller.until(lambda: bool(caller.trigger(start).success), f'the start of {side}')
    caller.until(lambda: len(arm.commands) > 3, f'setpoints of {side}')


def idle(arm: Arm) -> bool:
    return arm.episode.get('state') == 'idle'


def test_it_moves_both_arms_and_stops_them_at_a_signal(
    program: subprocess.Popen[bytes], composed: Composition, caller: Caller
) -> None:
    arms = {side: composed.arm(side) for side in SIDES}
    composed.spin()
    for side, arm in arms.items():
        moved(caller, side, arm)
    program.send_signal(signal.SIGTERM)
    wait_for(lambda: program.poll() is not None, END_S, 'the end')
    assert program.returncode == 0
    caller.until(lambda: all(map(idle, arms.values())), 'the end of play')
    assert [arm.episode['reason'] for arm in arms.values()] == ['signal', 'signal']

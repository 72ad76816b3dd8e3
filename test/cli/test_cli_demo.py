"""The demo as its user runs it."""

from __future__ import annotations

import json
from pathlib import Path
import signal
import subprocess
import sys
from typing import Any

import pytest
from support.driving import patient_demo
from support.reports import parsed
from support.waiting import PATIENCE_S, wait_for

CONFIG = Path(__file__).parents[2] / 'config' / 'demo.yaml'
RECORDING = Path(__file__).parents[1] / 'bags' / 'data' / 'handguided_wristcam'


def demo(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, '-m', 'seq_harness.cli.main', 'demo', *arguments]
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        stdin=subprocess.DEVNULL,
    )


def test_the_arm_reaches_its_targets_and_every_row_is_accounted_for(tmp_path: Path) -> None:
    figures_file, page = tmp_path / 'figures.json', tmp_path / 'page.html'
    written = ('--json', str(figures_file), '--report', str(page))
    process = demo('--params-file', str(patient_demo(tmp_path)), '--seconds', '100', *written)
    out, errors = process.communicate(timeout=2 * PATIENCE_S)
    assert process.returncode == 0, errors
    assert 'setpoint lateness' in out
    assert 'late' in errors, 'plain lines where there is no terminal'
    figures: dict[str, Any] = json.loads(figures_file.read_text())
    assert figures['reason'] == 'policy:targets_reached'
    assert figures['targets_reached'] == 3
    rows = figures['rows']
    dropped = sum(rows['dropped'].values())
    assert rows['scheduled'] == rows['emitted'] + rows['merged'] + dropped + rows['held']
    seen = parsed(page.read_text())
    assert 'policy:targets_reached' in seen.text
    assert len(seen.traces('commanded')) == 6
    for part in ('queue', 'network', 'inference', 'until its first setpoint'):
        assert seen.traces(part), part
    assert len(seen.values('src')) == figures['asks']['answered'], 'a picture an act'


def test_it_fails_when_the_targets_are_not_reached(tmp_path: Path) -> None:
    process = demo('--params-file', str(patient_demo(tmp_path)), '--seconds', '1')
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1
    assert 'the targets were not reached: stop' in errors


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGHUP])
def test_signals_end_it_and_what_it_started(number: signal.Signals) -> None:
    process = demo('--params-file', str(CONFIG))
    assert process.stderr is not None
    lines: list[str] = []
    wait_for(lambda: 'step' in _next(process, lines), PATIENCE_S, 'a live line')
    for _ in range(5):
        process.send_signal(number)
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert 'Traceback' not in errors


def _next(process: subprocess.Popen[str], lines: list[str]) -> str:
    if process.stderr is not None:
        lines.append(process.stderr.readline())
    return lines[-1]


def test_a_recording_takes_the_place_of_the_arm() -> None:
    process = demo('--bag', str(RECORDING))
    out, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, errors
    assert 'ended by                          bag_ended' in out


def test_a_bag_that_is_not_there_is_named() -> None:
    process = demo('--bag', 'nowhere')
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1
    assert 'expected a recording at nowhere' in errors


@pytest.mark.parametrize('policy', ['no_such_module:Policy', 'json:Nothing'])
def test_a_policy_that_cannot_be_served_is_named(policy: str) -> None:
    process = demo('--params-file', str(CONFIG), '--policy', policy)
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1
    assert policy.partition(':')[0] in errors

"""The command replay, as people run it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from seq_harness.cli import replay
from support.recordings import joint_state, motion, MS, parameters, START_NS, write
import yaml

HOLD = 'embedded:seq_harness.worker.policies.hold:Hold?joints=0'


class Files:
    """A recording, a parameter file, and where the figures go."""

    def __init__(self, folder: Path) -> None:
        self.bag = write(folder / 'bag', motion())
        self.params = folder / 'robot.yaml'
        held = {'/**': {'ros__parameters': {'use_sim_time': True, **parameters()}}}
        self.params.write_text(yaml.safe_dump(held))
        self.json = folder / 'figures.json'

    def run(self, *more: str) -> int:
        """Run the command."""
        where = [str(self.bag), '--params-file', str(self.params), '--json', str(self.json)]
        return replay.main([*where, '--worker', HOLD, *more])

    def figures(self) -> dict[str, Any]:
        """Return what the command wrote."""
        figures: dict[str, Any] = json.loads(self.json.read_text())
        return figures


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def test_it_writes_the_hash_and_the_figures(
    files: Files, capsys: pytest.CaptureFixture[str]
) -> None:
    assert files.run() == 0
    figures = files.figures()
    assert figures['reason'] == 'bag_ended'
    assert figures['setpoints'] == {'arm': figures['rows']['emitted']}
    assert figures['hash'] in capsys.readouterr().out
    assert figures['speed_x'] > 1


def test_the_acts_of_one_run_are_charged_in_another(files: Files) -> None:
    assert files.run('--charge', '0.13') == 0
    first = files.figures()
    assert set(first['acts_s']) == {0.13}
    files.json.rename(files.json.with_name('before.json'))
    assert files.run('--charge', str(files.json.with_name('before.json'))) == 0
    assert files.figures()['hash'] == first['hash']
    assert files.run('--charge', 'none') == 0
    assert files.figures()['hash'] != first['hash']


def test_a_part_a_parameter_and_repetitions_are_chosen(
    files: Files, capsys: pytest.CaptureFixture[str]
) -> None:
    assert files.run('--from', '0.5', '--to', '1.5', '-p', 'rate_hz:=10.0', '--loop', '2') == 0
    hashes = [line for line in capsys.readouterr().out.splitlines() if line.startswith('hash')]
    assert len(hashes) == 2
    assert len(set(hashes)) == 1
    assert files.figures()['start_ns'] == START_NS + 500 * MS


def test_faults_are_told_and_refused_where_asked(
    files: Files, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    unstamped = [joint_state(START_NS + i * 10 * MS, stamp_ns=0) for i in range(100)]
    files.bag = write(tmp_path / 'unstamped', unstamped)
    assert files.run() == 0
    assert 'restamped: message 0 on /joint_states' in capsys.readouterr().err
    assert files.figures()['faults'][0]['count'] == 100
    assert files.run('--on-fault', 'refuse') == 1
    assert 'replay: restamped' in capsys.readouterr().err


def test_a_recording_without_a_needed_topic_is_no_success(files: Files) -> None:
    """However short it is beside the time that inputs may take."""
    assert files.run('--remap', 'joint_states:=elsewhere') == 1
    assert files.figures()['reason'] == 'inputs_missing: state'


def test_what_is_wrong_is_said_without_a_traceback(
    files: Files, capsys: pytest.CaptureFixture[str]
) -> None:
    assert files.run('-p', 'rate_hz:=fast') == 1
    assert files.run('--worker', 'embedded:no.module:P') == 1
    errors = capsys.readouterr().err
    assert "replay: parameter 'rate_hz' must be" in errors
    assert 'names no policy of this process' in errors
    assert 'Traceback' not in errors


@pytest.mark.parametrize(
    'wrong',
    [
        ['--charge', 'dear'],
        ['--rate', '0'],
        ['--from', '-1'],
        ['--loop', '-1'],
        ['--remap', 'a=b'],
        ['-p', 'rate_hz'],
        ['--exact', '--report', 'page.html'],
    ],
)
def test_a_wrong_argument_is_refused(files: Files, wrong: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        files.run(*wrong)
    assert ended.value.code == 2

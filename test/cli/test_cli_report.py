"""The command report, and the option of others that writes such a page."""

from __future__ import annotations

import json
import os
from pathlib import Path
import signal
import subprocess
import sys
from typing import Any

import pytest
from seq_harness.cli import main as seq_harness
from seq_harness.cli import replay, report
from support.recordings import motion, parameters, write
from support.reports import parsed
import yaml

HOLD = 'embedded:seq_harness.worker.policies.hold:Hold?joints=0'


@pytest.fixture
def bag(tmp_path: Path) -> Path:
    return write(tmp_path / 'bag', motion(1.0))


@pytest.fixture
def params(tmp_path: Path) -> Path:
    file = tmp_path / 'robot.yaml'
    file.write_text(yaml.safe_dump({'/**': {'ros__parameters': parameters()}}))
    return file


def test_it_writes_a_page_and_says_where(
    bag: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / 'page.html'
    assert report.main([str(bag), '-o', str(file)]) == 0
    assert len(parsed(file.read_text()).traces('measured')) == 2
    assert file.as_uri() in capsys.readouterr().err


def test_without_a_name_the_page_is_in_the_folder_where_one_is(
    bag: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert report.main([str(bag)]) == 0
    assert (tmp_path / 'report.html').is_file()


def test_json_is_figures_alone_and_needs_nothing_that_draws(
    bag: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    without_plotly(monkeypatch)
    assert report.main([str(bag), '--json']) == 0
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert told['figures']['length'] == {'value': 0.99, 'unit': 's'}
    assert not (tmp_path / 'report.html').exists()


def test_where_plotly_is_missing_it_says_what_to_install(
    bag: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    without_plotly(monkeypatch)
    assert seq_harness.main(['report', str(bag), '-o', str(tmp_path / 'page.html')]) == 2
    assert "pip install 'seq_harness[bags,report]'" in capsys.readouterr().err


def without_plotly(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split('.')[0] == 'plotly']:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, 'seq_harness.bags.report.page', raising=False)
    monkeypatch.setitem(sys.modules, 'plotly', None)


def test_two_runs_are_compared(bag: Path, tmp_path: Path) -> None:
    other = write(tmp_path / 'other', motion(2.0))
    file = tmp_path / 'page.html'
    assert report.main(['--compare', str(bag), str(other), '-o', str(file)]) == 0
    seen = parsed(file.read_text())
    assert 'A: bag' in seen.text
    assert 'B: other' in seen.text


def test_the_figures_of_two_runs_are_a_list(bag: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert report.main(['--compare', str(bag), str(bag), '--json']) == 0
    assert len(json.loads(capsys.readouterr().out)) == 2


def test_a_part_is_shown_with_from_and_to(bag: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert report.main([str(bag), '--from', '0.5', '--to', '0.75', '--json']) == 0
    assert json.loads(capsys.readouterr().out)['length_s'] == 0.25


@pytest.mark.parametrize('arguments', [[], ['bag', '--compare', 'a', 'b'], ['bag', '--from', 'x']])
def test_wrong_arguments_are_refused(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        report.main(arguments)
    assert refused.value.code == 2


def test_what_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert report.main([str(tmp_path / 'nowhere'), '-o', str(tmp_path / 'page.html')]) == 1
    assert 'nothing is there' in capsys.readouterr().err


def test_a_replay_writes_a_page_about_itself(bag: Path, params: Path, tmp_path: Path) -> None:
    file = tmp_path / 'replayed.html'
    options = ['--params-file', str(params), '--worker', HOLD, '--report', str(file)]
    assert replay.main([str(bag), *options]) == 0
    seen = parsed(file.read_text())
    assert 'bag_ended' in seen.text
    assert len(seen.traces('commanded')) == 2
    assert seen.traces('chunks as predicted (odd)')


def test_a_part_that_was_not_recorded_is_refused(
    bag: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert report.main([str(bag), '--from', '7', '--json']) == 1
    assert 'lasts 0.990 s: nothing lies from 7 s' in capsys.readouterr().err


def test_a_reader_that_has_enough_of_the_output_is_no_failure(bag: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, '-m', 'seq_harness.cli.main', 'report', str(bag), '--json']
    done = subprocess.run(
        command, stdout=writer, stderr=subprocess.PIPE, text=True, timeout=60, check=False
    )
    os.close(writer)
    assert done.returncode == 128 + signal.SIGPIPE
    assert done.stderr == ''

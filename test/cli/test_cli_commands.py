"""What every command has in common: its help, what it needs, and where it writes."""

from __future__ import annotations

from pathlib import Path
import re
import subprocess
import sys

import pytest
from seq_harness.cli.main import COMMANDS
from seq_harness.cli.needs import NEEDS, ROS
from support.waiting import PATIENCE_S

# Leaves out what the words name, as an installation without it does.
WITHOUT = """
import importlib.abc, sys
class Without(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.partition('.')[0] in sys.argv[1].split(','):
            raise ModuleNotFoundError(f'No module named {name!r}', name=name)
sys.meta_path.insert(0, Without())
from seq_harness.cli.main import main
sys.exit(main(sys.argv[2:]))
"""


def without(modules: str, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, '-c', WITHOUT, modules, *command],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


@pytest.mark.parametrize('name', COMMANDS)
def test_help_is_printed_for_people(name: str) -> None:
    command = [sys.executable, '-m', 'seq_harness.cli.main', name, '--help']
    shown = subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.startswith('usage: ')
    for odd in ('OnFault', '<', 'seq_harness.bags', '%('):
        assert odd not in shown.stdout.replace('<name>', '')


@pytest.mark.parametrize(
    ('modules', 'command', 'said'),
    [
        ('tqdm', ['demo'], r"'tqdm' .* source a ROS 2.*'seq_harness\[worker,sim,bags\]'"),
        ('rosbags', ['replay', 'x', '--params-file', 'y', '--worker', 'z'], r'.*\[bags\]'),
        ('aiohttp', ['worker', 'a:B'], r'.*seq_harness\[worker\]'),
        ('rclpy', ['harness'], "'rclpy' .* source a ROS 2"),
        ('rclpy', ['preflight', '--params-file', __file__], "'rclpy' .* source a ROS 2"),
        ('sensor_msgs', ['sim-arm'], r"'sensor_msgs' .* source a ROS 2.*\[sim\]"),
    ],
)
def test_what_is_not_installed_is_named_with_what_to_install(
    modules: str, command: list[str], said: str
) -> None:
    done = without(modules, *command)
    assert done.returncode == 2, done.stderr
    assert 'Traceback' not in done.stderr
    assert re.search(f'^seq-harness {command[0]}: the module {said}', done.stderr)


def test_a_module_that_a_policy_lacks_is_not_taken_for_ours() -> None:
    done = without('no_such', 'worker', 'json:no_such')
    assert 'command needs' not in done.stderr


def test_every_command_that_needs_something_is_there() -> None:
    assert set(NEEDS) <= set(COMMANDS)
    assert all(need == ROS or need.isidentifier() for needs in NEEDS.values() for need in needs)


@pytest.mark.parametrize('where', ['no_such_folder/figures.json', '.'])
@pytest.mark.parametrize(
    'command',
    [
        ['demo', '--json'],
        ['replay', 'bag', '--params-file', 'x', '--worker', 'y', '--json'],
        ['probe', 'bag', '--params-file', 'x', '--worker', 'y', '--at', '0', '--json'],
        ['probe', 'bag', '--params-file', 'x', '--worker', 'y', '--at', '0', '-o'],
    ],
)
def test_a_file_that_cannot_be_written_is_refused_before_anything_runs(
    command: list[str], where: str, tmp_path: Path
) -> None:
    words = [sys.executable, '-m', 'seq_harness.cli.main', *command, where]
    done = subprocess.run(
        words, capture_output=True, text=True, timeout=PATIENCE_S, check=False, cwd=tmp_path
    )
    assert done.returncode == 2
    assert 'expected a file' in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize('where', ['no_such_file.yaml', '.'])
@pytest.mark.parametrize('command', [['demo', '--params-file'], ['preflight', '--params-file']])
def test_a_parameter_file_that_cannot_be_read_is_refused_before_anything_runs(
    command: list[str], where: str, tmp_path: Path
) -> None:
    words = [sys.executable, '-m', 'seq_harness.cli.main', *command, where]
    done = subprocess.run(
        words, capture_output=True, text=True, timeout=PATIENCE_S, check=False, cwd=tmp_path
    )
    assert done.returncode == 2
    assert f'expected a file that can be read, got {where}' in done.stderr


@pytest.mark.parametrize('seconds', ['0', '-1', 'nan', 'soon'])
def test_a_time_that_is_none_is_refused(seconds: str, tmp_path: Path) -> None:
    file = tmp_path / 'parameters.yaml'
    file.touch()
    command = ['preflight', '--params-file', str(file), f'--seconds={seconds}']
    words = [sys.executable, '-m', 'seq_harness.cli.main', *command]
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 2
    assert 'seconds' in done.stderr

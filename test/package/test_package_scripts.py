"""The scripts run what they are given, and leave nothing of it behind."""

from __future__ import annotations

from collections.abc import Iterator
import fcntl
import os
from pathlib import Path
import re
import shutil
import signal
import subprocess
import sys

import pytest
from support.sources import ROOT

pytestmark = pytest.mark.skipif(
    not os.environ.get('SEQ_HARNESS_ENV', '').startswith(str((ROOT / '.env').resolve())),
    reason='not in an environment that scripts/env of this checkout made',
)

GUARDED = f'. {ROOT}/scripts/lib.sh; heed_interrupts; enter_environment; run_guarded "$@"'
WITHIN_S = 180.0
NAME = os.environ.get('SEQ_HARNESS_ENV', '').rpartition('/')[2]
"""Of the environment that the tests run in."""

# A parent that starts a participant in a session of its own, names its files, and goes on as told.
PARENT = """
import os, re, signal, subprocess, sys, time
child = subprocess.Popen(
    [sys.executable, '-c', sys.argv[2]], start_new_session=True, stdout=subprocess.PIPE, text=True
)
print(child.pid, child.stdout.readline().strip(), flush=True)
if sys.argv[1] == 'killed':
    os.kill(child.pid, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)
try:
    signal.pause()
except KeyboardInterrupt:
    print('interrupted', flush=True)
    sys.exit(130)
"""
PARTICIPANT = """
import re, signal, rclpy
rclpy.init(signal_handler_options=rclpy.SignalHandlerOptions.NO)
node = rclpy.create_node('participant')
maps = open('/proc/self/maps').read()
print(*set(re.findall(r'/dev/shm/fast[a-z]*_[a-z0-9]+', maps)), flush=True)
signal.pause()
"""


def _environment() -> dict[str, str]:
    """Give the environment of this process without the domain, which each script chooses."""
    return {name: value for name, value in os.environ.items() if name != 'ROS_DOMAIN_ID'}


def _env(*command: str, root: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [root / 'scripts' / 'env', *command],
        cwd='/',
        env=_environment(),
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        check=False,
    )


@pytest.fixture
def guarded(request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[str]]:
    """Run the parent under guard."""
    command = [sys.executable, '-c', PARENT, request.param, PARTICIPANT]
    with subprocess.Popen(
        ['bash', '-c', GUARDED, 'guarded', *command],
        env=_environment(),
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield process
        process.kill()


def _started(process: subprocess.Popen[str]) -> tuple[int, list[Path]]:
    """Wait until the participant is there; return its process and its files."""
    if process.stdout is None:
        raise AssertionError('the output is not piped')
    pid, *files = process.stdout.readline().split()
    # Ports below those of the first domain are shared by all of them.
    return int(pid), [Path(file) for file in files if not re.search(r'_port7[0-3]\d\d$', file)]


def _runs(pid: int) -> bool:
    """Whether a process runs; one that ended and that nobody waited for does not."""
    try:
        return not re.search(r'\) [ZX] ', Path(f'/proc/{pid}/stat').read_text())
    except (FileNotFoundError, ProcessLookupError):
        return False


def _left(files: list[Path]) -> list[Path]:
    return [file for file in files if file.exists()]


@pytest.mark.parametrize('guarded', ['killed'], indirect=True)
def test_nothing_is_left_of_what_was_killed(guarded: subprocess.Popen[str]) -> None:
    pid, files = _started(guarded)
    assert files
    assert guarded.wait(WITHIN_S) == 128 + signal.SIGKILL
    assert not _runs(pid)
    assert not _left(files)


@pytest.mark.parametrize('guarded', ['waiting'], indirect=True)
def test_ctrl_c_reaches_the_command_and_ends_all_of_it(guarded: subprocess.Popen[str]) -> None:
    pid, files = _started(guarded)
    guarded.send_signal(signal.SIGINT)
    output, _ = guarded.communicate(timeout=WITHIN_S)
    assert output == 'interrupted\n'
    assert guarded.returncode == 130
    assert not _runs(pid)
    assert not _left(files)


def test_a_command_keeps_its_arguments_and_its_status() -> None:
    code = 'import sys; print(sys.argv[1:]); sys.exit(7)'
    done = _env('python', '-c', code, 'two words', '', '*')
    assert (done.stdout, done.returncode) == ("['two words', '', '*']\n", 7)


def test_the_package_and_its_executables_are_there_from_any_folder() -> None:
    done = _env('bash', '-c', 'type -p harness worker sim_arm seq-harness; seq-harness --help')
    assert done.returncode == 0, done.stderr
    assert done.stdout.count('/install/lib/seq_harness/') == 4


def test_edits_take_effect_at_once() -> None:
    done = _env('python', '-c', 'import seq_harness as s; print(s.__file__)')
    assert Path(done.stdout.strip()).resolve() == ROOT / 'seq_harness' / '__init__.py'


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Copy what the scripts need of this checkout."""
    root = tmp_path / 'checkout'
    for name in ('scripts', 'config', 'launch', 'resource', 'seq_harness'):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns('__pycache__'))
    for path in [*ROOT.glob('setup.*'), ROOT / 'package.xml']:
        shutil.copy(path, root)
    return root


def test_two_checkouts_that_share_an_environment_have_each_its_own_package(checkout: Path) -> None:
    shared = (ROOT / '.env').resolve()
    stamp = shared / NAME / 'stamp'
    before = stamp.stat()
    (checkout / '.env').symlink_to(shared)
    found = 'type -p harness; python -c "import seq_harness as s; print(s.__file__)"'
    done = _env('bash', '-c', found, root=checkout)
    assert done.returncode == 0, done.stderr
    harness, module = map(Path, done.stdout.split())
    package = harness.parents[3]
    try:
        assert module.resolve() == checkout / 'seq_harness' / '__init__.py'
        assert shared in package.parents
        mine = _env('bash', '-c', found).stdout.split()
        assert Path(mine[1]).resolve() == ROOT / 'seq_harness' / '__init__.py'
        assert mine[0] != str(harness)
        assert (stamp.stat().st_ino, stamp.stat().st_mtime_ns) == (
            before.st_ino,
            before.st_mtime_ns,
        ), 'nobody made it anew'
    finally:
        shutil.rmtree(package)


def test_an_environment_that_is_in_use_is_not_deleted_for_another_list(checkout: Path) -> None:
    environment = checkout / '.env' / NAME
    (environment / 'bin').mkdir(parents=True)
    (environment / 'bin' / 'python').symlink_to(sys.executable)
    (environment / 'stamp').write_text(f'{checkout}\nnumpy==1.0')
    with (checkout / '.env' / f'{NAME}.use').open('w') as use:
        fcntl.flock(use, fcntl.LOCK_SH)
        done = _env('true', root=checkout)
    assert done.returncode == 1
    assert re.search('another list and in use: end what runs in it', done.stderr)
    assert (environment / 'stamp').read_text() == f'{checkout}\nnumpy==1.0'


def test_two_runs_at_once_have_two_domains() -> None:
    inner = f'env -u ROS_DOMAIN_ID {ROOT}/scripts/env printenv ROS_DOMAIN_ID'
    done = _env('bash', '-c', f'printenv ROS_DOMAIN_ID; {inner}')
    first, second = (int(line) for line in done.stdout.split())
    assert first != second
    assert 1 <= min(first, second) <= max(first, second) <= 101


def test_a_given_domain_is_kept() -> None:
    done = subprocess.run(
        [ROOT / 'scripts' / 'env', 'printenv', 'ROS_DOMAIN_ID'],
        env={**os.environ, 'ROS_DOMAIN_ID': '77'},
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        check=True,
    )
    assert done.stdout == '77\n'


@pytest.mark.parametrize('arguments', [['--distro', 'rolling'], ['--distro'], ['--distro=']])
def test_a_wrong_distribution_is_refused_with_what_is_expected(arguments: list[str]) -> None:
    done = _env(*arguments)
    assert done.returncode != 0
    assert re.search('expected .*jazzy', done.stderr)


def test_a_wrong_benchmark_is_refused_with_those_that_are_there() -> None:
    done = subprocess.run(
        [ROOT / 'scripts' / 'bench', 'no-such'],
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        check=False,
    )
    assert done.returncode == 1
    assert 'expected the name of a benchmark' in done.stderr

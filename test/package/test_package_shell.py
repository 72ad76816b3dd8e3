"""The shell scripts hold to shellcheck."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from support.sources import ROOT

SCRIPTS = [
    path.relative_to(ROOT)
    for path in sorted([*(ROOT / 'scripts').iterdir(), *(ROOT / '.ci').iterdir()])
    if path.is_file() and (path.suffix == '.sh' or path.read_bytes().startswith(b'#!'))
]


@pytest.mark.linter
@pytest.mark.skipif(shutil.which('shellcheck') is None, reason='shellcheck is not installed')
def test_shellcheck() -> None:
    checked = subprocess.run(
        ['shellcheck', '--external-sources', *map(str, SCRIPTS)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout


def test_every_script_runs_by_its_own() -> None:
    for path in SCRIPTS:
        if path.suffix != '.sh':
            assert (ROOT / path).stat().st_mode & 0o111, f'{path} is not executable'


@pytest.mark.parametrize('name', ['env', 'bench', 'test', 'pin'])
@pytest.mark.parametrize('words', [['--help'], ['-h'], ['--distro', 'kilted', '--help']])
def test_help_is_printed_without_an_environment(name: str, words: list[str]) -> None:
    shown = subprocess.run(
        [ROOT / 'scripts' / name, *words],
        env={'PATH': '/usr/bin:/bin'},
        capture_output=True,
        text=True,
        timeout=10,
        check=False,
    )
    assert shown.returncode == 0, shown.stderr
    assert f'scripts/{name}' in shown.stdout
    assert 'shellcheck' not in shown.stdout
    assert name != 'bench' or 'punctuality' in shown.stdout

"""What is installed: by pip one command, by colcon the executables that ROS 2 finds."""

from __future__ import annotations

from pathlib import Path
import shutil
import subprocess
import sys
import zipfile

import pytest
from support.sources import PACKAGE, ROOT

COPIED = ('seq_harness', 'resource', 'launch', 'config')
EXECUTABLES = {'harness', 'preflight', 'sim_arm', 'watchdog', 'worker'}


@pytest.fixture(scope='module')
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """Build a wheel from a copy of the sources, with the setuptools that is here."""
    pytest.importorskip('wheel')
    source = tmp_path_factory.mktemp('source')
    for name in COPIED:
        shutil.copytree(ROOT / name, source / name)
    for path in [*ROOT.glob('setup.*'), *ROOT.glob('package.xml'), ROOT / 'pyproject.toml']:
        shutil.copy(path, source)
    built = subprocess.run(
        [sys.executable, 'setup.py', '--quiet', 'bdist_wheel'],
        cwd=source,
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    (file,) = (source / 'dist').glob('*.whl')
    return zipfile.ZipFile(file)


def test_pip_installs_one_command(wheel: zipfile.ZipFile) -> None:
    (name,) = (name for name in wheel.namelist() if name.endswith('entry_points.txt'))
    lines = wheel.read(name).decode().split('\n')
    assert [line for line in lines if line.strip()] == [
        '[console_scripts]',
        'seq-harness = seq_harness.cli.main:main',
    ]
    assert not [name for name in wheel.namelist() if '.data/scripts/' in name]


def test_the_types_are_shipped(wheel: zipfile.ZipFile) -> None:
    assert f'{PACKAGE}/py.typed' in wheel.namelist()


def test_every_module_is_shipped(wheel: zipfile.ZipFile) -> None:
    modules = {str(path.relative_to(ROOT)) for path in (ROOT / PACKAGE).rglob('*.py')}
    assert modules == {name for name in wheel.namelist() if name.endswith('.py')} - {
        name for name in wheel.namelist() if '.data/' in name
    }


def test_launch_files_and_configuration_go_to_share(wheel: zipfile.ZipFile) -> None:
    shared = {
        str(path.relative_to(ROOT))
        for folder in ('launch', 'config')
        for path in (ROOT / folder).rglob('*')
        if path.suffix in ('.json', '.py', '.xml', '.yaml')
    }
    inside = _data(wheel, f'share/{PACKAGE}/')
    assert shared | {'package.xml'} == inside
    assert _data(wheel, 'share/ament_index/resource_index/packages/') == {PACKAGE}


def test_the_executables_run_in_whichever_environment_is_active(wheel: zipfile.ZipFile) -> None:
    assert _data(wheel, f'lib/{PACKAGE}/') == EXECUTABLES
    for name in EXECUTABLES:
        path = ROOT / 'resource' / 'executables' / name
        assert path.read_text(encoding='utf-8').startswith('#!/usr/bin/env python3\n')
        assert path.stat().st_mode & 0o111


def test_the_worker_starts_where_there_is_no_ros() -> None:
    """As if rclpy, the messages and the index were not installed."""
    code = (
        'import sys\n'
        'class Refuse:\n'
        '    def find_spec(self, name, path=None, target=None):\n'
        "        if name.split('.')[0] in ('rclpy', 'ament_index_python', 'launch') or (\n"
        "                name.split('.')[0].endswith(('_msgs', '_interfaces', '_srvs'))):\n"
        '            raise ModuleNotFoundError(name)\n'
        'sys.meta_path.insert(0, Refuse())\n'
        'from seq_harness.cli.main import main\n'
        "main(['worker', '--help'])\n"
    )
    done = subprocess.run(
        [sys.executable, '-c', code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert '--port' in done.stdout


def _data(wheel: zipfile.ZipFile, under: str) -> set[str]:
    """List the data files below a folder of the prefix."""
    marker = f'.data/data/{under}'
    return {name.split(marker, 1)[1] for name in wheel.namelist() if marker in name}


def test_the_installed_executables_are_where_ros_looks() -> None:
    index = pytest.importorskip('ament_index_python.packages')
    try:
        prefix = Path(index.get_package_prefix(PACKAGE))
    except index.PackageNotFoundError:
        pytest.skip('the package is not built: use colcon test, or scripts/test')
    installed = {path.name: path for path in (prefix / 'lib' / PACKAGE).iterdir()}
    assert set(installed) == EXECUTABLES | {'seq-harness'}
    for path in installed.values():
        assert path.stat().st_mode & 0o111

"""What importing the package does to a process: nothing that others would notice."""

from __future__ import annotations

import subprocess
import sys

import pytest
from support.domains import reserved_domain
from support.sources import module_name, PACKAGE, sources

QUIET = """
import logging, sys
root = logging.getLogger()
before = (root.level, list(root.handlers), logging.root.manager.disable)
from importlib import import_module
for name in sys.argv[1:]:
    try:
        import_module(name)
    except ModuleNotFoundError as error:
        if error.name.partition('.')[0] == 'seq_harness':
            raise
assert before == (root.level, list(root.handlers), logging.root.manager.disable)
"""

TLS = """
import ssl
from seq_harness.client import sequence
assert ssl.create_default_context().check_hostname
"""


def run(code: str, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, '-c', code, *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_g29_importing_leaves_the_logging_of_others_alone() -> None:
    modules = [module_name(path) for path in sources(PACKAGE)]
    done = run(QUIET, *(name for name in modules if not name.endswith('pytest_replay')))
    assert done.returncode == 0, done.stderr
    assert done.stderr == ''


@pytest.mark.parametrize('code', [f'import rclpy\n{TLS}', f'{TLS}\nimport rclpy'])
def test_g24_tls_and_rclpy_are_imported_in_either_order(code: str) -> None:
    done = run(code)
    assert done.returncode == 0, done.stderr


def test_g25_whoever_runs_beside_has_another_domain(ros_domain_id: int) -> None:
    with reserved_domain() as first, reserved_domain() as second:
        assert len({ros_domain_id, first, second}) == 3
        assert 0 not in (ros_domain_id, first, second)

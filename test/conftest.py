"""What every test module gets: a ROS domain of its own, and an end to what it started."""

from __future__ import annotations

from collections.abc import Iterator
import os
from pathlib import Path
import re

from _pytest.terminal import TerminalReporter
from hypothesis import settings
import pytest
from support.domains import reserved_domain
from support.processes import Leftovers

settings.register_profile('here', deadline=None)
settings.register_profile('ci', deadline=None, derandomize=True, print_blob=True)
settings.load_profile('ci' if os.environ.get('CI') else 'here')

PARTS = os.environ.pop('SEQ_HARNESS_PARTS', '')
"""How what scripts/test ran before pytest went, a line each."""

FIRST = ('ros', 'cli', 'launch', 'servers', 'package', 'client', 'worker')
"""The folders that take longest: run side by side, nobody is left alone with one at the end."""

LEFTOVERS = Leftovers(f'SEQ_HARNESS_TESTS_{os.getpid()}')


@pytest.fixture(scope='module', autouse=True)
def ros_domain_id() -> Iterator[int]:
    """Give the module, and the processes it starts, a ROS domain that nobody else has."""
    outer = os.environ.get('ROS_DOMAIN_ID')
    with reserved_domain() as domain:
        os.environ['ROS_DOMAIN_ID'] = str(domain)
        try:
            yield domain
        finally:
            _restore('ROS_DOMAIN_ID', outer)


@pytest.fixture(scope='module', autouse=True)
def nothing_left_running() -> Iterator[None]:
    """Fail the module when a process that it started outlives it, and end that process."""
    os.environ[LEFTOVERS.mark] = '1'
    try:
        yield
    finally:
        os.environ.pop(LEFTOVERS.mark, None)
        left = LEFTOVERS.end(patience_s=5.0)
    if left:
        pytest.fail('these outlived the tests that started them: ' + '; '.join(left))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes longest, and hold every name to be the same in each process."""
    for item in items:
        if re.search(r' at 0x[0-9a-f]+', item.nodeid):
            raise pytest.UsageError(
                f'expected a name without an address: give {item.nodeid} an id'
            )
    items.sort(key=_turn)


def _turn(item: pytest.Item) -> int:
    folder = item.path.relative_to(Path(__file__).parent).parts[0]
    return FIRST.index(folder) if folder in FIRST else len(FIRST)


def _restore(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    """Say what ran before pytest, so that the end of the output tells of all of it."""
    if PARTS:
        terminalreporter.section('before pytest')
        terminalreporter.write_line(PARTS.rstrip())

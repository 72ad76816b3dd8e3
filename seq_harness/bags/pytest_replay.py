"""
A pytest fixture for tests that replay recordings.

Name this module in a conftest.py: `pytest_plugins = ['seq_harness.bags.pytest_replay']`.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from seq_harness.bags.replaying import replay as replayed
from seq_harness.bags.replaying import Run


@pytest.fixture
def replay() -> Callable[..., Run]:
    """Give the function `seq_harness.bags.replay` to a test."""
    return replayed

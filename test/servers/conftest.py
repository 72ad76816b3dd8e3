"""What the tests of every policy server share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from seq_harness.client.runtime import Runtime


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """Give what is opened in a test to be closed with it."""
    with ExitStack() as opened:
        yield opened


@pytest.fixture
def runtime() -> Iterator[Runtime]:
    """Return a runtime that closes with the test."""
    with Runtime() as opened:
        yield opened

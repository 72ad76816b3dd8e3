"""What the tests with nodes in an executor of their own share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from seq_harness.cli.children import Children
from support.composing import Caller, Composition, composition


@pytest.fixture
def composed(tmp_path: Path) -> Iterator[Composition]:
    """Give an executor to put nodes into, and a worker that they may ask."""
    with Children(tmp_path) as children, composition(children) as made:
        yield made


@pytest.fixture
def caller(composed: Composition) -> Iterator[Caller]:
    """Give what calls the services of those nodes."""
    made = Caller(composed.context)
    yield made
    made.close()

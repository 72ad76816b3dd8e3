"""The demo as launch starts it: three processes that find each other, and end together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from seq_harness.ros.watcher import Watcher
from support.ports import free_port
from support.waiting import PATIENCE_S

try:
    import launch_pytest
    import launch_ros  # noqa: F401
except ModuleNotFoundError as missing:
    pytest.skip(f'needs launch and launch_ros: {missing}', allow_module_level=True)
else:
    from support.launching import Launched


@pytest.fixture
def launched() -> Launched:
    return Launched('demo.launch.py', {'port': str(free_port()), 'namespace': 'left'})


@launch_pytest.fixture
def demo(launched: Launched) -> Any:
    return launched.description()


@pytest.mark.launch(fixture=demo)
def test_the_demo_plays_in_a_namespace_and_ends_as_one(launched: Launched) -> Iterator[None]:
    def each() -> None:
        assert not launched.statuses

    with Watcher('/left/harness', '/left/sim_arm') as watcher:
        watcher.wait(lambda: watcher.ready, PATIENCE_S, 'a ready harness', each)
        assert watcher.call('start', each) == ''
        watcher.wait(lambda: bool(_emitted(watcher)), PATIENCE_S, 'a played row', each)
        assert watcher.call('stop', each) == ''
        watcher.wait(lambda: bool(watcher.reason), PATIENCE_S, 'the end of the episode', each)
    yield
    assert launched.statuses == {'sim_arm': 0, 'worker': 0, 'harness': 0}


def _emitted(watcher: Watcher) -> int:
    return int(watcher.figures.get('rows', {}).get('emitted', 0))

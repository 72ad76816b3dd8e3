"""A robot's own test, as docs/replay.md shows it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from seq_harness.bags import Run
from support.recordings import motion, parameters, write
import yaml

pytest_plugins = ['seq_harness.bags.pytest_replay']

POLICY = 'embedded:seq_harness.worker.policies.hold:Hold?joints=0'


@pytest.fixture
def bag(tmp_path: Path) -> Path:
    return write(tmp_path / 'bag', motion())


@pytest.fixture
def params(tmp_path: Path) -> Path:
    held = {'/**': {'ros__parameters': parameters()}}
    (tmp_path / 'robot.yaml').write_text(yaml.safe_dump(held))
    return tmp_path / 'robot.yaml'


def test_the_arm_stays_within_reach(replay: Callable[..., Run], bag: Path, params: Path) -> None:
    run = replay(bag, params, POLICY)
    assert run.reason == 'bag_ended'
    assert np.abs(run.setpoints['arm'].values).max() < 0.3
    assert np.abs(np.diff(run.setpoints['arm'].values, axis=0)).max() < 0.05


def test_the_document_shows_this_example() -> None:
    shown = (Path(__file__).parents[2] / 'docs' / 'replay.md').read_text()
    for line in (
        'run = replay(bag, params, POLICY)',
        "assert np.abs(np.diff(run.setpoints['arm'].values, axis=0)).max() < 0.05",
    ):
        assert line in shown

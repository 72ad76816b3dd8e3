"""A worker behind a wire gives the same replay as the same policy in this process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from seq_harness.bags import charged, replay, ReplayOptions, Run
from seq_harness.contract import Actions, Observations, Stream
from seq_harness.worker.running import served
from support.recordings import Follow, motion, parameters, write


class Windowed:
    """Reads the state of three steps, so that the stream matters, and answers their mean."""

    observations = Observations({'state': Stream(at=[-4, -2, 0])})
    actions = Actions(key='actions', hz=20.0)

    def infer(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """Answer eight rows."""
        states = [seen['state'] for seen in inputs['observations']]
        return {'actions': np.tile(np.mean(states, axis=0), (8, 1))}


class Fed:
    """Is handed every observation, and answers what the sum of all of them makes."""

    observations = Observations({'state': Stream(every=1)})
    actions = Actions(key='actions', hz=20.0)

    def __init__(self) -> None:
        self._sum = np.zeros(2)

    def episode_start(self) -> None:
        """Forget the last episode."""
        self._sum = np.zeros(2)

    def observe(self, inputs: dict[str, Any]) -> None:
        """Take an observation."""
        self._sum += inputs['state']

    def infer(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """Answer eight rows."""
        return {'actions': np.tile(0.01 * self._sum, (8, 1))}


@pytest.fixture(scope='module')
def bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp('bag') / 'motion', motion())


def _run(bag: Path, policy: Any) -> Run:
    return replay(bag, parameters(), policy, ReplayOptions(cost=charged(0.11)))


@pytest.mark.parametrize('kind', [Follow, Windowed, Fed])
def test_a_worker_far_away_changes_nothing(bag: Path, kind: type[Any]) -> None:
    with served(kind()) as url:
        runs = [_run(bag, url), _run(bag, url), _run(bag, kind())]
    assert len({run.hash for run in runs}) == 1
    assert all(run.reason == 'bag_ended' and len(run.setpoints['arm']) > 30 for run in runs)


def test_the_stream_has_gone_out_before_each_act(bag: Path) -> None:
    with served(Windowed()) as url:
        stream = _run(bag, url).figures['policy']['stream']
    assert stream['posted'] > 20
    assert (stream['dropped'], stream['full'], stream['resent']) == (0, 0, 0)

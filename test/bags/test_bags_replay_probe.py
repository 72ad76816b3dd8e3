"""One question about one instant of a recording, and what would be commanded."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from seq_harness.bags.probing import probe_at
from seq_harness.bags.records import BagError
from seq_harness.cli import probe
from seq_harness.playback.uplink import PolicyError
from support.recordings import Follow, frame, motion, MS, parameters, START_NS, write
import yaml

HOLD = 'embedded:seq_harness.worker.policies.hold:Hold?joints=0'


@pytest.fixture(scope='module')
def bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp('bag') / 'motion', motion())


def test_the_answer_goes_on_from_what_is_seen_there(bag: Path) -> None:
    policy = Follow()
    probed = probe_at(bag, parameters(), policy, 1.0)
    (seen,) = policy.seen
    times, values = probed.series()['arm']
    assert seen['state'][0] == pytest.approx(0.1 * np.sin(1.0), abs=1e-6)
    assert values[0] == pytest.approx(seen['state'], abs=1e-6)
    assert len(values) == 8
    assert np.diff(times) == pytest.approx(0.05, abs=1e-6)
    assert times[0] == pytest.approx(probed.round_trip_ns / 1e9, abs=1e-3)
    assert probed.finding == ''


def test_an_input_without_a_message_is_named(tmp_path: Path) -> None:
    late = [*motion(), frame(START_NS + 1500 * MS, 9)]
    bag = write(tmp_path / 'bag', sorted(late, key=lambda message: message[2]))
    with pytest.raises(BagError, match='has no front/compressed in its first 1 s'):
        probe_at(bag, parameters(camera=True), Follow(), 1.0)


@pytest.mark.parametrize('at_s', [-0.1, 2.5, math.nan])
def test_an_instant_that_was_not_recorded_is_refused(bag: Path, at_s: float) -> None:
    with pytest.raises(BagError, match=r'from 0 to 1\.990 s'):
        probe_at(bag, parameters(), Follow(), at_s)


def test_a_file_that_breaks_off_is_asked_about_up_to_there(bag: Path, tmp_path: Path) -> None:
    data = (bag / 'motion.mcap').read_bytes()
    (tmp_path / 'cut.mcap').write_bytes(data[: len(data) * 9 // 10])
    assert probe_at(tmp_path / 'cut.mcap', parameters(), Follow(), 0.5).commanded


def test_what_is_refused_is_said(bag: Path) -> None:
    probed = probe_at(bag, parameters(channels__arm__upper=[-0.9, -0.9]), Follow(), 1.0)
    assert probed.commanded == ()
    assert 'no row was played' in probed.finding


def test_a_failing_policy_is_told(bag: Path) -> None:
    def fail() -> None:
        raise RuntimeError('out of ideas')

    with pytest.raises(PolicyError, match='out of ideas'):
        probe_at(bag, parameters(), Follow(on_infer=fail), 1.0)


def test_the_command_prints_and_draws(bag: Path, tmp_path: Path) -> None:
    params = tmp_path / 'robot.yaml'
    params.write_text(yaml.safe_dump({'/**': {'ros__parameters': parameters()}}))
    drawing, values = tmp_path / 'probe.svg', tmp_path / 'probe.json'
    where = [str(bag), '--params-file', str(params), '--worker', HOLD, '--at', '1.0']
    assert probe.main([*where, '-o', str(drawing), '--json', str(values)]) == 0
    assert '<svg' in drawing.read_text()
    assert len(json.loads(values.read_text())['channels']['arm']['t_s']) == 16

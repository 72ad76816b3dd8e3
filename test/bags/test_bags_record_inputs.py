"""Exact records hold what is known of the inputs, beside their values."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from seq_harness.bags import FaultKind, replay, ReplayOptions
from seq_harness.bags.exact import replay_exact
from seq_harness.bags.record_reading import read_record
from support.recordings import (
    Follow,
    frame,
    joint_state,
    motion,
    MS,
    parameters,
    S,
    START_NS,
    write,
)


class Away(Follow):
    """Leads away from the state, whatever the arm does."""

    def infer(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """Answer rows that go on by 0.1 rad a second from the first."""
        super().infer(inputs)
        rows = 0.04 * len(self.seen) + 0.005 * np.arange(8)
        return {'actions': np.stack([rows, rows], axis=1).astype(np.float32)}


def test_a_frozen_state_is_found_in_what_a_record_holds_of_the_inputs(tmp_path: Path) -> None:
    """A replay notes it and goes on; were the same readings those of a robot, it would end."""
    still = [joint_state(START_NS + at * 10 * MS, position=[0.1, 0.1]) for at in range(400)]
    bag = write(tmp_path / 'frozen', still)
    options = ReplayOptions(record=tmp_path / 'run.mcap')
    run = replay(bag, parameters(), Away(), options)
    assert [fault.kind for fault in run.faults] == [FaultKind.FROZEN_STATE]
    record = read_record(tmp_path / 'run.mcap')
    exact = replay_exact(record)
    assert (exact.difference, exact.reason) == (None, run.reason)
    live = replay_exact(replace(record, begin=replace(record.begin, playback_clock='steady')))
    assert live.difference is not None
    found = next(each.first.log_ns for each in run.faults)
    ended = next(each for each in record.rounds if each.number == live.difference.round)
    assert ended.clock_ns[0] == found


def test_what_was_wrong_with_the_stamps_of_an_input_is_told_by_a_replay_too(
    tmp_path: Path,
) -> None:
    hung = [joint_state(START_NS + at * 10 * MS, stamp_ns=START_NS) for at in range(200)]
    options = ReplayOptions(record=tmp_path / 'run.mcap')
    run = replay(write(tmp_path / 'hung', hung), parameters(), Follow(), options)
    assert run.reason.startswith('stale_input: state (the header stamp has been the same')
    exact = replay_exact(tmp_path / 'run.mcap')
    assert (exact.difference, exact.reason) == (None, run.reason)


def test_a_camera_that_changes_its_size_in_play_ends_by_its_name(tmp_path: Path) -> None:
    later = [frame(START_NS + S + at * 50 * MS, at, size=(32, 48)) for at in range(10)]
    both = sorted([*motion(2.0), *motion(1.0, camera_hz=20), *later], key=lambda item: item[2])
    options = ReplayOptions(record=tmp_path / 'run.mcap')
    run = replay(write(tmp_path / 'bag', both), parameters(camera=True), Follow(), options)
    assert run.reason == (
        'input_changed: front began with frames of jpeg 64x48, and now sends jpeg 32x48: have '
        'its camera keep one, and start again'
    )
    exact = replay_exact(tmp_path / 'run.mcap')
    assert (exact.difference, exact.reason) == (None, run.reason)

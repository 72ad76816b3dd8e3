"""Deltas of the observation, made absolute below the player."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from seq_harness.playback.absolute import AbsoluteDeltas
from seq_harness.playback.chunk import Chunk, ChunkRefused
from seq_harness.playback.kinds import Position
from seq_harness.playback.uplink import Step


def layer(state: Any) -> AbsoluteDeltas:
    return AbsoluteDeltas({'arm': Position()}, lambda observation: state)


def test_r22_every_row_is_added_to_the_state_that_was_sent() -> None:
    rows = [{'arm': np.array([value]), 'grip': np.array([1.0])} for value in (0.1, 0.2)]
    policy = layer({'arm': np.array([5.0])}).wrap_infer(
        lambda step, plan=None: Chunk.at_rate(rows, 10)
    )
    chunk = policy(Step(0, 0, {}))
    assert [row.commands['arm'][0] for row in chunk.rows] == [5.1, 5.2]
    assert [row.commands['grip'][0] for row in chunk.rows] == [1, 1]


def test_nothing_new_stays_nothing() -> None:
    policy = layer({'arm': np.zeros(1)}).wrap_infer(lambda step, plan=None: None)
    assert policy(Step(0, 0, {})) is None


def test_a_channel_without_a_state_is_refused() -> None:
    chunk = Chunk.at_rate([{'arm': np.zeros(1)}], 10)
    with pytest.raises(ChunkRefused, match=r"\['arm'\] carry deltas of the observation"):
        layer({}).applied(chunk, {})


def test_a_row_of_another_width_than_the_state_is_refused() -> None:
    chunk = Chunk.at_rate([{'arm': np.zeros(3)}], 10)
    with pytest.raises(ChunkRefused, match="channel 'arm'"):
        layer({'arm': np.zeros(2)}).applied(chunk, {})

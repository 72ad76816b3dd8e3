"""What the player does about a chunk that its guard refuses."""

from __future__ import annotations

from collections.abc import Sequence
import re
from typing import Any

import numpy as np
import pytest
from seq_harness.playback.asking import Drain, Lead
from seq_harness.playback.blending import VelocitySeam
from seq_harness.playback.chunk import Chunk
from seq_harness.playback.guard import Guard, Limits
from seq_harness.playback.handoff import ArriveAtStart, Continue
from seq_harness.playback.player import ChunkPlayer
from seq_harness.playback.session import FLOOR_NS
from support.uplinks import HandUplink, MS, rows, S

SEEN = {'state': 1}

LIMITS = Limits(
    joints=('a', 'b'),
    lower=np.array([-1.0, -1.0]),
    upper=np.array([1.0, 1.0]),
    max_velocity=np.array([1.0, 1.0]),
    max_start_distance=np.array([0.2, 0.2]),
)


def guarded(uplink: HandUplink, measured: Sequence[float] = (0.0, 0.0)) -> ChunkPlayer:
    return ChunkPlayer(
        uplink,
        asking=Drain(),
        handoff=ArriveAtStart(),
        guard=Guard({'arm': LIMITS}, period_ns=100 * MS),
        measured=lambda observation: {'arm': np.array(measured)},
    )


@pytest.mark.parametrize(
    ('values', 'reason'),
    [
        ([[0.0, 0.0], [0.0, np.nan]], r'row 1 \(from 0\): b is nan, not finite'),
        ([[0.0, 0.0], [0.05, 0.0], [0.2, 0.0]], r'row 2 \(from 0\): a makes a step of 0.15, bey'),
        ([[0.3, 0.0]], r'row 0 \(from 0\): a makes a distance from the measured state of 0.3, '),
        ([[0.0, -1.1]], r'row 0 \(from 0\): b is -1.1, outside \[-1, 1\]'),
        ([[0.0, 0.0, 0.0]], r'row 0 \(from 0\) has \(3,\) values; 2 were expected'),
    ],
)
def test_g4_a_chunk_with_one_bad_row_is_refused_whole(values: Any, reason: str) -> None:
    bad = Chunk.at_rate(rows(*(np.array(row) for row in values)), 10)
    player = guarded(HandUplink([bad, bad, bad]))
    t, sent = 0, []
    while player.finished is None:
        commands, t = player(SEEN, t)
        sent.append(commands)
    assert sent == [{}] * len(sent)
    assert re.search(reason, player.finished)


def test_a_first_row_after_a_wait_moves_no_further_than_one_row_may() -> None:
    uplink = HandUplink([Chunk.at_rate(rows(np.zeros(2)), 10)])
    player = guarded(uplink)
    player(SEEN, 0)
    player(SEEN, 100 * MS)
    uplink.answers[1].give(Chunk.at_rate(rows(np.array([0.12, 0.0])), 10))
    assert player(SEEN, 10 * S)[0] == {}
    assert player.statistics.refused == {'step': 1}
    assert 'a step of 0.12, beyond 0.1' in player.statistics.last_refusal


def test_after_a_cancel_the_first_row_is_bounded_from_the_measured_state() -> None:
    far = [0.9, 0.0]
    uplink = HandUplink([Chunk.at_rate(rows(np.zeros(2)), 10)])
    place = [0.0, 0.0]
    player = ChunkPlayer(
        uplink,
        asking=Drain(),
        handoff=ArriveAtStart(),
        guard=Guard({'arm': LIMITS}, period_ns=100 * MS),
        measured=lambda observation: {'arm': np.array(place)},
    )
    player(SEEN, 0)
    player.cancel()
    place[:] = far
    uplink.inline.append(Chunk.at_rate(rows(np.array(far)), 10))
    t = 1 * S
    commands, resume = player(SEEN, t)
    assert list(commands['arm']) == far
    assert resume >= t + FLOOR_NS


def test_g7_a_chunk_of_another_width_is_refused_before_it_meets_the_plan() -> None:
    uplink = HandUplink([Chunk.at_rate(rows(*[np.zeros(2)] * 5), 10)])
    player = ChunkPlayer(
        uplink,
        asking=Lead(cap_ns=S, margin_ns=0, fixed_ns=400 * MS),
        handoff=Continue(VelocitySeam(3)),
        guard=Guard({'arm': LIMITS}, period_ns=100 * MS),
        measured=lambda observation: {'arm': np.zeros(2)},
    )
    player(SEEN, 0)
    player(SEEN, 100 * MS)
    uplink.answers[1].give(Chunk.at_rate(rows(*[np.zeros(3)] * 5), 10))
    assert player(SEEN, 200 * MS)[0]['arm'].shape == (2,)
    assert player.statistics.refused == {'width': 1}


def test_a_chunk_is_not_refused_for_what_its_seam_makes_of_it() -> None:
    uplink = HandUplink([Chunk.at_rate(rows(*[np.zeros(2)] * 5), 10)])
    player = ChunkPlayer(
        uplink,
        asking=Lead(cap_ns=S, margin_ns=0, fixed_ns=400 * MS),
        handoff=Continue(VelocitySeam(4)),
        guard=Guard({'arm': LIMITS}, period_ns=100 * MS),
        measured=lambda observation: {'arm': np.zeros(2)},
    )
    player(SEEN, 0)
    player(SEEN, 100 * MS)
    # From rest at full speed: a seam starts slower, and would have to catch up faster than that.
    fastest = [np.array([0.1 * i, 0.0]) for i in range(9)]
    uplink.answers[1].give(Chunk.at_rate(rows(*fastest), 10))
    sent = [player(SEEN, t * 100 * MS)[0]['arm'][0] for t in range(2, 6)]
    assert sent == pytest.approx([0.1, 0.2, 0.3, 0.4])
    assert not player.statistics.refused
    assert player.statistics.cut == 1

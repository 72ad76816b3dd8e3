"""Manual commands pass the guard of the rows."""

from __future__ import annotations

import numpy as np
import pytest
from seq_harness.playback.by_hand import ByHand
from seq_harness.playback.chunk import ChunkRefused
from seq_harness.playback.guard import Guard, Limits
from seq_harness.playback.session import Commands
from support.uplinks import MS, S

ONE = np.ones(1)
LIMITS = Limits(('j',), -ONE, ONE, ONE, 0.2 * ONE)


def by_hand(place: list[float]) -> ByHand:
    guard = Guard({'arm': LIMITS}, period_ns=100 * MS)
    return ByHand(guard, lambda observation: {'arm': np.array(place)}, 100 * MS)


def to(value: float) -> Commands:
    return {'arm': np.array([value])}


def test_g61_r50_the_first_command_is_bounded_from_the_measured_state() -> None:
    with pytest.raises(ChunkRefused, match=r'measured state of 0\.3, beyond 0\.2'):
        by_hand([0.5]).check(to(0.8), {}, 0)
    assert by_hand([0.5]).check(to(0.6), {}, 0)['arm'].tolist() == [0.6]


def test_r50_the_next_ones_move_no_further_than_one_row_may() -> None:
    hand = by_hand([0.0])
    hand.check(to(0.0), {}, 0)
    hand.check(to(0.1), {}, 100 * MS)
    with pytest.raises(ChunkRefused, match=r'a step of 0\.2, beyond 0\.1'):
        hand.check(to(0.3), {}, 300 * MS)


def test_r50_a_refused_command_is_not_where_the_robot_is() -> None:
    hand = by_hand([0.0])
    hand.check(to(0.0), {}, 0)
    for value in (0.5, 0.15):
        with pytest.raises(ChunkRefused):
            hand.check(to(value), {}, 100 * MS)


def test_r50_after_a_while_and_after_a_reset_the_measured_state_counts_again() -> None:
    place = [0.0]
    hand = by_hand(place)
    hand.check(to(0.0), {}, 0)
    place[0] = 0.9
    hand.check(to(0.9), {}, 1 * S)
    place[0] = 0.0
    hand.reset()
    hand.check(to(0.0), {}, 1 * S + 10 * MS)


def test_r50_no_command_passes_the_limits() -> None:
    with pytest.raises(ChunkRefused, match=r'outside \[-1, 1\]'):
        by_hand([1.0]).check(to(1.1), {}, 0)
    with pytest.raises(ChunkRefused, match="'base'"):
        by_hand([1.0]).check({'base': ONE}, {}, 0)

"""What goes out of rows that are due already: late rounds, seams and ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from seq_harness.playback.asking import Drain, Every, Lead
from seq_harness.playback.chunk import Chunk, ChunkRefused
from seq_harness.playback.guard import Emitted, Guard, GuardPolicy, Limits, OnBreach
from seq_harness.playback.handoff import Append, ArriveAtStart, Continue
from seq_harness.playback.kinds import Delta, Kind, kind_named, Kinds, Velocity
from seq_harness.playback.modes import Mode, parts_of
from seq_harness.playback.plan import Waypoint
from seq_harness.playback.player import ChunkPlayer
from seq_harness.playback.session import FLOOR_NS
from seq_harness.playback.upsampling import Interpolation, RowMeans, Upsampling
from support.uplinks import HandUplink, MS, rows, S

SEEN = {'state': 1}
PERIOD = 100 * MS
FASTEST = 1.0
ROW = FASTEST * 0.1
"""As far as one row may move."""

LAST = {'arm': Emitted(np.zeros(1), 0)}


def limits(joints: int = 1) -> Limits:
    return Limits(
        joints=tuple('abcdefg'[:joints]),
        lower=np.full(joints, -9.0),
        upper=np.full(joints, 9.0),
        max_velocity=np.full(joints, FASTEST),
        max_start_distance=np.full(joints, 9.0),
    )


def guarded(
    uplink: HandUplink, kind: Kind | None = None, policy: GuardPolicy | None = None, **parts: Any
) -> ChunkPlayer:
    kinds = Kinds({'arm': kind or kind_named('position')})
    return ChunkPlayer(
        uplink,
        **{'asking': Drain(), 'handoff': ArriveAtStart(), **parts},
        kinds=kinds,
        guard=Guard({'arm': limits()}, PERIOD, kinds, policy),
        measured=lambda observation: {'arm': np.zeros(1)},
    )


def ramp(count: int, step: float = ROW) -> Chunk:
    return Chunk.at_rate(rows(*(np.array([step * i]) for i in range(count))), 10)


def commanded(player: ChunkPlayer, instants: Sequence[int]) -> list[float]:
    sent = (player(SEEN, t * MS)[0].get('arm') for t in instants)
    return [round(float(value[0]), 6) for value in sent if value is not None]


@pytest.mark.parametrize('late_ms', [150, 190, 250, 350, 490])
def test_a_late_row_makes_up_for_one_and_a_half_rows_however_late(late_ms: int) -> None:
    player = guarded(HandUplink([ramp(10)]))
    sent = commanded(player, [0, late_ms])
    merged = late_ms // 100
    assert sent == pytest.approx([0.0, min(merged, 1.5) * ROW])
    assert player.statistics.guarded == ({'late: clamp': 1} if merged > 1 else {})
    assert player.finished is None


@pytest.mark.parametrize('policy', list(OnBreach))
def test_what_a_late_row_left_is_caught_up_with_within_the_guard(policy: OnBreach) -> None:
    slow = [0.0, 0.1, 0.2, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55]
    chunk = Chunk.at_rate(rows(*(np.array([value]) for value in slow)), 10)
    player = guarded(HandUplink([chunk]), policy=GuardPolicy(step=policy))
    sent = commanded(player, [0, 350, 400, 500, 600, 700, 800])
    assert sent == pytest.approx([0.0, 0.15, 0.25, 0.35, 0.45, 0.5, 0.55])
    assert np.diff(sent[1:]).max() <= ROW + 1e-9
    assert player.statistics.guarded == {'late: clamp': 3}


def test_a_row_on_time_that_breaks_its_step_is_still_refused_by_the_guard() -> None:
    guard = Guard({'arm': limits()}, PERIOD)
    with pytest.raises(ChunkRefused, match=r'a makes a step of 0.2, beyond 0.15'):
        guard.check_emission(Waypoint(S, {'arm': np.array([0.2])}), LAST)
    assert guard.changed == {}


def test_deltas_that_a_late_row_could_not_make_are_made_by_the_rows_after_it() -> None:
    deltas = [0.1, 0.1, 0.1, 0.1, 0.02, 0.02, 0.02, 0.02, 0.02, 0.02]
    chunk = Chunk.at_rate(rows(*(np.array([value]) for value in deltas)), 10)
    player = guarded(HandUplink([chunk]), Delta())
    sent = commanded(player, [0, 350, 400, 500, 600, 700, 800, 900])
    assert sent[:2] == pytest.approx([0.1, 0.15])
    assert max(sent[2:]) <= ROW + 1e-9
    assert sum(sent) == pytest.approx(sum(deltas))


def test_what_was_left_is_forgotten_with_the_plan() -> None:
    uplink = HandUplink([Chunk.at_rate(rows(*[np.array([0.1])] * 9), 10)])
    player = guarded(uplink, Delta())
    player(SEEN, 0)
    player(SEEN, 350 * MS)
    player.cancel()
    uplink.inline.append(Chunk.at_rate(rows(np.array([0.01])), 10))
    assert commanded(player, [400]) == [0.01]


def test_rows_further_apart_than_a_period_may_move_as_far_as_they_say() -> None:
    apart = [{'timestamp': 0.5 * i, 'arm': np.array([0.45 * i])} for i in range(4)]
    player = guarded(HandUplink([Chunk.stamped(apart, 2)]))
    assert commanded(player, [0, 500, 1000]) == pytest.approx([0.0, 0.45, 0.9])
    assert player.statistics.guarded == {}


def test_what_follows_a_late_message_at_once_adds_nothing_to_its_step() -> None:
    uplink = HandUplink([ramp(3), Chunk.at_rate(rows(*(np.array([v]) for v in (0.2, 0.3))), 10)])
    player = guarded(uplink)
    commanded(player, [0])
    late, resume = player(SEEN, 330 * MS)
    assert late['arm'][0] == pytest.approx(1.5 * ROW)
    assert resume == 330 * MS + FLOOR_NS
    at_once, _ = player(SEEN, resume)
    assert at_once['arm'][0] == pytest.approx(1.5 * ROW)
    assert commanded(player, [430]) == pytest.approx([2.5 * ROW])


def test_what_is_late_is_not_said_to_be_ready_beforehand() -> None:
    player = guarded(HandUplink([ramp(10)]))
    player(SEEN, 0)
    assert player.upcoming(100 * MS) is not None
    player(SEEN, 350 * MS)
    assert player.upcoming(400 * MS) is None, 'it is behind, so that the row goes out otherwise'


def test_r23_a_row_of_an_inline_answer_is_not_slept_past_to_the_end() -> None:
    uplink = HandUplink([Chunk.at_rate(rows(1, 2), 10), Chunk.at_rate(rows(7, 8, 9), 10)])
    player = ChunkPlayer(uplink, asking=Drain(), handoff=ArriveAtStart())
    player(SEEN, 0)
    # Late past the end: the old row goes out, and the answer is read in the asking round.
    assert player(SEEN, 230 * MS) == ({'arm': 2}, 230 * MS + FLOOR_NS)
    assert player(SEEN, 231 * MS) == ({'arm': 7}, 330 * MS)


def test_r29_append_never_mixes_two_plans_in_one_message() -> None:
    old = Chunk.at_rate([{'arm': 1, 'grip': 1}, {'arm': 2, 'grip': 2}], 10)
    uplink = HandUplink([old, Chunk.at_rate(rows(7, 8), 10)])
    player = ChunkPlayer(uplink, asking=Every(1), handoff=Append())
    player(SEEN, 0)
    player(SEEN, 10 * MS)
    assert (len(uplink.asks), player.held) == (2, 3)
    assert player(SEEN, 250 * MS) == ({'arm': 2, 'grip': 2}, 250 * MS + FLOOR_NS)
    assert player.last_sampled_ns == 0
    assert player(SEEN, 251 * MS)[0] == {'arm': 7}
    assert player.last_sampled_ns == 10 * MS


@pytest.mark.parametrize('how', list(Interpolation))
def test_r29_appended_rows_keep_what_only_the_old_plan_names_silent(how: Interpolation) -> None:
    old = [{'arm': np.array([1.0]), 'grip': np.array([1.0])}] * 2
    uplink = HandUplink([Chunk.at_rate(old, 10), Chunk.at_rate(rows(*[np.ones(1)] * 2), 10)])
    player = ChunkPlayer(
        uplink,
        asking=Lead(cap_ns=S, margin_ns=0, fixed_ns=150 * MS),
        handoff=Append(),
        upsampling=Upsampling(25 * MS, how, RowMeans.REACHED_AT),
    )
    named = {t: set(player(SEEN, t * MS)[0]) for t in range(0, 400, 25)}
    assert all(channels == {'arm', 'grip'} for t, channels in named.items() if t < 200)
    assert all(channels == {'arm'} for t, channels in named.items() if t >= 200)


def test_r14_lead_with_arrival_anchors_at_the_end_of_the_plan_however_late_it_is_read() -> None:
    uplink = HandUplink([Chunk.at_rate(rows(1, 2, 3), 10)])
    player = ChunkPlayer(
        uplink,
        **parts_of(Mode(lead_ns=150 * MS, handoff='arrival', output_period_ns=None), PERIOD),
    )
    player(SEEN, 0)
    player(SEEN, 150 * MS)
    uplink.answers[-1].give(Chunk.at_rate(rows(7, 8), 10))
    assert player(SEEN, 160 * MS)[0] == {}
    # Late past the last row and the end: none is lost, and the new rows stand where they would.
    assert player(SEEN, 330 * MS) == ({'arm': 3}, 330 * MS + FLOOR_NS)
    assert player(SEEN, 331 * MS)[0] == {'arm': 7}
    assert player.last_due_ns == 300 * MS
    assert player(SEEN, 400 * MS)[0] == {'arm': 8}
    assert player.statistics.dropped == {}


def test_r14_lead_with_arrival_anchors_a_late_answer_where_it_is_read() -> None:
    uplink = HandUplink([Chunk.at_rate(rows(1, 2), 10)])
    lead = Lead(cap_ns=S, margin_ns=0, fixed_ns=50 * MS)
    player = ChunkPlayer(uplink, asking=lead, handoff=ArriveAtStart(waits=True))
    for t in (0, 100, 150, 200):
        player(SEEN, t * MS)
    uplink.answers[-1].give(Chunk.at_rate(rows(7, 8), 10))
    assert player(SEEN, 260 * MS) == ({'arm': 7}, 360 * MS)


def test_a_rate_whose_plan_ended_meanwhile_goes_to_zero_in_the_late_round() -> None:
    uplink = HandUplink([Chunk.at_rate(rows(*[np.array([0.5])] * 2), 10)])
    player = ChunkPlayer(
        uplink, asking=Drain(), handoff=ArriveAtStart(), kinds=Kinds({'arm': Velocity()})
    )
    assert commanded(player, [0, 250]) == [0.5, 0.0]


@pytest.mark.parametrize('bad', [np.inf, -np.inf, np.nan])
def test_g4_a_row_that_has_passed_and_is_not_finite_refuses_the_chunk(bad: float) -> None:
    uplink = HandUplink([ramp(6, 0.0)])
    lead = Lead(cap_ns=S, margin_ns=0, fixed_ns=400 * MS)
    player = guarded(uplink, asking=lead, handoff=Continue())
    commanded(player, [0, 100, 200, 300])
    values = [0.0, bad, 0.0, 0.0, 0.0, 0.0]
    uplink.answers[-1].give(Chunk.at_rate(rows(*(np.array([v]) for v in values)), 10))
    assert commanded(player, [400, 500]) == [0.0, 0.0]
    assert player.statistics.refused == {'not_finite': 1}
    assert 'row 1 (from 0): a is' in player.statistics.last_refusal


HELD = Upsampling(20 * MS, Interpolation.HOLD, RowMeans.REACHED_AT)


def test_a_held_values_step_is_measured_from_when_it_last_changed() -> None:
    player = guarded(HandUplink([ramp(5, 0.9 * ROW)]), upsampling=HELD)
    sent = commanded(player, range(0, 500, 20))
    assert player.statistics.refused == {}
    assert sent == pytest.approx([0.09 * (t // 100) for t in range(0, 500, 20)])


def test_a_held_value_that_repeats_earns_no_longer_step() -> None:
    still = [0.0] * 8 + [1.5 * ROW]
    chunk = Chunk.at_rate(rows(*(np.array([value]) for value in still)), 10)
    player = guarded(HandUplink([chunk]), upsampling=HELD)
    player(SEEN, 0)
    assert player.statistics.refused == {'step': 1}


def test_a_held_value_leads_on_over_a_join() -> None:
    uplink = HandUplink([ramp(6, 0.9 * ROW)])
    lead = Lead(cap_ns=S, margin_ns=0, fixed_ns=400 * MS)
    player = guarded(uplink, asking=lead, handoff=Continue(), upsampling=HELD)
    commanded(player, range(0, 280, 20))
    going_on = [0.09 * (2 + i) for i in range(6)]
    uplink.answers[-1].give(Chunk.at_rate(rows(*(np.array([v]) for v in going_on)), 10))
    sent = commanded(player, range(280, 500, 20))
    assert player.statistics.refused == {}
    assert sent == pytest.approx([0.09 * (t // 100) for t in range(280, 500, 20)])


def test_a_late_round_of_held_values_makes_up_for_as_little() -> None:
    player = guarded(HandUplink([ramp(9)]), upsampling=HELD)
    sent = commanded(player, [0, 340, 360, 400, 420, 500])
    assert sent[1] == pytest.approx(1.5 * ROW)
    assert np.diff(sent[1:]).max() <= ROW + 1e-9


def test_a_malformed_late_row_is_never_cut_to_something() -> None:
    guard = Guard({'arm': limits()}, PERIOD)
    with pytest.raises(ChunkRefused, match='not finite'):
        guard.check_emission(Waypoint(S, {'arm': np.array([np.nan])}), LAST, late=True)

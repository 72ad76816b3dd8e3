"""What playback does at its edges, each named after what it would be without."""

from __future__ import annotations

import numpy as np
import pytest
from seq_harness.playback.anchors import Arrived, AtObservation, AtRowsEmitted
from seq_harness.playback.asking import Drain, Lead
from seq_harness.playback.blending import FadeWhenLate
from seq_harness.playback.chunk import Chunk, ChunkRefused
from seq_harness.playback.guard import Emitted, Guard, Limits
from seq_harness.playback.handoff import ArriveAtStart, Continue, Replace
from seq_harness.playback.horizon import Horizon
from seq_harness.playback.kinds import Angle, kind_named, Kinds, Quaternion
from seq_harness.playback.plan import Plan
from seq_harness.playback.player import ChunkPlayer
from seq_harness.playback.record import Record
from seq_harness.playback.session import POLL_NS
from seq_harness.playback.shadow import ShadowGuard
from seq_harness.playback.uplink import PolicyError
from seq_harness.playback.upsampling import Interpolation, RowMeans, Upsampling
from support.uplinks import HandUplink, MS, rows, S

SEEN = {'state': 1}


def draining(uplink: HandUplink) -> ChunkPlayer:
    return ChunkPlayer(uplink, asking=Drain(), handoff=ArriveAtStart())


def leading() -> Lead:
    return Lead(cap_ns=1 * S, margin_ns=0, fixed_ns=250 * MS)


def test_r21_what_was_merged_is_as_late_as_its_newest_row() -> None:
    uplink = HandUplink([Chunk.at_rate(rows(1, 2, 3), 10)])
    player = draining(uplink)
    player(SEEN, 0)
    assert player(SEEN, 250 * MS)[0] == {'arm': 3}
    assert player.last_due_ns == 200 * MS


def test_r14_a_starved_policy_that_chunks_in_real_time_goes_on_behind_what_was_consumed() -> None:
    old = Plan.anchored(Chunk.at_rate(rows(1, 2, 3), 10), 0, 0, 0)
    old.pop_due(300 * MS)
    arrived = Arrived(Chunk.at_rate(rows(4, 5, 6, 7), 10), 400 * MS, 100 * MS, 2, Record())
    plan = AtRowsEmitted().place(old, arrived)
    assert plan is not None
    assert [row.commands['arm'] for row in plan.waiting()] == [6, 7]
    assert plan.next_row_ns == 400 * MS


def test_a_measured_lead_never_exceeds_its_cap() -> None:
    lead = Lead(cap_ns=1 * S, margin_ns=1)
    lead.answered(1)
    lead.answered(5 * S)
    assert lead.lead_ns() == 1 * S


def test_r2_at_the_end_of_a_plan_the_next_call_is_later() -> None:
    player = draining(HandUplink([Chunk.at_rate(rows(1), 10)]))
    player(SEEN, 0)
    assert player(SEEN, 100 * MS)[1] > 100 * MS


def test_r13_rows_end_the_back_off_of_the_answers_before_them() -> None:
    empty = Chunk((), 0)
    player = draining(HandUplink([empty, empty, Chunk.at_rate(rows(1), 10), empty]))
    t = 0
    for _ in range(3):
        commands, t = player(SEEN, t)
    assert commands == {'arm': 1}
    assert player(SEEN, t) == ({}, t + POLL_NS)


def test_r13_an_empty_answer_drops_what_plays_and_starves_from_then_on() -> None:
    uplink = HandUplink([Chunk.at_rate(rows(1, 2, 3), 10)])
    player = ChunkPlayer(uplink, asking=leading(), handoff=Continue())
    player(SEEN, 0)
    player(SEEN, 50 * MS)
    uplink.answers[-1].give(Chunk((), 0))
    assert player(SEEN, 60 * MS)[0] == {}
    assert player.held == 0
    assert player.statistics.dropped == {'emptied': 2}
    player(SEEN, 60 * MS + POLL_NS)
    uplink.answers[-1].give(Chunk.at_rate(rows(4), 10))
    assert player(SEEN, 260 * MS)[0] == {'arm': 4}
    assert player.statistics.starved_ns == 200 * MS


def test_r34_a_failure_that_is_raised_is_counted() -> None:
    uplink = HandUplink()
    player = draining(uplink)
    player(SEEN, 0)
    uplink.answers[0].fail(PolicyError('no'))
    with pytest.raises(PolicyError):
        player(SEEN, 10 * MS)
    assert (player.statistics.asked, player.statistics.failed) == (1, 1)


def test_chunks_wholly_past_that_do_not_follow_each_other_end_nothing() -> None:
    uplink = HandUplink()
    player = ChunkPlayer(uplink, asking=Drain(), handoff=Replace(AtObservation()))
    t = 0
    for delay in (2 * S, 2 * S, 0, 2 * S, 2 * S, 0):
        player(SEEN, t)
        assert not uplink.answers[-1].done()
        uplink.answers[-1].give(Chunk.at_rate(rows(1, 2), 10))
        player(SEEN, t + delay)
        t += delay + 1 * S
    assert player.finished is None
    assert player.statistics.chunks == 2


def test_an_answer_that_waits_for_the_end_plays_behind_the_last_row() -> None:
    uplink = HandUplink([Chunk.at_rate(rows(1, 2, 3), 10)])
    player = ChunkPlayer(uplink, asking=leading(), handoff=ArriveAtStart(waits=True))
    player(SEEN, 0)
    player(SEEN, 50 * MS)
    uplink.answers[-1].give(Chunk.at_rate(rows(7), 10))
    sent = [player(SEEN, t * MS)[0].get('arm') for t in (100, 200, 300)]
    assert sent == [2, 3, 7]


@pytest.mark.parametrize(('expected_rows', 'first'), [(1, 1.5), (2, 3.0), (None, 3.0)])
def test_a_late_answer_is_faded_into_and_no_other(expected_rows: int | None, first: float) -> None:
    old = Plan.anchored(Chunk.at_rate(rows(*[0.0] * 5), 10), 0, 0, 0)
    chunk = Chunk.at_rate(rows(*[3.0] * 5), 10)
    new = Plan.anchored(chunk, 100 * MS, 0, 0)
    arrived = Arrived(chunk, 100 * MS, 0, 2, Record(), expected_rows)
    sewn = FadeWhenLate(1).sew(old, new, arrived, Kinds())
    assert [row.commands['arm'] for row in sewn.waiting()] == [first, 3, 3, 3, 3]


def test_a_horizon_in_time_ends_before_the_row_that_is_due_at_it() -> None:
    cut = Horizon(span_ns=200 * MS).cut(Chunk.at_rate(rows(1, 2, 3, 4), 10))
    assert [row.commands['arm'] for row in cut.rows] == [1, 2]
    assert cut.end_ns == 200 * MS


def test_the_last_row_goes_out_though_no_tick_falls_behind_it() -> None:
    plan = Plan.anchored(Chunk.at_rate(rows(1, 2), 10), 0, 0, 0)
    slow = Upsampling(300 * MS, Interpolation.HOLD, RowMeans.REACHED_AT)
    ticks = slow.apply(plan, Record()).emissions()
    assert [(tick.due_ns, tick.commands['arm']) for tick in ticks] == [(0, 1), (100 * MS, 2)]


def test_a_rotation_is_written_with_the_sign_nearest_to_the_one_before() -> None:
    turned = np.array([0.0, 0.6, 0.0, 0.8])
    assert Quaternion().near(turned, -turned).tolist() == turned.tolist()


def test_r22_of_two_deltas_of_one_observation_the_last_wins() -> None:
    assert kind_named('delta', 'observation').merge(1, 2) == 2


def test_an_angle_is_commanded_as_the_turn_nearest_to_the_one_before() -> None:
    uplink = HandUplink([Chunk.at_rate(rows(np.array([3.0]), np.array([-3.0])), 10)])
    kinds = Kinds({'arm': Angle()})
    player = ChunkPlayer(uplink, asking=Drain(), handoff=ArriveAtStart(), kinds=kinds)
    player(SEEN, 0)
    assert player(SEEN, 100 * MS)[0]['arm'] == pytest.approx(2 * np.pi - 3)


def test_r45_a_channel_that_the_robot_lacks_passes_no_guard() -> None:
    plan = Plan.anchored(Chunk.at_rate(rows(np.zeros(1)), 10), 0, 0, 0)
    with pytest.raises(ChunkRefused, match="'arm', which this robot does not have") as refused:
        Guard({}, 100 * MS).check_plan(plan, {}, {})
    assert refused.value.cause == 'unknown_channel'


def test_the_largest_gap_and_the_lateness_are_of_what_went_out() -> None:
    player = draining(HandUplink([Chunk.at_rate(rows(1, 2, 3), 10)]))
    for t in (0, 130, 200):
        player(SEEN, t * MS)
    assert player.statistics.largest_gap_ns == 130 * MS
    assert player.statistics.lateness.largest == 30 * MS


def test_a_preview_is_bounded_from_the_measured_state_whatever_was_commanded() -> None:
    one = np.array([1.0])
    limits = Limits(('a',), -9 * one, 9 * one, one, 0.2 * one)
    plan = Plan.anchored(Chunk.at_rate(rows(5 * one), 10), 0, 0, 0)
    with pytest.raises(ChunkRefused, match='a distance from the measured state of 5'):
        ShadowGuard({'arm': limits}, 100 * MS).check_plan(
            plan, {'arm': Emitted(5 * one, 0)}, {'arm': 0 * one}
        )

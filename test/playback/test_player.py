"""The player's rules, each named after the rule it pins, on a clock moved by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from seq_harness.playback.asking import Asking, Drain, Lead
from seq_harness.playback.chunk import Chunk
from seq_harness.playback.handoff import ArriveAtStart, Continue, HandOff
from seq_harness.playback.player import ChunkPlayer
from seq_harness.playback.session import CEILING_NS, POLL_NS
from seq_harness.playback.uplink import ActAbandoned, PolicyError
from support.uplinks import HandUplink, MS, rows, S

SEEN = {'state': 1}


def player_on(
    uplink: HandUplink, asking: Asking | None = None, handoff: HandOff | None = None
) -> ChunkPlayer:
    return ChunkPlayer(
        uplink, asking=asking or Drain(), handoff=handoff or ArriveAtStart(), guard=None
    )


def continuing(uplink: HandUplink, lead_ns: int) -> ChunkPlayer:
    lead = Lead(cap_ns=10 * S, margin_ns=0, fixed_ns=lead_ns)
    return player_on(uplink, lead, Continue())


def played(player: ChunkPlayer, instants: Sequence[int]) -> list[tuple[int, Any]]:
    out = []
    for t in instants:
        commands, _ = player(SEEN, t)
        if commands:
            out.append((t, commands['arm']))
    return out


def accounted(player: ChunkPlayer) -> bool:
    counts = player.statistics
    kept = counts.emitted + counts.merged + sum(counts.dropped.values()) + player.held
    return counts.scheduled == kept


def test_r1_r2_a_call_answers_a_mapping_and_a_later_instant() -> None:
    player = player_on(HandUplink())
    commands, resume = player(SEEN, 5 * S)
    assert commands == {}
    assert resume > 5 * S


def test_r3_a_call_before_the_instant_answers_nothing_and_the_same_instant() -> None:
    late = Chunk.stamped([{'timestamp': 0.5, 'arm': 1}, {'timestamp': 0.6}])
    player = player_on(HandUplink([late]))
    player(SEEN, 1 * S)
    assert player(SEEN, 1 * S + 200 * MS) == ({}, 1 * S + 500 * MS)
    assert player(SEEN, 1 * S + 300 * MS) == ({}, 1 * S + 500 * MS)


def test_r5_calling_again_with_the_same_t_changes_nothing() -> None:
    player = player_on(HandUplink([Chunk.at_rate(rows(1, 2), 10)]))
    assert player(SEEN, 0)[0] == {'arm': 1}
    first = player(SEEN, 1)
    assert player(SEEN, 1) == first == ({}, 100 * MS)


def test_r8_the_ask_is_given_the_observation_of_its_round() -> None:
    uplink = HandUplink()
    player = player_on(uplink)
    player({'state': 'old'}, 0)
    player({'state': 'new'}, 1)
    assert uplink.asks == [(0, {'state': 'old'})]


def test_r12_the_last_row_gets_its_whole_period_before_the_next_ask() -> None:
    uplink = HandUplink([Chunk.at_rate(rows(1, 2), 10)])
    player = player_on(uplink)
    played(player, range(0, 200 * MS, 10 * MS))
    assert len(uplink.asks) == 1
    player(SEEN, 200 * MS)
    assert [t for t, _ in uplink.asks] == [0, 200 * MS]


def test_r13_an_empty_answer_drops_what_plays_and_asks_back_off_from_poll_to_ceiling() -> None:
    uplink = HandUplink([Chunk((), 0)] * 12)
    player = player_on(uplink)
    t, gaps = 0, []
    for _ in range(11):
        _, resume = player(SEEN, t)
        gaps.append(resume - t)
        t = resume
    assert gaps[:3] == [POLL_NS, 2 * POLL_NS, 4 * POLL_NS]
    assert gaps[-1] == CEILING_NS
    assert len(uplink.asks) == 11


def test_r13_none_keeps_what_is_held() -> None:
    uplink = HandUplink([Chunk.at_rate(rows(1, 2, 3), 10)])
    player = continuing(uplink, lead_ns=250 * MS)
    assert played(player, [0, 50 * MS]) == [(0, 1)]
    uplink.answers[-1].give(None)
    assert played(player, [100 * MS, 200 * MS]) == [(100 * MS, 2), (200 * MS, 3)]


def test_r14_arrival_anchors_where_the_answer_is_read() -> None:
    uplink = HandUplink()
    player = player_on(uplink)
    player(SEEN, 0)
    uplink.answers[0].give(Chunk.at_rate(rows(1, 2), 10))
    assert player(SEEN, 37 * MS) == ({'arm': 1}, 137 * MS)


def test_r14_continue_starts_at_the_rows_emitted_since_the_ask() -> None:
    uplink = HandUplink([Chunk.at_rate(rows(*range(10)), 10)])
    player = continuing(uplink, lead_ns=500 * MS)
    grid = [i * 100 * MS for i in range(8)]
    assert played(player, grid[:6]) == [(i * 100 * MS, i) for i in range(6)]
    assert [t for t, _ in uplink.asks] == [0, 500 * MS]
    # Rows 5 (in the round of the ask), 6 and 7 go out before the answer is read at 750 ms.
    played(player, grid[6:])
    uplink.answers[1].give(Chunk.at_rate(rows(*range(100, 110)), 10))
    commands, resume = player(SEEN, 750 * MS)
    assert commands == {}
    assert resume == 800 * MS
    assert player(SEEN, 800 * MS)[0] == {'arm': 103}
    assert dict(player.statistics.dropped) == {'passed': 3, 'replaced': 2}
    assert accounted(player)


def test_r15_r16_rows_stay_within_half_a_nanosecond_of_their_time_at_epoch_scale() -> None:
    anchor = 1_764_000_000_123_456_789
    player = player_on(HandUplink([Chunk.at_rate(rows(*range(1000)), 30)]))
    commands, resume = player(SEEN, anchor)
    assert commands == {'arm': 0}
    for i in range(1, 1000):
        assert abs((resume - anchor) * 30 - i * S) <= 15
        commands, resume = player(SEEN, resume)
        assert commands == {'arm': i}


def test_r20_a_row_before_its_anchor_is_due_at_once() -> None:
    early = Chunk.stamped([{'timestamp': -0.2, 'arm': 1}, {'timestamp': 0.1, 'arm': 2}], fps=10)
    player = player_on(HandUplink([early]))
    assert player(SEEN, 1 * S) == ({'arm': 1}, 1 * S + 100 * MS)


def test_r21_late_rows_merge_by_channel_and_the_last_wins() -> None:
    chunk = Chunk.stamped(
        [
            {'arm': 1, 'grip': 0.5},
            {'timestamp': 0.01, 'grip': 0.9},
            {'timestamp': 0.02, 'arm': 2},
            {'timestamp': 0.03},
        ]
    )
    player = player_on(HandUplink([chunk]))
    assert player(SEEN, 0) == ({'arm': 1, 'grip': 0.5}, 10 * MS)
    assert player(SEEN, 25 * MS) == ({'grip': 0.9, 'arm': 2}, 30 * MS)
    assert player.statistics.merged == 1
    assert accounted(player)


def test_r23_with_nothing_to_wait_for_it_polls() -> None:
    player = player_on(HandUplink())
    assert player(SEEN, 7)[1] == 7 + POLL_NS


def test_r24_a_waypoint_due_exactly_now_is_due() -> None:
    player = player_on(HandUplink([Chunk.at_rate(rows(1, 2), 10)]))
    player(SEEN, 0)
    assert player(SEEN, 100 * MS - 1)[0] == {}
    assert player(SEEN, 100 * MS)[0] == {'arm': 2}


def test_r25_merged_commands_are_the_same_in_any_order_of_their_keys() -> None:
    sent = []
    for names in (('arm', 'grip'), ('grip', 'arm')):
        chunk = Chunk.at_rate([dict.fromkeys(names, i) for i in range(3)], 10)
        player = player_on(HandUplink([chunk]))
        player(SEEN, 0)
        sent.append(player(SEEN, 250 * MS)[0])
    assert sent[0] == sent[1] == {'arm': 2, 'grip': 2}


def test_r26_with_a_lead_it_asks_that_much_before_the_end() -> None:
    uplink = HandUplink([Chunk.at_rate(rows(*range(10)), 10)])
    player = continuing(uplink, lead_ns=300 * MS)
    assert player(SEEN, 0)[1] == 100 * MS
    played(player, range(100 * MS, 700 * MS, 100 * MS))
    assert len(uplink.asks) == 1
    player(SEEN, 700 * MS)
    assert [t for t, _ in uplink.asks] == [0, 700 * MS]
    assert uplink.committed == [700 * MS]


def test_r27_one_call_is_in_flight_however_often_it_is_due() -> None:
    uplink = HandUplink()
    player = player_on(uplink)
    played(player, range(0, S, 10 * MS))
    assert len(uplink.asks) == 1


def test_r28_what_is_due_plays_while_the_answer_is_awaited() -> None:
    uplink = HandUplink([Chunk.at_rate(rows(1, 2, 3), 10)])
    player = continuing(uplink, lead_ns=300 * MS)
    assert played(player, [0, 100 * MS, 200 * MS]) == [(0, 1), (100 * MS, 2), (200 * MS, 3)]
    assert not uplink.answers[1].done()


def test_r29_a_channel_that_only_the_old_plan_named_stays_silent() -> None:
    old = Chunk.at_rate([{'arm': 1, 'grip': 1}, {'arm': 2, 'grip': 2}], 10)
    uplink = HandUplink([old])
    player = continuing(uplink, lead_ns=200 * MS)
    assert player(SEEN, 0)[0] == {'arm': 1, 'grip': 1}
    player(SEEN, 1)
    uplink.answers[1].give(Chunk.at_rate(rows(10, 11, 12), 10))
    assert player(SEEN, 100 * MS)[0] == {'arm': 10}


@pytest.mark.parametrize('mode', ['drain', 'lead'])
def test_r30_inline_and_remote_play_the_same_rows_at_the_same_times(mode: str) -> None:
    chunks = [Chunk.at_rate(rows(*range(k, k + 8)), 20) for k in (0, 100, 200, 300)]
    traces = []
    for remote in (False, True):
        uplink = HandUplink(() if remote else chunks)
        player = player_on(uplink) if mode == 'drain' else continuing(uplink, 125 * MS)
        script, trace, t = list(chunks), [], 0
        for _ in range(60):
            commands, resume = player(SEEN, t)
            trace.append((t, dict(commands), resume))
            if remote and script and uplink.answers and not uplink.answers[-1].done():
                uplink.answers[-1].give(script.pop(0))
                trace.pop()
                commands_now, resume = player(SEEN, t)
                trace.append((t, {**commands, **commands_now}, resume))
            t = resume
        traces.append([(at, sent) for at, sent, _ in trace if sent])
    assert traces[0] == traces[1]
    assert len(traces[0]) > 25


def test_r31_rows_that_a_stall_leaves_behind_are_counted() -> None:
    player = player_on(HandUplink([Chunk.at_rate(rows(*range(10)), 10)]))
    player(SEEN, 0)
    commands, _ = player(SEEN, 5 * S)
    assert commands == {'arm': 9}
    assert player.statistics.merged == 8
    assert accounted(player)


def test_r32_a_late_chunk_starts_at_its_own_first_row() -> None:
    uplink = HandUplink()
    player = player_on(uplink)
    player(SEEN, 0)
    uplink.answers[0].give(Chunk.at_rate(rows(1, 2), 10))
    assert player(SEEN, 3 * S)[0] == {'arm': 1}


def test_r34_a_failure_raises_as_itself_and_leaves_a_fresh_ask() -> None:
    uplink = HandUplink()
    player = player_on(uplink)
    player(SEEN, 0)
    uplink.answers[0].fail(PolicyError('KeyError: wrist'))
    with pytest.raises(PolicyError, match='KeyError: wrist'):
        player(SEEN, 10 * MS)
    player(SEEN, 20 * MS)
    assert len(uplink.asks) == 2


def test_g28_an_abandoned_act_is_asked_anew_from_a_fresh_observation() -> None:
    uplink = HandUplink()
    player = player_on(uplink)
    player({'state': 1}, 0)
    uplink.answers[0].fail(ActAbandoned('too old'))
    player({'state': 2}, S)
    assert uplink.asks[1] == (S, {'state': 2})
    assert player.statistics.abandoned == 1


def test_r35_r36_an_orphan_is_read_and_thrown_away_before_the_next_ask() -> None:
    uplink = HandUplink()
    player = player_on(uplink)
    player(SEEN, 0)
    player.cancel()
    player(SEEN, 10 * MS)
    assert len(uplink.asks) == 1
    uplink.answers[0].give(Chunk.at_rate(rows(1), 10))
    commands, resume = player(SEEN, 20 * MS)
    assert commands == {}
    assert len(uplink.asks) == 1
    player(SEEN, resume)
    assert len(uplink.asks) == 2


def test_r35_an_orphans_failure_surfaces() -> None:
    uplink = HandUplink()
    player = player_on(uplink)
    player(SEEN, 0)
    player.cancel()
    uplink.answers[0].fail(PolicyError('boom'))
    with pytest.raises(PolicyError, match='boom'):
        player(SEEN, 10 * MS)


def test_a_full_stream_delays_the_ask_and_loses_nothing() -> None:
    uplink = HandUplink()
    uplink.full = True
    player = player_on(uplink)
    assert player(SEEN, 0)[1] == POLL_NS
    uplink.full = False
    player(SEEN, POLL_NS)
    assert [t for t, _ in uplink.asks] == [POLL_NS]


def test_three_chunks_wholly_past_in_a_row_end_the_episode() -> None:
    long = Chunk.at_rate(rows(*range(100)), 10)
    uplink = HandUplink([long])
    player = continuing(uplink, lead_ns=9 * S)
    played(player, range(0, 1100 * MS, 100 * MS))
    t = S
    for _ in range(3):
        assert player.finished is None
        while uplink.answers[-1].done():
            t += 100 * MS
            player(SEEN, t)
        for _ in range(3):
            t += 100 * MS
            player(SEEN, t)
        uplink.answers[-1].give(Chunk.at_rate(rows(1, 2), 10))
        player(SEEN, t + 1)
    assert player.finished == 'inference_slower_than_chunk'
    assert accounted(player)


def test_the_policys_end_comes_after_its_last_row_has_had_its_period() -> None:
    player = player_on(HandUplink([Chunk.at_rate(rows(1, 2), 10, end_reason='done')]))
    player(SEEN, 0)
    player(SEEN, 100 * MS)
    assert player.finished is None
    _, resume = player(SEEN, 150 * MS)
    assert resume == 200 * MS
    player(SEEN, 200 * MS)
    assert player.finished == 'policy:done'


def test_an_end_without_rows_comes_at_once() -> None:
    player = player_on(HandUplink([Chunk((), 0, end_reason='done')]))
    player(SEEN, 0)
    assert player.finished == 'policy:done'

"""What continues a plan row for row: where its rows stand, and when it is asked for (R14)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from seq_harness.playback.asking import Asking, ContinuingLead, Lead
from seq_harness.playback.chunk import Chunk
from seq_harness.playback.delays import Delays
from seq_harness.playback.handoff import Continue
from seq_harness.playback.modes import Mode, parts_of
from seq_harness.playback.plan import Plan
from seq_harness.playback.player import ChunkPlayer
from support.uplinks import HandUplink, MS, rows, S

SEEN = {'state': 1}


def continuing(uplink: HandUplink, lead_ns: int) -> ChunkPlayer:
    lead = Lead(cap_ns=10 * S, margin_ns=0, fixed_ns=lead_ns)
    return ChunkPlayer(uplink, asking=lead, handoff=Continue())


def played(player: ChunkPlayer, instants: Sequence[int]) -> list[tuple[int, Any]]:
    out = []
    for t in instants:
        commands, _ = player(SEEN, t)
        if commands:
            out.append((t, commands['arm']))
    return out


def plan_of(count: int, first: int = 0, hz: float = 10) -> Plan:
    """Return a chunk's plan from a row on, row 0 of it due at 0."""
    return Plan.anchored(Chunk.at_rate(rows(*range(count)), hz), 0, first, 0)


def lead_of(answers_ms: Sequence[int], estimate: str = 'max') -> ContinuingLead:
    """Return a lead that has seen answers; the first one pays for cold caches."""
    lead = ContinuingLead(cap_ns=9 * S, margin_ns=0, delays=Delays(estimate))
    for ms in (5000, *answers_ms):
        lead.answered(ms * MS)
    return lead


def test_r14_continue_starts_at_row_0_where_there_is_no_old_plan() -> None:
    uplink = HandUplink()
    player = continuing(uplink, lead_ns=100 * MS)
    player(SEEN, 0)
    uplink.answers[0].give(Chunk.at_rate(rows(0, 1), 10))
    assert played(player, [30 * MS, 130 * MS]) == [(30 * MS, 0), (130 * MS, 1)]
    player.cancel()
    uplink.answers[1].give(Chunk.at_rate(rows(10, 11), 10))
    assert played(player, [200 * MS, 210 * MS]) == []
    uplink.answers[2].give(Chunk.at_rate(rows(20, 21), 10))
    assert played(player, [300 * MS]) == [(300 * MS, 20)]


def test_r14_a_starved_plan_is_continued_behind_the_rows_emitted_since_the_ask() -> None:
    uplink = HandUplink()
    player = continuing(uplink, lead_ns=100 * MS)
    player(SEEN, 0)
    uplink.answers[0].give(Chunk.at_rate(rows(0, 1), 10))
    assert played(player, [30 * MS, 130 * MS]) == [(30 * MS, 0), (130 * MS, 1)]
    assert played(player, [230 * MS, 400 * MS]) == []
    # Row 1 went out in the round of the ask: it is row 0 of the answer.
    uplink.answers[1].give(Chunk.at_rate(rows(10, 11, 12), 10))
    assert played(player, [450 * MS]) == [(450 * MS, 11)]
    assert player.statistics.starved_ns == 220 * MS
    assert dict(player.statistics.dropped) == {'passed': 1}


def test_r14_a_starved_plan_is_not_continued_by_a_chunk_that_has_no_row_left() -> None:
    uplink = HandUplink([Chunk.at_rate(rows(0, 1, 2), 10)])
    player = continuing(uplink, lead_ns=200 * MS)
    played(player, [i * 100 * MS for i in range(5)])
    uplink.answers[1].give(Chunk.at_rate(rows(10, 11), 10))
    assert played(player, [500 * MS]) == []
    assert dict(player.statistics.dropped) == {'passed': 2}


def test_the_policys_end_holds_though_the_rows_before_it_are_past() -> None:
    uplink = HandUplink([Chunk.at_rate(rows(*range(5)), 10)])
    player = continuing(uplink, lead_ns=400 * MS)
    played(player, [i * 100 * MS for i in range(4)])
    uplink.answers[1].give(Chunk.at_rate(rows(10, 11), 10, 'done'))
    assert played(player, [350 * MS, 400 * MS]) == [(400 * MS, 4)]
    assert player.finished is None
    player(SEEN, 500 * MS)
    assert player.finished == 'policy:done'
    assert len(uplink.asks) == 2


def test_after_a_chunk_that_was_too_short_the_next_ask_goes_by_its_length() -> None:
    uplink = HandUplink([Chunk.at_rate(rows(*range(10)), 10)])
    lead = ContinuingLead(cap_ns=9 * S, margin_ns=0, fixed_ns=9 * S)
    player = ChunkPlayer(uplink, asking=lead, handoff=Continue())
    played(player, [i * 100 * MS for i in range(8)])
    assert [t for t, _ in uplink.asks] == [0, 300 * MS]
    uplink.answers[1].give(Chunk.at_rate(rows(20, 21), 10))
    played(player, [750 * MS, 800 * MS, 900 * MS, 1 * S])
    # Of two rows none would be left after 450 ms.
    assert [t for t, _ in uplink.asks] == [0, 300 * MS, 1 * S]
    uplink.answers[2].give(Chunk.at_rate(rows(30, 31), 10))
    assert played(player, [1400 * MS]) == [(1400 * MS, 30)]


@pytest.mark.parametrize(
    ('count', 'first_asked'), [(2, 1), (3, 1), (4, 1), (5, 2), (8, 2), (16, 4), (50, 13)]
)
def test_r14_the_lead_leaves_a_quarter_of_a_chunk_to_come_however_late_the_answer(
    count: int, first_asked: int
) -> None:
    # As many rows are over once the plan has run out as go out from the ask on.
    assert first_asked >= count / 4
    for lead in (
        ContinuingLead(cap_ns=9 * S, margin_ns=0),
        ContinuingLead(cap_ns=9 * S, margin_ns=0, fixed_ns=9 * S),
        lead_of([10, 10, 5000]),
    ):
        assert lead.due_ns(plan_of(count)) == first_asked * 100 * MS


def test_r14_a_chunk_of_one_row_is_asked_for_at_its_end() -> None:
    assert ContinuingLead(cap_ns=9 * S, margin_ns=0).due_ns(plan_of(1)) == 100 * MS


@pytest.mark.parametrize(('count', 'rest', 'shown'), [(8, 3, 1), (16, 7, 2), (50, 20, 6)])
def test_r14_a_plan_is_seen_before_the_next_is_asked_for(
    count: int, rest: int, shown: int
) -> None:
    plan = plan_of(count, count - rest)
    due_ns = lead_of([100 * rest]).due_ns(plan)
    assert due_ns == (count - rest + shown) * 100 * MS
    last = plan_of(count, count - shown)
    assert lead_of([100 * rest]).due_ns(last) == count * 100 * MS, 'no row of it would be left'


def test_r14_a_lead_that_is_short_enough_is_kept() -> None:
    assert lead_of([300]).due_ns(plan_of(16)) == 1300 * MS


@pytest.mark.parametrize(
    ('answers_ms', 'due_ms'),
    [
        ([800, 800], 800),
        ([799, 799], 200),
        ([300, 300, 1200], 200),
        ([1200, 1200, 300], 800),
        ([], 200),
    ],
)
def test_r14_where_answers_take_a_chunk_or_longer_it_asks_as_drain_does(
    answers_ms: list[int], due_ms: int
) -> None:
    lead = lead_of(answers_ms)
    assert lead.due_ns(plan_of(8)) == due_ms * MS
    assert lead.drains(plan_of(8)) is (due_ms == 800)


def test_r14_whether_it_drains_goes_by_the_median_and_the_lead_by_its_estimate() -> None:
    assert lead_of([200, 200, 900], 'mean').due_ns(plan_of(8)) == 300 * MS
    assert lead_of([200, 200, 900], 'min').due_ns(plan_of(8)) == 600 * MS


@pytest.mark.parametrize(
    ('mode', 'capped'),
    [
        (Mode(), True),
        (Mode(lead_ns=9 * S), True),
        (Mode(handoff='crossfade'), True),
        (Mode(handoff='replace', anchor='arrival'), False),
        (Mode(handoff='arrival'), False),
        (Mode(handoff='append'), False),
        (Mode(handoff='observation'), False),
    ],
    ids=str,
)
def test_r14_the_cap_is_of_what_continues_alone(mode: Mode, capped: bool) -> None:
    asking: Asking = parts_of(mode, 100 * MS)['asking']
    assert (asking.due_ns(plan_of(8)) == 200 * MS) is capped

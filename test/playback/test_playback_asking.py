"""When the player asks, and what it tells the policy of its plan."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from seq_harness.playback.ahead import LookAhead
from seq_harness.playback.asking import Every, Lead, Reached, Threshold
from seq_harness.playback.channels import Channel, ColumnsRefused, RowSplitter
from seq_harness.playback.chunk import Chunk
from seq_harness.playback.delays import Delays
from seq_harness.playback.kinds import Delta, KindRefused, Kinds, Velocity
from seq_harness.playback.modes import Mode
from seq_harness.playback.plan import Plan
from support.modes import chunk_of, MODES, player_in, run, ScriptUplink
from support.uplinks import MS, S


def plan_of(rows: int = 10) -> Plan:
    chunk = Chunk.at_rate([{'arm': np.array([float(i)])} for i in range(rows)], 10)
    return Plan.anchored(chunk, 0, 0, 0)


@pytest.mark.parametrize(
    ('estimate', 'expected'),
    [('mean', 25), ('min', 10), ('max', 40), ('median', 25), ('percentile', 30)],
)
def test_g27_a_lead_goes_by_a_window_of_delays_without_the_first(
    estimate: str, expected: int
) -> None:
    delays = Delays(estimate, window=4, percent=75)
    lead = Lead(cap_ns=10 * S, margin_ns=5, delays=delays)
    lead.answered(9 * S)
    assert lead.lead_ns() == 10 * S
    for delay in (9999, 10, 20, 30, 40):
        lead.answered(delay)
    assert lead.lead_ns() == expected + 5


def test_a_lead_is_capped() -> None:
    lead = Lead(cap_ns=1 * S, margin_ns=0)
    lead.answered(1)
    lead.answered(5 * S)
    assert lead.due_ns(plan_of()) == 0


@pytest.mark.parametrize(('share', 'due_ms'), [(0.5, 400), (0.31, 600), (0.0, 900), (1.0, 0)])
def test_a_threshold_asks_with_the_row_that_leaves_no_more_than_its_share(
    share: float, due_ms: int
) -> None:
    assert Threshold(share).due_ns(plan_of()) == due_ms * MS


@pytest.mark.parametrize(('rows', 'due_ms'), [(1, 0), (4, 300), (10, 900), (11, 1000)])
def test_every_n_rows_it_asks_with_the_nth_row_or_at_the_end(rows: int, due_ms: int) -> None:
    assert Every(rows).due_ns(plan_of()) == due_ms * MS


def test_rows_that_were_skipped_count_as_over_for_real_time_chunking() -> None:
    chunk = Chunk.at_rate([{'arm': np.array([float(i)])} for i in range(10)], 10)
    assert Reached(5).due_ns(Plan.anchored(chunk, 0, 3, 0)) == 400 * MS


def test_rtc_sends_the_rows_that_will_be_executed_on_the_new_chunks_grid() -> None:
    ahead = LookAhead(50 * MS)
    plan = plan_of(4)
    plan.pop_due(100 * MS)
    told = ahead.sample(plan, 100 * MS, emitted=True, expected_ns=110 * MS)
    assert told is not None
    assert [float(row['arm'][0]) for row in told.prefix] == [1, 1.5, 2, 2.5, 3, 3]
    assert (told.delay_rows, told.executed_rows) == (3, 1)


def test_rtc_between_two_rows_starts_at_the_next_one() -> None:
    plan = plan_of(4)
    plan.pop_due(100 * MS)
    told = LookAhead(100 * MS).sample(plan, 130 * MS, emitted=False, expected_ns=None)
    assert told is not None
    assert [float(row['arm'][0]) for row in told.prefix] == [2, 3]
    assert (told.delay_rows, told.executed_rows) == (2, 2)


def test_rtc_tells_nothing_on_the_first_chunk_and_when_starved() -> None:
    ahead = LookAhead(100 * MS)
    plan = plan_of(2)
    plan.pop_due(1 * S)
    assert ahead.sample(None, 0, False, None) is None
    assert ahead.sample(plan, 1 * S, False, None) is None


@pytest.mark.parametrize('kind', [Delta(), Velocity()])
def test_rtc_takes_absolute_channels_only(kind: Delta | Velocity) -> None:
    with pytest.raises(KindRefused, match='absolute channels only'):
        LookAhead(100 * MS, Kinds({'arm': kind}))


def test_g27_rtc_skips_what_was_consumed_and_blends_what_came_later_than_told() -> None:
    _, player, uplink = run(MODES['rtc'], 2 * S)
    told = [ahead for ahead in uplink.aheads if ahead]
    assert uplink.aheads[0] is None
    assert [float(row['arm'][0]) for row in told[0].prefix] == [3, 4, 5, 6, 7]
    assert [ahead.delay_rows for ahead in told[:3]] == [5, 2, 2]
    assert player.statistics.late_answers == 1


@pytest.mark.parametrize(
    ('delay_ms', 'executed', 'short'), [(50, 5, False), (250, 4, False), (750, None, True)]
)
def test_rtc_asks_so_soon_that_the_delay_fits_what_is_left_of_the_horizon(
    delay_ms: int, executed: int | None, short: bool
) -> None:
    uplink = ScriptUplink([delay_ms * MS], chunk_of, inline=False)
    player = player_in(replace(MODES['rtc'], every_rows=6), uplink)
    t = 0
    while len(uplink.aheads) < 8 and t < 20 * S:
        uplink.show(t)
        _, resume = player({}, t)
        t = min(resume, uplink.pending[0]) if uplink.pending else resume
    told = [ahead for ahead in uplink.aheads[2:] if ahead]
    # The row of the round that asks is the first of those that will still be executed.
    assert executed is None or {ahead.executed_rows for ahead in told} == {executed}
    assert all(ahead.delay_rows <= 8 - ahead.executed_rows for ahead in told)
    assert (player.statistics.short_plans > 0) is short


def test_a_policy_that_keeps_to_the_prefix_joins_without_a_step() -> None:
    def honouring(number: int) -> Chunk:
        ahead = uplink.aheads[number]
        values = [float(row['arm'][0]) for row in ahead.prefix] if ahead else [0.0]
        while len(values) < 8:
            values.append(values[-1] + 1)
        return Chunk.at_rate([{'arm': np.array([value])} for value in values], 10)

    uplink = ScriptUplink([100 * MS, 150 * MS], honouring, inline=False)
    player = player_in(MODES['rtc'], uplink)
    t = 0
    sent: list[float] = []
    while t < 3 * S:
        uplink.show(t)
        commands, resume = player({}, t)
        sent += [float(commands['arm'][0])] if commands else []
        t = min(resume, uplink.pending[0]) if uplink.pending else resume
    assert sent == [float(i) for i in range(len(sent))]
    assert len(sent) > 20


def test_a_chunk_becomes_the_policys_own_rows_again() -> None:
    arm, grip = Channel('arm', ('a', 'b'), (2, 0)), Channel('grip', ('g',), (1,))
    splitter = RowSplitter([arm, grip], fps=10, width=3)
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    chunk = splitter(values)
    assert chunk is not None
    rows = splitter.joined([row.commands for row in chunk.rows])
    assert rows.dtype == np.float32
    np.testing.assert_array_equal(rows, values)
    with pytest.raises(ColumnsRefused, match='of 3 columns the channels command'):
        RowSplitter([arm], fps=10, width=3).joined([])


def test_the_expected_and_the_actual_delay_are_both_counted() -> None:
    _, player, _ = run(MODES['lead_measured'], 3 * S)
    figures = player.statistics.figures(player.held)
    asks, expected = figures['answer_delay_ms'], figures['expected_delay_ms']
    assert isinstance(asks, dict)
    assert isinstance(expected, dict)
    assert asks['max'] == 250
    assert 0 < expected['count'] < asks['count']


def test_an_answer_that_waits_for_the_end_of_the_plan_is_not_late_by_that() -> None:
    mode = Mode(handoff='arrival', lead_cap_ns=2 * S)
    _, player, _ = run(mode, 4 * S, delays_ns=[120 * MS])
    assert player.statistics.answer_delay.largest == 120 * MS

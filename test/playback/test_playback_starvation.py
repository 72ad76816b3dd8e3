"""What goes out once the plan has ended, and beyond or between its rows."""

from __future__ import annotations

import itertools
import re
from typing import Any

import numpy as np
import pytest
from seq_harness.playback.asking import Drain, Lead
from seq_harness.playback.blending import VelocitySeam
from seq_harness.playback.chunk import Chunk
from seq_harness.playback.guard import Guard, Limits
from seq_harness.playback.handoff import ArriveAtStart, Continue
from seq_harness.playback.horizon import Horizon
from seq_harness.playback.kinds import Delta, Effort, Kind, KindRefused, Kinds, Velocity
from seq_harness.playback.player import ChunkPlayer
from seq_harness.playback.starvation import Starvation, Starve
from seq_harness.playback.upsampling import Interpolation, RowMeans, Upsampling
from seq_harness.playback.whole import Trajectory, WholeChunks
from support.uplinks import HandUplink, MS, S

SEEN: dict[str, Any] = {}


def chunk(*values: float, channel: str = 'arm') -> Chunk:
    return Chunk.at_rate([{channel: np.array([value])} for value in values], 10)


def player_of(
    *values: float, kind: Kind | None = None, policy: Starve | None = None, **others: Any
) -> ChunkPlayer:
    kinds = Kinds({'arm': kind} if kind else {})
    starvation = Starvation(
        kinds,
        {'arm': policy} if policy else {},
        period_ns=100 * MS,
        limit_ns=others.pop('limit_ns', None),
        act_ns=others.pop('act_ns', None),
    )
    others = {'asking': Drain(), 'handoff': ArriveAtStart(), **others}
    uplink = others.pop('uplink', None) or HandUplink([chunk(*values)])
    return ChunkPlayer(uplink, kinds=kinds, starvation=starvation, **others)


def sent(player: ChunkPlayer, until_ms: int) -> list[tuple[int, float]]:
    """Return what goes out at the instants that the player asks for."""
    t, out = 0, []
    while t <= until_ms * MS and player.finished is None:
        commands, resume = player(SEEN, t)
        if 'arm' in commands:
            out.append((t // MS, round(float(commands['arm'][0]), 6)))
        t = resume
    return out


def test_r33_a_starved_position_holds_by_silence() -> None:
    assert sent(player_of(1, 2), 1000) == [(0, 1), (100, 2)]


@pytest.mark.parametrize('kind', [Velocity(), Effort()])
def test_r33_a_starved_rate_goes_to_zero_once(kind: Kind) -> None:
    player = player_of(1, 2, kind=kind)
    assert sent(player, 1000) == [(0, 1), (100, 2), (200, 0)]
    assert player.statistics.filled == 1


def test_a_rate_falls_to_zero_though_its_guard_would_not_let_it_step_so_far() -> None:
    slow = Limits(('a',), np.array([-9.0]), np.array([9.0]), np.array([0.1]), np.array([9.0]))
    guard = Guard({'arm': slow}, 100 * MS, Kinds({'arm': Velocity()}))
    assert sent(player_of(1, 1, kind=Velocity(), guard=guard), 500)[-1] == (200, 0)


def test_after_a_zero_the_next_rows_are_bounded_from_zero() -> None:
    slow = Limits(('a',), np.array([-9.0]), np.array([9.0]), np.array([5.0]), np.array([9.0]))
    guard = Guard({'arm': slow}, 100 * MS, Kinds({'arm': Velocity()}))
    uplink = HandUplink([chunk(1, 1)])
    player = player_of(kind=Velocity(), guard=guard, uplink=uplink)
    for t in (0, 100, 200):
        player(SEEN, t * MS)
    uplink.answers[-1].give(chunk(1, 1))
    assert player(SEEN, 300 * MS)[0] == {}
    assert player.statistics.refused == {'step': 1}


def test_a_position_decelerates_from_its_last_speed_over_three_tenths_of_a_second() -> None:
    out = sent(player_of(0, 1, policy=Starve.DECELERATE), 1000)
    # 1 a period: x0 + 3 (x - x^2 / 2) at x = 1/3, 2/3 and 1 after the end.
    assert out[:2] == [(0, 0), (100, 1)]
    assert out[2:] == [(200, 1), (300, 1.833333), (400, 2.333333), (500, 2.5)]


def test_r14_rows_that_come_while_it_decelerates_lead_on_the_speed_that_is_left() -> None:
    uplink = HandUplink([chunk(0, 1, 2, 3)])
    handoff = Continue(VelocitySeam(3))
    player = player_of(policy=Starve.DECELERATE, uplink=uplink, handoff=handoff)
    for i in range(6):
        player(SEEN, i * 100 * MS)
    # At 500 ms, 100 ms after the end, a third of the 300 ms is over; at 550 ms half of them.
    last = 3 + 3 * (1 / 3 - 1 / 18)
    uplink.answers[-1].give(chunk(4, 4, 4, 4))
    led = last + (3 / 4) * 0.5
    missed = 4 - (led + (2 / 4 + 1 / 4) * 0.5)
    share = 10 / 3**3 - 15 / 3**4 + 6 / 3**5
    assert player(SEEN, 550 * MS)[0]['arm'] == pytest.approx(led + share * missed)


def test_a_rate_decelerates_to_zero() -> None:
    out = sent(player_of(3, 3, kind=Velocity(), policy=Starve.DECELERATE), 1000)
    assert out[2:] == [(200, 3), (300, 2), (400, 1), (500, 0)]


def test_what_comes_to_rest_stays_inside_its_limits() -> None:
    limits = Limits(('a',), np.array([-9.0]), np.array([2.0]), np.array([99.0]), np.array([9.0]))
    player = player_of(
        0,
        1,
        policy=Starve.DECELERATE,
        guard=Guard({'arm': limits}, 100 * MS),
        measured=lambda observation: {'arm': np.zeros(1)},
    )
    assert sent(player, 1000)[2:] == [(200, 1), (300, 1.833333)]


def test_a_channel_may_stop_the_episode_when_it_starves() -> None:
    player = player_of(1, 2, policy=Starve.STOP)
    sent(player, 1000)
    assert player.finished == 'starved: arm'


def test_starved_for_too_long_the_episode_ends_at_that_instant() -> None:
    player = player_of(1, 2, limit_ns=333 * MS, act_ns=0)
    player(SEEN, 0)
    player(SEEN, 100 * MS)
    assert player(SEEN, 200 * MS)[1] == 533 * MS
    player(SEEN, 532 * MS)
    assert player.finished is None
    player(SEEN, 533 * MS)
    assert (
        player.finished == 'starved: no rows for 0.333 s: an act takes longer than act_timeout_s'
    )


@pytest.mark.parametrize('nothing', [Chunk((), 0), None])
def test_starved_from_the_first_answer_on_the_episode_ends_in_time(nothing: Chunk | None) -> None:
    uplink = HandUplink([])
    player = player_of(uplink=uplink, limit_ns=300 * MS)
    _, t = player(SEEN, 0)
    while player.finished is None and t < S:
        if not uplink.answers[-1].done():
            uplink.answers[-1].give(nothing)
        _, t = player(SEEN, t)
    assert player.finished is not None
    assert re.fullmatch(r'starved: no rows for 0\.3 s: \d+ answers without rows', player.finished)


def test_what_stops_the_episode_when_it_starves_waits_for_a_first_chunk() -> None:
    uplink = HandUplink([])
    player = player_of(uplink=uplink, policy=Starve.STOP)
    player(SEEN, 0)
    uplink.answers[-1].give(None)
    player(SEEN, 10 * MS)
    player(SEEN, 200 * MS)
    assert player.finished is None
    assert player.starving_ns(250 * MS) == 240 * MS


def test_the_starved_time_under_way_counts_already_and_a_cancel_keeps_it() -> None:
    player = player_of(1, 2)
    for t in (0, 100, 200, 300):
        player(SEEN, t * MS)
    assert player.starving_ns(350 * MS) == 150 * MS
    assert player.statistics.figures(0, player.starving_ns(350 * MS))['starved_s'] == 0.15
    player.cancel()
    assert (player.starving_ns(400 * MS), player.statistics.starved_ns) == (0, 100 * MS)


def test_a_policy_that_would_run_away_or_jump_is_refused() -> None:
    with pytest.raises(KindRefused, match='held, it would run away'):
        Starvation(Kinds({'arm': Velocity()}), {'arm': Starve.HOLD})
    with pytest.raises(KindRefused, match='zero is a place to go to'):
        Starvation(Kinds(), {'arm': Starve.ZERO})


def test_g42_a_cancel_sends_zero_to_a_rate_in_the_next_call() -> None:
    player = player_of(1, 2, 3, kind=Velocity())
    player(SEEN, 0)
    assert {name: list(value) for name, value in player.stop_commands(0).items()} == {'arm': [0]}
    player.cancel()
    commands, _ = player(SEEN, 50 * MS)
    assert list(commands['arm']) == [0]


@pytest.mark.parametrize(
    ('horizon', 'rows'), [(Horizon(rows=2), 2), (Horizon(span_ns=250 * MS), 3), (Horizon(1, S), 1)]
)
def test_an_open_loop_horizon_is_in_rows_or_in_time(horizon: Horizon, rows: int) -> None:
    player = player_of(0, 1, 2, 3, 4, horizon=horizon)
    assert sent(player, 1000) == [(i * 100, i) for i in range(rows)]
    assert player.statistics.scheduled == rows


def test_a_starved_channel_may_finish_its_chunk_beyond_the_horizon() -> None:
    player = player_of(0, 1, 2, 3, 4, policy=Starve.FINISH, horizon=Horizon(rows=2))
    assert sent(player, 1000) == [(i * 100, i) for i in range(5)]
    counts = player.statistics
    assert (counts.scheduled, counts.emitted, counts.starved_ns) == (5, 5, 0)


def test_a_last_chunk_plays_whole() -> None:
    whole = Chunk.at_rate([{'arm': 1}] * 5, 10, end_reason='done')
    assert Horizon(rows=2).cut(whole) is whole


def upsampled(how: Interpolation, means: RowMeans, *values: float) -> list[tuple[int, float]]:
    player = player_of(*values, upsampling=Upsampling(25 * MS, how, means))
    out = sent(player, 1000)
    assert player.statistics.emitted == len(values)
    assert player.statistics.emitted + player.statistics.interpolated == len(out)
    return out


def test_held_rows_are_repeated_at_the_output_rate_and_not_past_the_end() -> None:
    out = upsampled(Interpolation.HOLD, RowMeans.REACHED_AT, 0, 4)
    assert out == [(t, 0) for t in (0, 25, 50, 75)] + [(t, 4) for t in (100, 125, 150, 175)]


def test_a_row_reached_at_its_instant_is_led_to_from_the_row_before() -> None:
    out = upsampled(Interpolation.LINEAR, RowMeans.REACHED_AT, 0, 4)
    assert [value for _, value in out] == [0, 1, 2, 3, 4, 4, 4, 4]


def test_a_row_that_is_a_target_from_its_instant_is_reached_at_the_next() -> None:
    out = upsampled(Interpolation.LINEAR, RowMeans.TARGET_FROM, 0, 4)
    assert [value for _, value in out] == [0, 0, 0, 0, 0, 1, 2, 3]


def test_a_cubic_meets_its_rows_and_does_not_overshoot() -> None:
    out = upsampled(Interpolation.CUBIC, RowMeans.REACHED_AT, 0, 0, 4, 4, 2)
    values = [value for _, value in out]
    assert values[::4] == [0, 0, 4, 4, 2]
    assert min(values) >= 0
    assert max(values) <= 4
    assert values[6] == pytest.approx(2)


def test_deltas_are_not_up_sampled() -> None:
    with pytest.raises(KindRefused, match='cannot be up-sampled'):
        Upsampling(1, Interpolation.HOLD, RowMeans.REACHED_AT, Kinds({'arm': Delta()}))


def test_the_output_rate_goes_on_over_a_join() -> None:
    uplink = HandUplink([chunk(*range(10))])
    player = ChunkPlayer(
        uplink,
        asking=Lead(cap_ns=S, margin_ns=0, fixed_ns=300 * MS),
        handoff=Continue(),
        upsampling=Upsampling(40 * MS, Interpolation.LINEAR, RowMeans.REACHED_AT),
    )
    t, instants = 0, []
    while t < 1600 * MS:
        if t > 830 * MS and len(uplink.answers) == 2 and not uplink.answers[1].done():
            uplink.answers[1].give(chunk(*range(7, 17)))
        commands, t_next = player(SEEN, t)
        instants += [t] if commands else []
        t = t_next
    assert {b - a for a, b in itertools.pairwise(instants)} == {40 * MS}


def points(commands: Any) -> list[tuple[int, float]]:
    trajectory = commands['arm']
    assert isinstance(trajectory, Trajectory)
    return [(due // MS, float(value[0])) for due, value in trajectory.points]


def test_a_whole_chunk_channel_gets_one_plan_when_a_chunk_loads() -> None:
    player = player_of(0, 1, 2, whole=WholeChunks(['arm'], 500 * MS))
    commands, resume = player(SEEN, 0)
    assert points(commands) == [(0, 0), (100, 1), (200, 2)]
    assert resume == 100 * MS
    assert player(SEEN, 100 * MS)[0] == {}
    assert player.statistics.emitted == 2


def test_a_plan_that_has_begun_starts_with_the_row_in_force() -> None:
    begun = Chunk.stamped(
        [{'timestamp': k / 10 - 0.25, 'arm': np.array([float(k)])} for k in range(5)], fps=10
    )
    uplink = HandUplink([begun])
    player = player_of(whole=WholeChunks(['arm'], 500 * MS), uplink=uplink)
    assert points(player(SEEN, 0)[0]) == [(-50, 2), (50, 3), (150, 4)]


def test_a_plan_reaches_no_further_ahead_than_it_may_and_is_renewed_in_time() -> None:
    player = player_of(*range(10), whole=WholeChunks(['arm'], 400 * MS))
    t, plans = 0, []
    while t < S:
        commands, t_next = player(SEEN, t)
        if commands:
            plans.append((t // MS, points(commands)))
        t = t_next
    covered = [due for _, plan in plans for due, _ in plan]
    assert set(covered) == {i * 100 for i in range(10)}
    assert all(plan[-1][0] <= at + 400 for at, plan in plans)
    for (_, before), (at, _) in itertools.pairwise(plans):
        assert at < before[-1][0]


def test_a_cancel_supersedes_a_plan_with_a_hold() -> None:
    player = player_of(*range(5), whole=WholeChunks(['arm'], 500 * MS))
    player(SEEN, 0)
    player(SEEN, 100 * MS)
    assert points(player.stop_commands(150 * MS)) == [(150, 1)]
    player2 = player_of(*range(5), whole=WholeChunks(['arm'], 500 * MS))
    player2(SEEN, 0)
    player2(SEEN, 100 * MS)
    player2.cancel()
    assert points(player2(SEEN, 150 * MS)[0]) == [(150, 1)]


def test_r29_a_plan_that_the_next_chunk_does_not_name_is_superseded_by_a_hold() -> None:
    uplink = HandUplink([chunk(*range(5)), chunk(7, 8, channel='grip')])
    player = ChunkPlayer(
        uplink,
        asking=Lead(cap_ns=S, margin_ns=0, fixed_ns=300 * MS),
        handoff=Continue(),
        whole=WholeChunks(['arm'], 500 * MS),
    )
    for t in (0, 100, 200):
        commands, _ = player(SEEN, t * MS)
    assert points(commands) == [(200, 2)]

"""The loop's rules, each named after the rule it pins, on a clock moved by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from seq_harness.playback.session import CEILING_NS, FLOOR_NS
from seq_harness.playback.uplink import PolicyError, StateLost, WorkerLost
from support.robots import Bench, joint_state, JOINTS, MS, S

T0 = 100 * S


def test_nothing_happens_before_a_start() -> None:
    bench = Bench()
    bench.state()
    assert bench.harness.round() == T0 + CEILING_NS
    assert bench.answers == []


def test_r39_r47_the_opening_round_calls_the_session_and_the_sleep_is_clamped() -> None:
    bench = Bench(asking='drain')
    wake = bench.begin()
    assert len(bench.answers) == 1
    assert wake == T0 + 10 * MS
    bench.give(0.0, 0.1)
    bench.clock.now += 1 * MS
    assert bench.harness.round() == T0 + 100 * MS, 'the next step comes before the next row'


def test_r39_an_instant_already_past_sleeps_for_the_floor() -> None:
    bench = Bench()
    bench.begin()
    bench.give(0.0, end='done')
    bench.clock.now += 1 * MS
    bench.harness.round()
    bench.clock.now += 100 * MS
    assert bench.harness.round() == bench.clock.now + FLOOR_NS


def test_rows_go_out_at_their_instants_and_join_without_a_gap() -> None:
    bench = Bench(lead_s=0.25)
    bench.begin()
    bench.clock.now += 5 * MS
    bench.give(0.0, 0.01, 0.02, 0.03, 0.04, 0.05)
    bench.until(T0 + 400 * MS)
    assert len(bench.answers) == 2
    bench.give(0.02, 0.03, 0.04, 0.05, 0.06, 0.07)
    bench.until(T0 + 900 * MS)
    instants = [at for at, _ in bench.sent]
    assert instants == [T0 + 5 * MS + i * 100 * MS for i in range(9)]
    figures = bench.harness.report().figures
    rows = figures['rows']
    lost = sum(rows['dropped'].values())
    assert rows['scheduled'] == rows['emitted'] + rows['merged'] + lost + rows['held']
    assert figures['lateness_ms']['max'] == 0


def test_r40_the_deadline_bounds_the_sleep_and_counts_from_the_first_call() -> None:
    bench = Bench(episode_s=0.02)
    bench.harness.start()
    bench.harness.round()
    bench.clock.now += 3 * S
    bench.harness.round()
    assert bench.live, 'no deadline runs before the first inputs'
    bench.state()
    first = bench.clock.now
    bench.harness.round()
    bench.clock.now += 5 * MS
    bench.give(0.0, 0.0)
    assert bench.harness.round() == first + 20 * MS
    bench.clock.now = first + 20 * MS
    bench.harness.round()
    assert bench.reason == 'deadline'
    assert [at for at, _ in bench.sent] == [first + 5 * MS]


def test_r44_commands_are_withheld_when_the_deadline_passes_during_the_call() -> None:
    bench = Bench(episode_s=0.25)
    bench.begin()
    bench.give(0.0, 0.01, 0.02, 0.03)
    bench.harness.round()
    bench.clock.now = T0 + 200 * MS

    def slow() -> None:
        bench.clock.now = T0 + 250 * MS

    bench.during_encode = slow
    bench.state()
    bench.harness.round()
    assert [at for at, _ in bench.sent] == [T0]
    assert bench.harness.report().figures['withheld'] == 1
    bench.harness.round()
    assert bench.reason == 'deadline'


def test_r46_rounds_that_commanded_nothing_are_counted() -> None:
    bench = Bench()
    bench.begin()
    bench.clock.now += 10 * MS
    bench.harness.round()
    assert bench.harness.report().figures['rounds'] == 2


def test_r48_a_second_start_is_refused_and_the_live_episode_goes_on() -> None:
    bench = Bench()
    bench.begin()
    answer = bench.harness.start()
    assert not answer.accepted
    assert 'running' in answer.reason
    assert bench.live


def test_a_stop_ends_the_episode_in_the_next_round_and_sends_nothing_more() -> None:
    bench = Bench()
    bench.begin()
    bench.give(0.0, 0.01, 0.02)
    bench.harness.round()
    wakes = bench.wakes
    assert bench.harness.stop('stop')
    assert bench.wakes == wakes + 1
    bench.clock.now += 100 * MS
    bench.harness.round()
    assert bench.reason == 'stop'
    assert len(bench.sent) == 1
    assert bench.scope.calls == ['retire', 'close']
    assert not bench.harness.stop('stop')


def test_r59_nothing_held_is_played_after_the_end() -> None:
    bench = Bench()
    bench.begin()
    bench.give(0.0, 0.01, 0.02)
    bench.harness.round()
    bench.harness.stop('stop')
    bench.until(T0 + 2 * S)
    assert len(bench.sent) == 1


def test_a_stop_during_the_session_call_withholds_its_commands() -> None:
    bench = Bench()
    bench.begin()
    bench.give(0.0, 0.01)
    bench.during_encode = lambda: bench.harness.withhold('loop_stalled')
    bench.harness.round()
    assert bench.sent == []
    bench.harness.round()
    assert bench.reason == 'loop_stalled'


def test_it_waits_for_the_first_inputs_and_then_names_what_never_came() -> None:
    bench = Bench()
    assert bench.harness.start().accepted
    assert bench.harness.round() == T0 + S
    assert bench.harness.waiting
    assert bench.answers == []
    bench.clock.now = T0 + 5 * S
    bench.harness.round()
    assert bench.reason == 'inputs_missing: state'


def test_a_stale_input_stops_play_by_name_just_after_its_limit() -> None:
    bench = Bench(inputs__state__max_age_s=0.45)
    bench.begin()
    bench.give(*([0.0] * 20))
    wake = bench.harness.round()
    while bench.live:
        bench.clock.now = wake
        wake = bench.harness.round()
    assert bench.reason == 'stale_input: state'
    assert bench.clock.now == T0 + 450 * MS + 1


@pytest.mark.parametrize(
    ('error', 'reason'),
    [
        (WorkerLost('gone'), 'worker_lost: gone'),
        (StateLost('new process'), 'policy_state_lost: new process'),
        (PolicyError('KeyError: wrist'), 'policy_error: KeyError: wrist'),
        (ZeroDivisionError('x'), 'exception: ZeroDivisionError: x'),
    ],
)
def test_a_failed_answer_ends_the_episode_with_its_reason(error: Exception, reason: str) -> None:
    bench = Bench()
    bench.begin()
    bench.answers[0].fail(error)
    bench.harness.round()
    assert bench.reason == reason
    assert bench.scope.calls == ['retire', 'close']


def test_a_failing_publisher_ends_the_episode() -> None:
    bench = Bench()
    bench.begin()
    bench.give(0.0)
    bench.fail_publish = OSError('no transport')
    bench.harness.round()
    assert bench.reason == 'exception: OSError: no transport'


def test_an_episode_that_does_not_open_is_answered_with_the_error() -> None:
    bench = Bench()
    bench.scope.close = _raise  # type: ignore[method-assign]
    bench.state()
    bench.harness.start()
    bench.harness.round()
    bench.harness.stop('stop')
    bench.harness.round()
    assert bench.reason == 'stop', 'a failure to close does not hide the reason'
    assert bench.harness.start().accepted


def _raise() -> None:
    raise OSError('refused')


def test_the_policys_end_goes_out_with_its_reason() -> None:
    bench = Bench()
    bench.begin()
    bench.give(0.0, 0.01, end='targets_reached')
    bench.until(T0 + S)
    assert len(bench.sent) == 2
    assert bench.reason == 'policy:targets_reached'


def test_steps_are_numbered_on_a_grid_and_an_ask_is_one_of_them() -> None:
    bench = Bench(lead_s=0.25)
    bench.begin()
    bench.give(*([0.0] * 8))
    bench.until(T0 + 590 * MS)
    assert [step.number for step in bench.scope.observed] == [1, 2, 3, 4]
    assert [step.t_ns for step in bench.scope.observed] == [
        T0 + i * 100 * MS for i in (1, 2, 3, 4)
    ]
    assert bench.scope.expected == [5], 'the player commits the step of its next ask'
    assert len(bench.answers) == 2


def test_instants_that_no_round_met_are_declared_skipped() -> None:
    bench = Bench()
    bench.begin()
    bench.clock.now = T0 + 305 * MS
    bench.harness.round()
    assert bench.scope.skipped == [1, 2]
    assert [step.number for step in bench.scope.observed] == [3]


def test_a_full_stream_pauses_the_grid_and_the_next_ask_but_never_the_rows() -> None:
    bench = Bench(lead_s=0.25)
    bench.begin()
    bench.give(*([0.0] * 6))
    bench.scope.full = True
    bench.until(T0 + 590 * MS)
    assert len(bench.sent) == 6
    assert bench.scope.observed == []
    assert len(bench.answers) == 1
    assert bench.harness.report().figures['pauses'] == 5
    bench.scope.full = False
    bench.until(T0 + 700 * MS)
    assert [step.number for step in bench.scope.observed] == [1]
    assert len(bench.answers) == 2


def test_a_row_far_from_the_measured_state_never_plays() -> None:
    bench = Bench()
    bench.begin()
    for _ in range(3):
        bench.give(0.9)
        while bench.live and bench.answers[-1].done():
            bench.clock.now = bench.harness.round()
            bench.state()
    assert bench.sent == []
    assert bench.reason.startswith('chunk_refused: row 0 (from 0): j1 makes a distance')


def test_a_preview_bounds_each_chunk_from_the_measured_state_that_does_not_follow() -> None:
    bench = Bench(asking='drain', handoff='arrival', preview=True)
    bench.begin()
    for first in (0.15, -0.15):
        bench.give(first, first)
        bench.until(bench.clock.now + 250 * MS)
    assert [values[0] for _, values in bench.sent] == [0.15, 0.15, -0.15, -0.15]
    bench.give(0.5)
    bench.until(bench.clock.now + 150 * MS)
    assert len(bench.sent) == 4, 'too far from where the arm is'


Putter = Callable[[Bench], Any]


@pytest.mark.parametrize(
    ('position', 'names', 'reason'),
    [
        ((0.1, float('nan')), JOINTS, 'j2 = nan'),
        ((0.1,), JOINTS, '2 joints are named, with 1 values'),
        ((), JOINTS, 'no position'),
    ],
)
def test_a_bad_joint_state_is_refused_and_does_not_refresh_the_age(
    position: tuple[float, ...], names: tuple[str, ...], reason: str
) -> None:
    bench = Bench()
    bench.state()
    bench.clock.now += 400 * MS
    now = bench.clock.now
    message = joint_state(position, now, names)
    arrival = bench.inputs.put('state', message, now_ns=now, ros_now_ns=now)
    assert reason in arrival.reason
    assert bench.inputs.expiry_ns(bench.inputs.snapshot()) == T0 + 500 * MS


def test_g3_joints_merge_over_messages_and_are_as_old_as_the_oldest() -> None:
    bench = Bench()
    for name, value, at in (('j2', 0.2, T0), ('j1', 0.1, T0 + 50 * MS)):
        assert bench.inputs.snapshot() == {}
        message = joint_state([value], at, [name])
        bench.inputs.put('state', message, now_ns=at, ros_now_ns=at)
    snapshot = bench.inputs.snapshot()
    assert snapshot['state'].value == {'j1': 0.1, 'j2': 0.2}
    assert bench.inputs.age_ns(snapshot, T0 + 100 * MS) == 100 * MS


@pytest.mark.parametrize(('stamp_ns', 'said'), [(0, 'zero'), (T0 - 20 * S, 'not within')])
def test_g15_an_implausible_stamp_is_replaced_by_the_arrival_and_said(
    stamp_ns: int, said: str
) -> None:
    bench = Bench()
    for stamp in (stamp_ns and stamp_ns - 10 * MS, stamp_ns):
        message = joint_state([0, 0], stamp)
        arrival = bench.inputs.put('state', message, now_ns=T0, ros_now_ns=T0)
        assert said in arrival.reason
    assert bench.inputs.age_ns(bench.inputs.snapshot(), T0) == 0


def test_an_age_counts_from_the_header_stamp() -> None:
    bench = Bench()
    message = joint_state([0, 0], T0 - 30 * MS)
    bench.inputs.put('state', message, now_ns=7 * S, ros_now_ns=T0)
    assert bench.inputs.age_ns(bench.inputs.snapshot(), 7 * S + MS) == 31 * MS

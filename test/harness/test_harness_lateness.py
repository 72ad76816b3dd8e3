"""A loop that is late, as after a freeze of its process: nothing of the old plan goes out."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from seq_harness.contract import Actions
from seq_harness.contract.connect import WorkerDeclaration
from support.robots import Bench, MS, S

T0 = 100 * S


def playing(hz: float = 20.0, **changes: Any) -> Bench:
    """Return a bench that plays the third of many rows at that rate, with inputs that last."""
    declaration = WorkerDeclaration(instance='one', actions=Actions(hz=hz))
    options = changes.pop('options', None)
    bench = Bench(None, options, declaration, inputs__state__max_age_s=5.0, **changes)
    bench.begin()
    bench.clock.now += 5 * MS
    bench.give(*[0.01 * i for i in range(60)], hz=hz)
    bench.until(bench.clock.now + round(2.5 * S / hz))
    return bench


def late_by(bench: Bench, late_ns: int) -> int:
    """Do a round so long after its instant; return when the next one is wanted."""
    due = bench.harness.expected_ns
    assert due is not None
    bench.clock.now = due + late_ns
    return bench.harness.round()


@pytest.mark.parametrize('late_ms', [151, 300, 450, 500])
def test_a_loop_that_was_frozen_drops_what_it_held_and_asks_anew(
    late_ms: int, caplog: pytest.LogCaptureFixture
) -> None:
    bench = playing()
    sent, asked = len(bench.sent), len(bench.answers)
    held = bench.harness.report().figures['rows']['held']
    with caplog.at_level(logging.WARNING):
        bench.until(late_by(bench, late_ms * MS))
    assert f'late: the {held} rows that it held are dropped' in caplog.text
    assert len(bench.sent) == sent, 'nothing of the old plan'
    assert len(bench.answers) == asked + 1
    figures = bench.harness.report().figures
    assert (figures['stalls'], figures['rows']['dropped']['late']) == (1, held)
    bench.clock.now += 20 * MS
    bench.state((0.3, 0.3))
    bench.give(*[0.3] * 8, hz=20)
    bench.harness.round()
    assert bench.sent[-1][1] == [0.3, 0.3], 'bounded from the measured state, not the last command'


@pytest.mark.parametrize(('hz', 'late_ms'), [(20.0, 150), (100.0, 99), (5.0, 490)])
def test_a_loop_that_is_less_late_than_three_rows_or_a_tenth_of_a_second_plays_on(
    hz: float, late_ms: int
) -> None:
    bench = playing(hz)
    sent = len(bench.sent)
    late_by(bench, late_ms * MS)
    assert len(bench.sent) == sent + 1
    assert bench.harness.report().figures['stalls'] == 0


def test_a_loop_that_is_later_than_half_a_second_ends_by_name() -> None:
    bench = playing()
    sent = len(bench.sent)
    late_by(bench, 500 * MS + 1)
    assert bench.reason == 'loop_stalled'
    assert len(bench.sent) == sent


def test_a_loop_that_is_late_twice_within_ten_seconds_ends_by_name() -> None:
    bench = playing()
    bench.until(late_by(bench, 200 * MS))
    bench.clock.now += 5 * MS
    bench.give(*[0.0] * 150, hz=20)
    bench.until(bench.clock.now + 5 * S)
    assert bench.live
    late_by(bench, 200 * MS)
    assert bench.reason == 'loop_stalled'


def test_a_loop_that_is_late_again_after_ten_seconds_plays_on() -> None:
    bench = playing(asking='drain', handoff='arrival')
    bench.until(late_by(bench, 200 * MS))
    bench.clock.now += 5 * MS
    bench.give(*[0.0] * 300, hz=20)
    bench.until(bench.clock.now + 10 * S)
    late_by(bench, 200 * MS)
    assert bench.live
    assert bench.harness.report().figures['stalls'] == 2


def test_a_freeze_between_a_rows_preparation_and_its_sending_lets_nothing_out() -> None:
    meanwhile = [0]

    def wait(instant_ns: int) -> None:
        bench.clock.now += meanwhile[0]

    bench = Bench(
        None,
        {'await_instant': wait},
        WorkerDeclaration(instance='one', actions=Actions(hz=20.0)),
        inputs__state__max_age_s=5.0,
    )
    bench.begin()
    bench.clock.now += 5 * MS
    bench.give(*[0.01 * i for i in range(60)], hz=20)
    bench.until(bench.clock.now + 125 * MS)
    sent, meanwhile[0] = len(bench.sent), 300 * MS
    bench.clock.now = T0 + 155 * MS
    wake = bench.harness.round()
    meanwhile[0] = 0
    bench.until(wake)
    assert len(bench.sent) == sent
    assert bench.harness.report().figures['stalls'] == 1
    assert bench.harness.report().figures['withheld'] == 1
    meanwhile[0] = 501 * MS
    bench.give(*[0.0] * 60, hz=20)
    bench.harness.round()
    assert bench.reason == 'loop_stalled'
    assert len(bench.sent) == sent


def test_a_late_loop_goes_on_once_its_inputs_have_come() -> None:
    bench = Bench(inputs__state__max_age_s=0.25)
    bench.begin()
    bench.give(*[0.0] * 20)
    bench.harness.round()
    wake = late_by(bench, 310 * MS)
    if wake > bench.clock.now + 50 * MS:
        bench.clock.now += 50 * MS
        bench.state()
    bench.clock.now = wake
    bench.harness.round()
    assert bench.live, 'the inputs that were there had come before the freeze'
    assert len(bench.answers) == 2


def test_while_nothing_plays_a_freeze_ends_nothing() -> None:
    bench = playing()
    bench.harness.pause()
    bench.harness.round()
    late_by(bench, 3 * S)
    assert bench.live
    bench.state()
    assert bench.harness.resume().accepted
    bench.harness.round()
    assert bench.harness.report().state.value == 'running'


def test_a_clock_that_goes_by_leaps_makes_no_loop_late() -> None:
    step = [200 * MS]
    bench = playing(options={'clock_step_ns': lambda: step[0]})
    late_by(bench, 200 * MS)
    assert bench.harness.report().figures['stalls'] == 0
    step[0] = 20 * MS
    late_by(bench, 200 * MS)
    assert bench.harness.report().figures['stalls'] == 1


def test_what_answers_a_question_from_before_a_freeze_does_not_play() -> None:
    bench = playing(lead_s=1.9)
    bench.until(T0 + 1200 * MS)
    assert len(bench.answers) == 2
    wake = late_by(bench, 300 * MS)
    sent = len(bench.sent)
    bench.give(*[0.2] * 20, hz=20)
    bench.until(wake)
    bench.until(bench.clock.now + 30 * MS)
    assert len(bench.sent) == sent
    bench.give(*[0.1] * 20, hz=20)
    bench.harness.round()
    assert bench.sent[-1][1] == [0.1, 0.1]

"""What is told of how chunks and answers go together."""

from __future__ import annotations

from typing import Any

from _going_on import Case, CASES, DRAINING, GoingOn, steady
import pytest
from seq_harness.playback.chunk import Chunk
from seq_harness.playback.modes import Mode
from seq_harness.playback.pace import expected_pace, measured_pace, Pace, SETTLED
from support.uplinks import MS, rows

DRAIN = Mode(asking='drain', handoff='arrival')


def chunk_of(count: int, hz: float) -> Chunk:
    return Chunk.at_rate(rows(*range(count)), hz)


def figures(played: int = SETTLED, chunk_ms: float = 533, answer_ms: float = 300) -> Any:
    return {
        'chunks': {'played': played, 'lasts_ms': chunk_ms},
        'answer_delay_ms': {'p50': answer_ms},
        'starved_s': 0.067 * (played - 1),
    }


def test_it_is_told_in_a_sentence() -> None:
    assert str(expected_pace(Mode(), chunk_of(8, 15), 0.3)) == (
        'chunk 0.53 s, answers 0.30 s: the arm stands about 0.07 s a chunk'
    )
    assert str(expected_pace(Mode(), chunk_of(8, 15), 0.6)) == (
        'chunk 0.53 s, answers 0.60 s: the arm stands about 0.60 s a chunk, and the next is asked '
        'for at its end, as drain does'
    )
    assert str(expected_pace(Mode(), chunk_of(16, 20), 0.3)) == (
        'chunk 0.80 s, answers 0.30 s: no stop between chunks'
    )


@pytest.mark.parametrize('case', [*CASES[:7], steady(16, 30, 220), steady(50, 30, 900)], ids=str)
def test_what_is_expected_is_what_comes_to_pass(case: Case) -> None:
    pace = expected_pace(Mode(), chunk_of(case.rows, case.hz), case.delay(0))
    ran = GoingOn(case).run()
    settled = ran.stood_s / (ran.answered - 2)
    assert pace is not None
    assert pace.stands_s == pytest.approx(settled, abs=1 / case.hz + 0.1 * case.delay(0))


@pytest.mark.parametrize('changes', [{}, DRAINING], ids=str)
def test_what_is_measured_is_what_comes_to_pass(changes: dict[str, Any]) -> None:
    run = GoingOn(CASES[0], **changes)
    ran = run.run()
    pace = measured_pace(DRAIN if changes else Mode(), run.harness.report().figures)
    assert pace is not None
    assert (round(pace.chunk_s, 3), round(pace.answer_s, 2)) == (0.533, 0.3)
    assert pace.stands_s == pytest.approx(ran.stood_s / (ran.answered - 1), abs=0.02)


def test_a_plan_that_is_drained_stands_for_an_answer_and_other_modes_are_left_open() -> None:
    assert expected_pace(DRAIN, chunk_of(8, 15), 0.3) == Pace(0.533333333, 0.3, 0.3, False)
    assert expected_pace(Mode(asking='threshold'), chunk_of(8, 15), 0.3) is None
    assert expected_pace(Mode(handoff='append'), chunk_of(8, 15), 0.3) is None


def test_a_lead_that_is_set_too_short_makes_the_arm_stand() -> None:
    pace = expected_pace(Mode(lead_ns=100 * MS), chunk_of(50, 50), 0.3)
    assert pace is not None
    assert pace.stands_s == pytest.approx(0.2)


def test_nothing_is_told_before_some_chunks_have_played() -> None:
    assert measured_pace(Mode(), {}) is None
    assert measured_pace(Mode(), figures(SETTLED - 1)) is None
    pace = measured_pace(Mode(), figures())
    assert pace is not None
    assert pace.stands
    assert not pace.drains
    slow = measured_pace(Mode(), figures(answer_ms=533))
    assert slow is not None
    assert slow.drains
    assert slow.stands_s == pytest.approx(0.067)

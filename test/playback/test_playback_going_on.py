"""A policy that goes on from where the arm is: short chunks, long answers, answers with a tail."""

from __future__ import annotations

import itertools

from _going_on import Case, CASES, DRAINING, GoingOn, Ran, S, SPEED, START_NS, steady, tailed
import pytest

LAGGING = [
    *((case, 0.06) for case in CASES),
    *((case, lag_s) for case in (CASES[0], CASES[6]) for lag_s in (0.03, 0.1)),
]
TAILED = [tailed(8, 15, 300, 1200, seed) for seed in range(2, 5)]


def both(case: Case, lag_s: float = 0.0) -> tuple[Ran, Ran]:
    """Return a run of the default, and one of `drain`."""
    return GoingOn(case, lag_s).run(), GoingOn(case, lag_s, **DRAINING).run()


def row(case: Case) -> float:
    """Return how far the policy goes in a row."""
    return SPEED / case.hz


@pytest.mark.parametrize('case', [*CASES, *TAILED], ids=str)
def test_r14_the_default_goes_on_evenly_and_no_slower_than_drain(case: Case) -> None:
    ran, drained = both(case)
    assert ran.reason == drained.reason == ''
    assert ran.steps_back == 0
    assert ran.travelled == pytest.approx(ran.progress, rel=0.02)
    assert ran.off_after_standing < 1
    assert ran.dropped_whole <= ran.answered / 10
    least = 1.1 if case.delay(1) < case.lasts_s or case.delay(2) < case.lasts_s else 0.97
    assert ran.progress >= least * drained.progress


@pytest.mark.parametrize(('case', 'lag_s'), LAGGING, ids=str)
def test_r14_an_arm_that_lags_is_stepped_back_no_further_than_by_drain(
    case: Case, lag_s: float
) -> None:
    ran, drained = both(case, lag_s)
    assert ran.reason == ''
    assert ran.dropped_whole == 0
    assert ran.largest_back <= drained.largest_back + 0.01 * row(case)
    assert ran.progress >= 0.97 * drained.progress


@pytest.mark.parametrize(
    ('case', 'stands'),
    [
        (steady(16, 30, 230), False),
        (steady(50, 50, 430), False),
        (steady(50, 50, 480), True),
        (steady(50, 30, 720), False),
        (steady(50, 30, 800), True),
    ],
    ids=str,
)
def test_r14_the_arm_stands_only_where_an_answer_takes_seven_sixteenths_of_a_chunk(
    case: Case, stands: bool
) -> None:
    assert (case.delay(0) > 7 / 16 * case.lasts_s) is stands
    settled = [t for t, _ in GoingOn(case).run().sent if t > START_NS + 4 * S]
    longest_ns = max(after - before for before, after in itertools.pairwise(settled))
    assert (longest_ns > 1.5e9 / case.hz) is stands

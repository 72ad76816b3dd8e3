"""What a policy answers to the warm-up, read as an act's answer is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from seq_harness.contract import Actions, WorkerDeclaration
from seq_harness.pipeline import AnswerRefused, Pipeline
from seq_harness.playback.uplink import PolicyError
from support.forms import FORMS, REFUSED, WIDTH
from support.robots import Bench, HandScope, settings_of

COLUMNS = [f'joint_{number}' for number in range(1, WIDTH + 1)]


def pipeline(**changes: Any) -> Pipeline:
    declaration = WorkerDeclaration(
        instance='one', columns=COLUMNS, actions=Actions(key='actions', hz=10)
    )
    return Pipeline(settings_of(channels__arm__columns=COLUMNS[:2], **changes), declaration)


@pytest.mark.parametrize('form', sorted(FORMS.keys() - REFUSED.keys() - {'nothing'}))
def test_an_answer_that_an_act_may_give_is_read_without_a_word(form: str) -> None:
    assert pipeline().check_answer(FORMS[form]()) == ''


@pytest.mark.parametrize('form', sorted(REFUSED))
def test_g51_the_answer_to_the_warm_up_is_read_as_an_acts(form: str) -> None:
    with pytest.raises(AnswerRefused, match=REFUSED[form]):
        pipeline().check_answer(FORMS[form]())


def test_an_answer_of_nothing_is_told() -> None:
    assert 'answered nothing' in pipeline().check_answer(None)


def test_only_rows_that_play_and_columns_that_are_commanded_count() -> None:
    rows = np.zeros((4, WIDTH), np.float32)
    rows[:, -1] = np.nan
    rows[2:] = np.nan
    assert pipeline(horizon_rows=2).check_answer({'actions': rows}) == ''


class Answering(HandScope):
    """A policy's episode that answers a form, perhaps from another process than before."""

    answered_anew = False
    form = 'plain'

    def infer(self, step: Any, plan: Any = None) -> Any:
        return FORMS[self.form]()


@pytest.mark.parametrize('form', sorted(REFUSED))
def test_the_first_answer_of_another_process_is_read_as_that_to_a_warm_up(form: str) -> None:
    declaration = WorkerDeclaration(
        instance='one', columns=COLUMNS, actions=Actions(key='actions', hz=10)
    )
    bench = Bench(declaration=declaration, channels__arm__columns=COLUMNS[:2])
    bench.scope = scope = Answering()
    bench.begin()
    assert bench.works[-1]() is not None
    scope.answered_anew = True
    assert bench.works[-1]() is not None
    scope.form = form
    with pytest.raises(PolicyError, match='another worker process answered: '):
        bench.works[-1]()

"""Which rows of an answer play."""

from typing import Any

import numpy as np
import pytest
from seq_harness.contract import Actions, rows_of, RowsRefused

OBJECT = object()


def plain(rows: list[Any]) -> list[Any]:
    """Make rows comparable."""
    return [row.tolist() if isinstance(row, np.ndarray) else row for row in rows]


@pytest.mark.parametrize(
    'answer',
    [{'a': 1}, 'text', b'bytes', 1, 2.5, None, OBJECT, [1, 2.0, True], [], (1, 2), {1, 2}],
)
def test_an_answer_without_rows_is_one_action(answer: Any) -> None:
    assert rows_of(answer) == [answer]


def test_a_row_of_numbers_is_one_action_whatever_holds_it() -> None:
    assert plain(rows_of(np.zeros(3))) == [[0, 0, 0]]
    assert rows_of(np.float32(1)) == [1]
    assert rows_of(np.array(1.0)) == [1]
    assert rows_of([np.float32(1), np.int64(2)]) == [[1, 2]]


@pytest.mark.parametrize(
    ('answer', 'rows'),
    [
        (np.zeros((2, 3)), [[0, 0, 0], [0, 0, 0]]),
        (np.zeros((0, 3)), []),
        ([[1, 2], [3, 4]], [[1, 2], [3, 4]]),
        ([(1, 2), [3, 4]], [(1, 2), [3, 4]]),
        ([np.zeros(2), [1, 2]], [[0, 0], [1, 2]]),
        ([[], []], [[], []]),
    ],
)
def test_equal_rows_play_one_by_one(answer: Any, rows: list[Any]) -> None:
    assert plain(rows_of(answer)) == rows


@pytest.mark.parametrize(
    'answer',
    [
        np.zeros((1, 2, 3)),
        [[1], [1, 2]],
        [{'a': 1}],
        [1, [1]],
        [np.zeros((2, 2))],
        [np.array(1.0)],
        ['a', 'b'],
        [None],
        [b'a'],
    ],
)
def test_an_answer_that_reads_two_ways_is_refused(answer: Any) -> None:
    with pytest.raises(RowsRefused, match='declare actions'):
        rows_of(answer)


@pytest.mark.parametrize(
    ('answer', 'declared', 'rows'),
    [
        ({'actions': [[1], [2]], 'end': 'x'}, {'key': 'actions'}, [[1], [2]]),
        ([{'a': 1}, {'a': 2}], {}, [{'a': 1}, {'a': 2}]),
        ([1, 2, 3], {'open_loop_horizon': 2}, [1, 2]),
        ([1, 2], {'open_loop_horizon': 5}, [1, 2]),
        (np.zeros(2), {}, [0, 0]),
        (np.zeros((2, 1, 1)), {}, [[[0]], [[0]]]),
        ((1, 2), {}, [1, 2]),
    ],
)
def test_declared_rows_are_the_elements_of_their_field(
    answer: Any, declared: Any, rows: list[Any]
) -> None:
    assert plain(rows_of(answer, Actions(**declared))) == rows
    assert plain(rows_of(answer, declared)) == rows


@pytest.mark.parametrize(
    ('answer', 'declared'),
    [
        ({'x': [1]}, {'key': 'actions'}),
        ([1], {'key': 'actions'}),
        ({'a': 1}, {}),
        ('ab', {}),
        (b'ab', {}),
        (1, {}),
        (None, {}),
        (np.array(1.0), {}),
        ([], {}),
        (np.zeros((0, 3)), {}),
    ],
)
def test_an_answer_without_the_declared_rows_is_refused(answer: Any, declared: Any) -> None:
    with pytest.raises(RowsRefused):
        rows_of(answer, declared)

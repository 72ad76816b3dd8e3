"""Which rows of a policy's answer play."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Number
from typing import Any

from seq_harness.contract.own_io import Actions


class RowsRefused(ValueError):
    """An answer that cannot be told into rows."""


def rows_of(answer: Any, actions: Actions | Mapping[str, Any] | None = None) -> list[Any]:
    """
    List the rows of an answer that play, in order.

    With `actions` declared, they are the elements of its field, cut to `open_loop_horizon`.
    Without, a 2-D array or a list of lists of one length plays row by row, and a dict, a text, a
    number, a list of numbers or a 1-D array is one row.

    Raises
    ------
    RowsRefused
        The answer holds no rows, or may be read in more than one way.

    """
    if actions is None:
        return _undeclared_rows(answer)
    declared = actions if isinstance(actions, Actions) else Actions.model_validate(actions)
    held = answer
    if declared.key is not None:
        if not isinstance(answer, Mapping) or declared.key not in answer:
            raise RowsRefused(
                f'the rows are declared under the key {declared.key!r}, and the answer is '
                f'{_describe(answer)}'
            )
        held = answer[declared.key]
    if not (isinstance(held, (list, tuple)) or _dimensions(held)):
        raise RowsRefused(
            f'a list of rows or an array of them was expected, got {_describe(held)}'
        )
    rows = list(held)
    if not rows:
        raise RowsRefused('at least one row was expected, and the answer holds none')
    return rows[: declared.open_loop_horizon]


def _undeclared_rows(answer: Any) -> list[Any]:
    dimensions = _dimensions(answer)
    if dimensions is not None and dimensions > 2:
        raise RowsRefused(_unclear(f'an array of {dimensions} dimensions'))
    if dimensions == 2:
        return list(answer)
    if isinstance(answer, (list, tuple)):
        return _rows_of_list(answer)
    return [answer]


def _rows_of_list(answer: Sequence[Any]) -> list[Any]:
    if all(isinstance(item, Number) for item in answer):
        return [answer]
    if not all(_is_flat(item) for item in answer):
        kinds = sorted({type(item).__name__ for item in answer})
        raise RowsRefused(_unclear(f'a list of {", ".join(kinds)}'))
    lengths = sorted({len(item) for item in answer})
    if len(lengths) > 1:
        raise RowsRefused(_unclear(f'a list of rows of {lengths} values'))
    return list(answer)


def _is_flat(item: Any) -> bool:
    return isinstance(item, (list, tuple)) or _dimensions(item) == 1


def _dimensions(value: Any) -> int | None:
    """Count an array's dimensions, of whichever library; None is no array."""
    dimensions = getattr(value, 'ndim', None)
    return dimensions if isinstance(dimensions, int) else None


def _describe(answer: Any) -> str:
    if isinstance(answer, Mapping):
        return f'a mapping with the keys {sorted(map(str, answer))}'
    dimensions = _dimensions(answer)
    if dimensions is not None:
        return f'an array of {dimensions} dimensions'
    return f'of type {type(answer).__name__}'


def _unclear(what: str) -> str:
    return (
        f'the answer is {what}, which is neither one row nor rows of one length: declare actions, '
        'or answer a list of rows'
    )

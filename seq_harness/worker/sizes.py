"""How much an observation weighs, measured without recursion and within bounds."""

from collections.abc import Mapping
from typing import Any

import numpy as np

HEAD_BYTES = 9
"""What a number, or the head of anything else, counts as: its widest encoding."""


class TooManyValues(ValueError):
    """A body of more separate values than a worker walks through."""


def measure(value: Any, most_values: int) -> int:
    """
    Return about how many bytes `value` takes on the wire.

    Raises
    ------
    TooManyValues
        It holds more than `most_values` values, counting an array, a text or bytes as one.

    """
    nbytes, seen, pending = 0, 0, [value]
    while pending:
        item = pending.pop()
        seen += 1
        if isinstance(item, Mapping):
            pending.extend(item.keys())
            pending.extend(item.values())
        elif isinstance(item, (list, tuple)):
            pending.extend(item)
        nbytes += HEAD_BYTES + _payload(item)
        if seen + len(pending) > most_values:
            raise TooManyValues(
                f'the body holds more than {most_values} separate values: send long lists of '
                'numbers as arrays'
            )
    return nbytes


def _payload(item: Any) -> int:
    if isinstance(item, np.ndarray):
        return int(item.nbytes)
    return len(item) if isinstance(item, (str, bytes)) else 0

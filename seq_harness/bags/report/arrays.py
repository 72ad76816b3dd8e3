"""The numbers of a page, each array once, as its script reads them."""

from __future__ import annotations

import base64
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

Reference: TypeAlias = dict[str, int]
"""Stands in a trace for one of the arrays."""


class Arrays:
    """Arrays in base64, so that lines over the same instants share them."""

    def __init__(self) -> None:
        self._packed: list[dict[str, str]] = []
        self._known: dict[tuple[int, str], tuple[Reference, npt.NDArray[Any]]] = {}

    def put(self, values: npt.NDArray[Any], kind: Literal['f4', 'f8'] = 'f4') -> Reference:
        """Add an array, or find it again; `f8` is for times, whose digits f4 does not hold."""
        key = id(values), kind
        if key not in self._known:
            data = np.ascontiguousarray(values, np.dtype(f'<{kind}')).tobytes()
            self._packed.append({'kind': kind, 'data': base64.b64encode(data).decode('ascii')})
            # The array is kept, so that no other gets its id.
            self._known[key] = {'array': len(self._packed) - 1}, values
        return self._known[key][0]

    def plain(self) -> list[dict[str, str]]:
        """Return them in order, fit for JSON."""
        return self._packed

"""One answer of a policy in many forms, right and wrong ones."""

from __future__ import annotations

from collections.abc import Callable
import threading
from typing import Any

import numpy as np
from seq_harness.contract import Actions

ROWS, WIDTH = 4, 6


def _rows(*shape: int, value: float = 0.0) -> Any:
    return np.full(shape or (ROWS, WIDTH), value, np.float32)


FORMS: dict[str, Callable[[], Any]] = {
    'plain': lambda: {'actions': _rows()},
    'lists': lambda: {'actions': _rows().tolist()},
    'float16': lambda: {'actions': _rows().astype(np.float16)},
    'batch': lambda: {'actions': _rows(1, ROWS, WIDTH)},
    'end': lambda: {'actions': _rows(0, WIDTH), 'end': 'done'},
    'nothing': lambda: None,
    'width': lambda: {'actions': _rows(ROWS, WIDTH + 1)},
    'batches': lambda: {'actions': _rows(2, ROWS, WIDTH)},
    'key': lambda: {'action': _rows()},
    'nan': lambda: {'actions': np.where(np.eye(ROWS, WIDTH), np.nan, 0).astype(np.float32)},
    'infinite': lambda: {'actions': _rows(value=np.inf)},
    'text': lambda: {'actions': 'open'},
    'empty': lambda: {'actions': _rows(0, WIDTH)},
}

REFUSED = {
    'width': r'rows of 6 columns were expected; an array of shape \(4, 7\) came',
    'batches': r'shape \(2, 4, 6\)',
    'key': r"must hold its rows under 'actions'; it has \['action'\]",
    'nan': r'row 0 \(from 0\): column 0 joint_1 is not finite',
    'infinite': 'is not finite',
    'text': 'not numbers',
    'empty': 'answered no rows to the warm-up',
}
"""What is said of each form that no act may answer."""


class Form:
    """Answer one form, whatever is seen."""

    def __init__(self, form: str, joints: int = WIDTH) -> None:
        self.columns = [f'joint_{number}' for number in range(1, joints + 1)]
        self.actions = Actions(key='actions', hz=20.0)
        self._form = form

    def infer(self, inputs: Any) -> Any:
        """Answer the form."""
        return FORMS[self._form]()


class Hanging(Form):
    """Answer the warm-up, and after that never."""

    def __init__(self) -> None:
        super().__init__('plain')
        self._acts = 0

    def infer(self, inputs: Any) -> Any:
        """Answer the first act."""
        self._acts += 1
        if self._acts > 1:
            threading.Event().wait()
        return super().infer(inputs)

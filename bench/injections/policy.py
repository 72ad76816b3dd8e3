"""A policy that moves an arm on slowly, and misbehaves once a file says how."""

from __future__ import annotations

import json
import os
from pathlib import Path
import time
from typing import Any

from injections.limits import HZ, JOINTS
import numpy as np
from seq_harness.contract.camera import Camera
from seq_harness.contract.own_io import Actions, Observations, Stream
from seq_harness.contract.wire import KEY_STEPS
from seq_harness.worker.policies.joints import newest_state

CAMERA = Camera(width=32, height=24, resize='pad', filter='bilinear', codec='jpeg', quality=90)
SPEED = 0.1
"""How fast every joint goes on from where it is, in rad/s."""


class PolicyBroke(RuntimeError):
    """The failure that the file asked for."""


class Steered:
    """
    Answer rows that go on at SPEED from where the arm is measured.

    `fault` names the file, of JSON: `{"do": NAME, ...}`, where `_misbehaved` lists the names. With
    `velocities` the rows are the speed itself. With `remembers` the policy keeps state. With
    `absolute` the rows go on from where the arm was first, whatever is measured.
    """

    name = 'steered'
    observations = Observations({'front': Stream(camera=CAMERA), 'state': Stream()})

    def __init__(
        self,
        fault: str = '',
        rows: int = 8,
        hz: float = HZ,
        velocities: bool = False,
        remembers: bool = False,
        width: int = len(JOINTS),
        load_s: float = 0.0,
        absolute: bool = False,
    ) -> None:
        self.columns = list(JOINTS)[:width]
        self.actions = Actions(key='actions', hz=hz, open_loop_horizon=rows)
        self.keeps_state = remembers
        self._file = Path(fault) if fault else None
        self._rows, self._hz, self._absolute = rows, hz, absolute
        self._velocities, self._load_s = velocities, load_s
        self._first: Any = None

    def load(self) -> None:
        """Take as long as was asked for."""
        time.sleep(self._load_s)

    def infer(self, inputs: dict[str, Any]) -> Any:
        """Answer one chunk, or what the file asks for."""
        state = newest_state(inputs, self.columns)
        if self._first is None or not self._absolute:
            self._first = np.asarray(state)
        began = inputs[KEY_STEPS][-1] if self._absolute else 0
        ahead = SPEED * (began + np.arange(self._rows) + 1.0)[:, None] / self._hz
        rows = self._first + ahead
        if self._velocities:
            rows = np.full((self._rows, len(JOINTS)), SPEED)
        if self._file is None or not self._file.exists():
            return {'actions': rows.astype(np.float32)}
        return _misbehaved(json.loads(self._file.read_text()), rows)


def _misbehaved(fault: dict[str, Any], rows: Any) -> Any:
    """Do what the file says; return the answer, if there is one."""
    what = fault['do']
    if what == 'raise':
        raise PolicyBroke('the policy broke')
    if what == 'exit':
        os._exit(3)
    if what == 'delay':
        time.sleep(fault['s'])
    if what == 'value':
        rows[fault.get('row', 0) :, 0] = float(fault['value'])
    if what == 'shift':
        rows[fault.get('row', 0) :] += fault['by']
    answers: dict[str, Any] = {
        'wide': np.hstack([rows, rows]),
        'narrow': rows[:, :1],
        'empty': rows[:0],
        'text': 'no rows at all',
        'words': [['a'] * len(JOINTS)] * 4,
        'ragged': [[0.0] * 3, [0.0] * 2],
        'deep': rows[:, None],
        'batch': rows[None],
        'complex': rows.astype(np.complex64),
        'many': np.tile(rows[:1], (20_000, 1)),
    }
    if what == 'key':
        return {'motions': rows}
    if what == 'bare':
        return rows
    if what == 'end':
        return {'actions': rows[:2], 'end': 'done'}
    answer = answers.get(what, rows)
    return {'actions': answer.astype(np.float32) if answer is rows else answer}

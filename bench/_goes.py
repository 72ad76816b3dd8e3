"""A policy that goes on from where the arm is, and takes its time, for benchmarks of the node."""

from __future__ import annotations

import json
import os
import time
from typing import Any

import numpy as np
from seq_harness.contract.own_io import Actions, Observations, Stream

GOES = 'GOES'
"""The variable of the environment that says how it goes."""
JOINTS = 6
SPEED = 0.4
TURN = 2.0
"""Where joint 1 turns, in rad: its limits are not far."""


class Goes:
    """
    Read `state`; answer rows that lead joint 1 on by 0.4 rad/s, `delay` s later; turn at 2 rad.

    One answer in ten takes `tail` s, where that is not 0.
    """

    name = 'goes'
    observations = Observations({'state': Stream()})

    def __init__(self) -> None:
        """Take `rows`, `hz`, `delay` and `tail` from the environment, as JSON."""
        of = json.loads(os.environ[GOES])
        self.columns = [f'joint_{number + 1}' for number in range(JOINTS)]
        self.actions = Actions(key='actions', hz=of['hz'])
        self._step = np.eye(1, JOINTS, dtype=np.float32) * SPEED / of['hz']
        self._rows = np.arange(of['rows'], dtype=np.float32)[:, np.newaxis]
        self._delay, self._tail, self._acts = of['delay'], of['tail'] or of['delay'], 0

    def infer(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """Answer one chunk."""
        self._acts += 1
        time.sleep(self._tail if self._acts % 10 == 5 else self._delay)
        state = np.asarray(inputs['observations'][-1]['state'])
        if abs(state[0]) > TURN and state[0] * self._step[0, 0] > 0:
            self._step = -self._step
        return {'actions': state + self._rows * self._step}

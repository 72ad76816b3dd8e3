"""A policy that keeps the arm where it is."""

from __future__ import annotations

from typing import Any

import numpy as np
from seq_harness.contract.own_io import Actions, Observations, Stream
from seq_harness.worker.policies.joints import joint_names, newest_state


class Hold:
    """
    Answer rows that hold the joint positions of the newest observation.

    Reads `state`, the joint positions as float32 [joints]; answers `actions`, float32
    [rows, joints] in the unit of the state. With `joints=0` any number of joints is held, and no
    columns are declared.
    """

    name = 'hold'
    observations = Observations({'state': Stream(), 'prompt': Stream()})

    def __init__(self, joints: int = 6, rows: int = 16, hz: float = 20.0) -> None:
        self.columns = joint_names(joints)
        self.actions = Actions(key='actions', hz=hz, open_loop_horizon=rows)
        self._rows = rows

    def infer(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """Answer one chunk."""
        state = newest_state(inputs, self.columns)
        return {'actions': np.tile(state, (self._rows, 1))}

"""A policy that swings every joint a little about the pose it first saw."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from seq_harness.contract.episode import Episode
from seq_harness.contract.own_io import Actions, Observations, Stream
from seq_harness.contract.wire import KEY_STEPS
from seq_harness.worker.policies.joints import joint_names, newest_state

FIRST_POSE = 'first_pose'


class Sine:
    """
    Answer rows of a sine about the joint positions of an episode's first act.

    Reads `state`, float32 [joints] in rad; answers `actions`, float32 [rows, joints] in rad, the
    first of which is due at the observation's step. It swings by `amplitude_rad` and starts from
    rest at the pose of step 0.
    """

    name = 'sine'
    observations = Observations({'state': Stream(), 'prompt': Stream()})

    def __init__(
        self,
        joints: int = 6,
        rows: int = 16,
        hz: float = 20.0,
        amplitude_rad: float = 0.05,
        period_s: float = 4.0,
    ) -> None:
        self.columns = joint_names(joints)
        self.actions = Actions(key='actions', hz=hz, open_loop_horizon=rows)
        self._rows = rows
        self._hz = hz
        self._amplitude_rad = amplitude_rad
        self._period_s = period_s

    def infer(self, inputs: dict[str, Any], episode: Episode) -> dict[str, Any]:
        """Answer the chunk that begins at the observation's step."""
        state = newest_state(inputs, self.columns)
        pose = episode.state.setdefault(FIRST_POSE, np.array(state))
        steps = inputs[KEY_STEPS][-1] + np.arange(self._rows)
        angle = 2 * math.pi * steps / (self._hz * self._period_s)
        swing = self._amplitude_rad * np.sin(angle)
        return {'actions': (pose + swing[:, None]).astype(np.float32)}

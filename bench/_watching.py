"""A policy that reads two cameras and holds the arm, for benchmarks of the node."""

from __future__ import annotations

from typing import Any

import numpy as np
from seq_harness.contract.camera import Camera
from seq_harness.contract.own_io import Actions, Observations, Stream

CAMERA = Camera(width=224, height=224, resize='pad', filter='bilinear', codec='jpeg', quality=90)
JOINTS = 6


class Watching:
    """Read `front`, `wrist` and `state`; answer rows of zero at 100 Hz."""

    name = 'watching'
    observations = Observations(
        {'front': Stream(camera=CAMERA), 'wrist': Stream(camera=CAMERA), 'state': Stream()}
    )

    def __init__(self, rows: int = 50, hz: float = 100.0) -> None:
        self.columns = [f'joint_{number + 1}' for number in range(JOINTS)]
        self.actions = Actions(key='actions', hz=hz, open_loop_horizon=rows)
        self._rows = rows

    def infer(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """Answer one chunk."""
        return {'actions': np.zeros((self._rows, JOINTS), np.float32)}

"""Reaching for the green target in a server's own process: numpy, and our model of the arm."""

from __future__ import annotations

from contextlib import suppress
import math
from typing import Any

import numpy as np
import numpy.typing as npt
from seq_harness.sim.camera import HEIGHT, table_point, WIDTH
from seq_harness.sim.kinematics import inverse, OutOfReach

ROWS, STEP_RAD = 16, 0.02
GREENEST, LEAST_PIXELS, NEAR_PX = 80, 12, 40.0
JUMP_M = 0.06
END = 'targets_reached'


class Reaching:
    """Pursue the target that frames show, until it has jumped so many times."""

    def __init__(self, jumps: int = 3) -> None:
        self._wanted = jumps
        self._target: tuple[float, float] | None = None
        self._jumps = 0

    def answer(self, frame: npt.NDArray[Any], joints: Any) -> dict[str, Any]:
        """Return `actions` [16, 6], joint positions in rad for 20 rows/s, and perhaps `end`."""
        seen = _seen(frame)
        if seen is not None:
            moved = self._target is not None and math.dist(seen, self._target) > JUMP_M
            self._jumps += moved
            self._target = seen
        rows = self._rows(np.asarray(joints, np.float64)).astype(np.float32)
        return {'actions': rows, 'end': END} if self._jumps >= self._wanted else {'actions': rows}

    def _rows(self, joints: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        goal = joints
        if self._target is not None and self._jumps < self._wanted:
            with suppress(OutOfReach):
                goal = np.asarray(inverse(*self._target))
        far = float(np.abs(goal - joints).max())
        steps = np.minimum(np.arange(1, ROWS + 1) * STEP_RAD / max(far, STEP_RAD), 1.0)
        return np.asarray(joints + steps[:, np.newaxis] * (goal - joints))


def _seen(frame: npt.NDArray[Any]) -> tuple[float, float] | None:
    """Return where on the table the green target lies, in metres."""
    wide = frame.astype(np.int16)
    excess = wide[..., 1] - np.maximum(wide[..., 0], wide[..., 2])
    rows, columns = np.nonzero(excess > GREENEST)
    if len(rows) < LEAST_PIXELS:
        return None
    u = (columns + 0.5) * WIDTH / frame.shape[1]
    v = (rows + 0.5) * HEIGHT / frame.shape[0]
    near = np.hypot(u - np.median(u), v - np.median(v)) < NEAR_PX
    return table_point(float(u[near].mean()), float(v[near].mean())) if near.any() else None

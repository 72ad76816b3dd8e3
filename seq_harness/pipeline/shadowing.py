"""How far a preview's commands are from what the robot did meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from seq_harness.playback.channels import Vector
from seq_harness.playback.kinds import Kinds
from seq_harness.playback.session import Commands, Observation
from seq_harness.playback.whole import Trajectory
from seq_harness.settings import ChannelSettings


class ShadowDistance:
    """
    Compare every command that a preview shows with the state measured in the same round.

    The paced thread records; any thread may read the figures.
    """

    def __init__(
        self,
        channels: tuple[ChannelSettings, ...],
        kinds: Kinds,
        measured: Callable[[Observation], Mapping[str, Vector]],
    ) -> None:
        self._joints = {item.name: item.joints for item in channels}
        self._kinds = kinds
        self._measured = measured
        self.begin()

    def begin(self) -> None:
        """Forget what an earlier episode showed."""
        self._counts: dict[str, int] = {}
        self._sums: dict[str, float] = {}
        self._worst: dict[str, tuple[float, str]] = {}

    def record(self, observation: Observation, t: int, commands: Commands) -> None:
        """Take the commands of the round at `t`; rates and changes are no places."""
        measured = self._measured(observation) if commands else {}
        for name, value in commands.items():
            if self._kinds[name].measured and name in measured:
                self._add(name, self._distances(name, measured[name], value))

    def figures(self) -> dict[str, dict[str, Any]]:
        """Return for each channel the mean and the largest distance, and the joint it was of."""
        return {
            name: {
                'mean': round(self._sums[name] / count, 5),
                'max': round(self._worst[name][0], 5),
                'joint': self._worst[name][1],
            }
            for name, count in self._counts.copy().items()
        }

    def _distances(self, name: str, measured: Vector, value: Any) -> Vector:
        place = value.points[0][1] if isinstance(value, Trajectory) else value
        return self._kinds[name].distance(measured, np.asarray(place))

    def _add(self, name: str, distances: Vector) -> None:
        at = int(np.argmax(distances))
        largest = float(distances[at])
        # A pose has two distances, of its place and of its turn, and seven columns.
        joints = self._joints[name]
        joint = joints[at] if distances.size == len(joints) else ('place', 'turn')[at]
        self._sums[name] = self._sums.get(name, 0.0) + largest
        self._worst[name] = max(self._worst.get(name, (-1.0, '')), (largest, joint))
        self._counts[name] = self._counts.get(name, 0) + 1

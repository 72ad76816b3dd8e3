"""Seams that take every chunk into account which says something about an instant."""

from __future__ import annotations

from typing import Any

import numpy as np
from seq_harness.playback.anchors import Arrived
from seq_harness.playback.blending import blended
from seq_harness.playback.kinds import Kinds
from seq_harness.playback.mixture import Mixture
from seq_harness.playback.plan import Plan, Waypoint
from seq_harness.playback.rotations import Vector

AGGREGATES = {
    'latest': 1.0,
    'weighted': 0.7,
    'average': 0.5,
    'conservative': 0.3,
}
"""The share of the new chunk in each aggregate of the old plan and the new."""


class Aggregate:
    """Blend every row with the old plan's at its instant, by one share throughout."""

    def __init__(self, how: str) -> None:
        """`how` is one of `AGGREGATES`."""
        self._share = AGGREGATES[how]

    def sew(self, old: Plan | None, new: Plan, arrived: Arrived, kinds: Kinds) -> Plan:
        if old is None or self._share == 1.0:
            return new
        return new.replaced([blended(old, row, self._share, kinds) for row in new.waiting()])


class Ensemble:
    """
    Average what all chunks say about an instant (ACT's temporal ensemble).

    The weights are `exp(-decay i)`, i = 0 for the oldest chunk. Of a switch, what the most weight
    says.
    """

    def __init__(self, decay: float = 0.01) -> None:
        self._decay = decay

    def sew(self, old: Plan | None, new: Plan, arrived: Arrived, kinds: Kinds) -> Plan:
        rows = new.waiting()
        before = old.mixture if old and old.mixture else Mixture(self._decay, kinds)
        mixture = before.joined(rows, new.end_ns, new.channels, arrived.t)
        means = mixture.means
        averaged = [
            Waypoint(
                row.due_ns,
                {name: _like(value, means[name][i]) for name, value in row.commands.items()},
                row.sampled_ns,
            )
            for i, row in enumerate(rows)
        ]
        return new.replaced(averaged).made_of(mixture)


def _like(value: Any, mean: Vector) -> Any:
    return mean if np.ndim(value) else mean[0]

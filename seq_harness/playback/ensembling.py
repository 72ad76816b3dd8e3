"""Seams that take every chunk into account which says something about an instant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from seq_harness.playback.anchors import Arrived
from seq_harness.playback.blending import blended
from seq_harness.playback.kinds import Kind, Kinds
from seq_harness.playback.plan import Plan, Waypoint
from seq_harness.playback.rotations import Vector
from seq_harness.playback.said import Instants, Said

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
        before = old.sources if old else ()
        rows = new.waiting()
        alive = (chunk for chunk in before if chunk.end_ns > arrived.t)
        sources = (*alive, Said(rows, new.end_ns, kinds))
        instants = np.array([row.due_ns for row in rows], np.int64)
        means = {name: self._means(name, kinds[name], instants, sources) for name in new.channels}
        averaged = [
            Waypoint(
                row.due_ns,
                {name: _like(value, means[name][i]) for name, value in row.commands.items()},
                row.sampled_ns,
            )
            for i, row in enumerate(rows)
        ]
        return new.replaced(averaged).made_of(sources)

    def _means(self, name: str, kind: Kind, instants: Instants, sources: Sequence[Said]) -> Vector:
        """Return the mean of what the sources say at each instant, [R, D]."""
        said = [part for source in sources if (part := source.at(name, instants))]
        shape = len(said), len(instants), said[-1][1].shape[-1]
        values, there = np.zeros(shape), np.zeros(shape[:2], np.bool_)
        for i, (rows, found) in enumerate(said):
            values[i, rows], there[i, rows] = found, True
        ranks = np.cumsum(there, axis=0) - 1
        weights = np.where(there, np.exp(-self._decay * ranks), 0.0)
        return kind.mean(values, weights)


def _like(value: Any, mean: Vector) -> Any:
    return mean if np.ndim(value) else mean[0]

"""Seams that take every chunk into account which says something about an instant."""

from __future__ import annotations

import math

from seq_harness.playback.anchors import Arrived
from seq_harness.playback.blending import blended
from seq_harness.playback.kinds import Kinds
from seq_harness.playback.plan import Plan, Waypoint

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

    The weights are `exp(-decay i)`, i = 0 for the oldest chunk.
    """

    def __init__(self, decay: float = 0.01) -> None:
        self._decay = decay

    def sew(self, old: Plan | None, new: Plan, arrived: Arrived, kinds: Kinds) -> Plan:
        before = old.sources if old else ()
        sources = (*(chunk for chunk in before if chunk.end_ns > arrived.t), new)
        rows = [self._averaged(row, sources, kinds) for row in new.waiting()]
        return new.replaced(rows).made_of(sources)

    def _averaged(self, waypoint: Waypoint, sources: tuple[Plan, ...], kinds: Kinds) -> Waypoint:
        commands = dict(waypoint.commands)
        for name in commands:
            kind = kinds[name]
            said = [chunk.value_at(name, waypoint.due_ns, kind) for chunk in sources]
            values = [value for value in said if value is not None]
            weights = [math.exp(-self._decay * i) for i in range(len(values))]
            mean, total = values[0], weights[0]
            for value, weight in zip(values[1:], weights[1:], strict=True):
                total += weight
                mean = kind.blend(mean, value, weight / total)
            commands[name] = mean
        return Waypoint(waypoint.due_ns, commands, waypoint.sampled_ns)

"""What one channel does between the rows of a plan."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
import itertools
from typing import Any

import numpy as np
from seq_harness.playback.kinds import Binary, Kind, Position
from seq_harness.playback.rotations import Vector


class Interpolation(Enum):
    """What leads from one row to the next."""

    HOLD = 'hold'
    LINEAR = 'linear'
    CUBIC = 'cubic'
    """Hermite, with Catmull-Rom tangents that are bounded, so that nothing overshoots."""


class Curve:
    """A way through values at instants; all of it is computed at once, for a chunk is long."""

    def __init__(self, kind: Kind, knots: Sequence[tuple[int, Any]], how: Interpolation) -> None:
        """`knots` are instants, that rise, and values."""
        self._kind = kind
        self._instants = [instant for instant, _ in knots]
        self._values = [value for _, value in knots]
        self._how = how

    def at(self, instants: Sequence[int]) -> list[Any]:
        """Return the value at each instant; None before the first knot, then to the last one's."""
        knots = np.searchsorted(self._instants, instants, side='right') - 1
        if self._how is Interpolation.HOLD or len(self._values) == 1:
            return [self._values[k] if k >= 0 else None for k in knots]
        inside = np.clip(knots, 0, len(self._values) - 2)
        starts = np.asarray(self._instants)[inside]
        spans = np.diff(self._instants)[inside]
        shares = np.clip((np.asarray(instants) - starts) / spans, 0.0, 1.0)
        values = self._between(inside, shares)
        return [value if k >= 0 else None for k, value in zip(knots, values, strict=True)]

    def _between(self, knots: Any, shares: Vector) -> list[Any]:
        """Return the value `shares` of the way from each of `knots` to the next."""
        if isinstance(self._kind, Binary):
            pairs = zip(knots, shares, strict=True)
            return [self._kind.blend(self._values[k], self._values[k + 1], s) for k, s in pairs]
        s = shares[:, np.newaxis]
        changes = self._changes()
        if self._how is Interpolation.LINEAR:
            moves = s * changes[knots]
        else:
            starts, ends = self._tangents(changes)
            moves = (3 * s**2 - 2 * s**3) * changes[knots]
            moves = moves + (s**3 - 2 * s**2 + s) * starts[knots] + (s**3 - s**2) * ends[knots]
        if type(self._kind).moved is Position.moved:
            return list(np.stack([np.atleast_1d(v) for v in self._values])[knots] + moves)
        return [self._kind.moved(self._values[k], m) for k, m in zip(knots, moves, strict=True)]

    def _changes(self) -> Vector:
        """Return the change from each knot to the next, [K - 1, D]."""
        pairs = itertools.pairwise(self._values)
        return np.stack([np.atleast_1d(self._kind.difference(a, b)) for a, b in pairs])

    def _tangents(self, changes: Vector) -> tuple[Vector, Vector]:
        """
        Return the tangents at both ends of each piece, as changes over the piece.

        They are bounded so that no component leaves the span of its two rows (Fritsch, Carlson).
        """
        spans = np.diff(self._instants)[:, np.newaxis].astype(np.float64)
        secants = changes / spans
        before, after = secants[:-1], secants[1:]
        mean = (before * spans[:-1] + after * spans[1:]) / (spans[:-1] + spans[1:])
        steepest = 3 * np.minimum(np.abs(before), np.abs(after))
        inner = np.where(before * after > 0, np.clip(mean, -steepest, steepest), 0.0)
        slopes = np.concatenate([secants[:1], inner, secants[-1:]])
        return slopes[:-1] * spans, slopes[1:] * spans

"""What several chunks that overlap say together, each weighing less than the one before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from seq_harness.playback.kinds import Binary, Kind, Kinds
from seq_harness.playback.rotations import Vector
from seq_harness.playback.said import Instants, Said, Timed

SAME_NS = 10
"""Instants that are no further apart are the same: rows of two chunks, rounded apart."""

TIE = 1e-9
"""Weights that differ by less than this are the same."""


@dataclass(frozen=True)
class _Sums:
    """What was said of one channel at each of R instants, all of it weighed."""

    base: Vector
    """The oldest value, [R, D]."""
    changes: Vector
    """The changes that lead from it to the others, by weight, [R, D]."""
    weights: Vector
    counts: Instants
    """How many values were said, [R]."""

    def mean(self, kind: Kind) -> Vector:
        total = np.where(self.weights > 0, self.weights, 1.0)
        return np.asarray(kind.moved(self.base, self.changes / total[:, np.newaxis]))


class Mixture:
    """
    Chunks that overlap, and their means at the rows of the newest.

    The weights are `exp(-decay i)`, i = 0 for the oldest chunk that says something of an instant.
    """

    def __init__(self, decay: float, kinds: Kinds) -> None:
        self._decay = decay
        self._kinds = kinds
        self._said: tuple[Said, ...] = ()
        self._instants: Instants = np.empty(0, np.int64)
        self._sums: dict[str, _Sums] = {}
        self.means: dict[str, Vector] = {}
        """By channel: the means at the rows of the newest chunk, [R, D]."""

    def joined(self, rows: Sequence[Timed], end_ns: int, names: Sequence[str], t: int) -> Mixture:
        """Return this mixture and a newer chunk, of which `names` are wanted, at `t`."""
        made = Mixture(self._decay, self._kinds)
        newest = Said(rows, end_ns, self._kinds)
        made._said = (*(said for said in self._said if said.end_ns > t), newest)
        made._instants = np.array([row.due_ns for row in rows], np.int64)
        going_on = self._going_on(made._instants)
        for name in names:
            kind = self._kinds[name]
            if isinstance(kind, Binary):
                values, weights, _ = made._everything(name)
                made.means[name] = _majority(values, weights)
                continue
            if going_on is not None and name in self._sums:
                sums = made._added(name, self._sums[name], going_on)
            else:
                sums = made._summed(name)
            made._sums[name], made.means[name] = sums, sums.mean(kind)
        return made

    def _going_on(self, instants: Instants) -> int | None:
        """Return from where on the instants before are the first of these; None if they differ."""
        if not self._said:
            return None
        start = int(self._instants.searchsorted(instants[0] - SAME_NS))
        left = self._instants[start:]
        if not 0 < len(left) <= len(instants):
            return None
        apart = np.abs(left - instants[: len(left)]).max()
        ended = len(left) == len(instants) or instants[len(left)] >= self._end_ns
        return start if apart <= SAME_NS and ended else None

    @property
    def _end_ns(self) -> int:
        return max(said.end_ns for said in self._said)

    def _added(self, name: str, before: _Sums, start: int) -> _Sums:
        """Add what the newest chunk says to what was said before at the same instants."""
        kind, more = self._kinds[name], len(self._instants) - (len(before.counts) - start)
        base, changes, weights, counts = (
            np.concatenate([part[start:], np.zeros((more, *part.shape[1:]), part.dtype)])
            for part in (before.base, before.changes, before.weights, before.counts)
        )
        found = self._said[-1].at(name, self._instants)
        if found is not None:
            rows, values = found
            weight = np.exp(-self._decay * counts[rows])
            base[rows] = np.where((counts[rows] == 0)[:, np.newaxis], values, base[rows])
            changes[rows] += weight[:, np.newaxis] * kind.difference(base[rows], values)
            weights[rows] += weight
            counts[rows] += 1
        return _Sums(base, changes, weights, counts)

    def _summed(self, name: str) -> _Sums:
        values, weights, counts = self._everything(name)
        first = np.argmax(weights > 0, axis=0)
        base = values[first, np.arange(values.shape[1])]
        changes = self._kinds[name].difference(base, values)
        return _Sums(base, np.einsum('sr,srd->rd', weights, changes), weights.sum(axis=0), counts)

    def _everything(self, name: str) -> tuple[Vector, Vector, Instants]:
        """Return what S chunks say, [S, R, D], its weights [S, R] and how many say so, [R]."""
        found = [part for said in self._said if (part := said.at(name, self._instants))]
        shape = len(found), len(self._instants), found[-1][1].shape[-1]
        values, there = np.zeros(shape), np.zeros(shape[:2], np.bool_)
        for i, (rows, said_values) in enumerate(found):
            values[i, rows], there[i, rows] = said_values, True
        ranks = np.cumsum(there, axis=0)
        weights = np.where(there, np.exp(-self._decay * (ranks - 1)), 0.0)
        return values, weights, ranks[-1]


def _majority(values: Vector, weights: Vector) -> Vector:
    """
    Return the weighted medians [R, D] of values [S, R, D]: of two, the one of more weight.

    Evenly weighed, it is the newer.
    """
    order = np.argsort(values, axis=0, kind='stable')
    ranked = np.take_along_axis(values, order, axis=0)
    carried = np.take_along_axis(np.broadcast_to(weights[..., None], values.shape), order, 0)
    sums = np.cumsum(carried, axis=0)
    half = sums[-1] / 2
    lower = np.take_along_axis(ranked, np.argmax(sums >= half - TIE, axis=0)[None], 0)[0]
    upper = np.take_along_axis(ranked, np.argmax(sums > half + TIE, axis=0)[None], 0)[0]
    last = len(weights) - 1 - np.argmax(weights[::-1] > 0, axis=0)
    newest = values[last, np.arange(values.shape[1])]
    return np.asarray(np.clip(newest, lower, upper))

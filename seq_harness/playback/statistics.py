"""Counts and distributions of one episode's playback."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
import math

_EXACT = 64
"""Values below this many ns have a bucket each; above, buckets are at most 1/64 wide."""


class Distribution:
    """
    A histogram of ns in buckets at most 1.6 % wide, in constant memory.

    Neither adding nor reading holds the interpreter for longer than a few steps, so that a reader
    never delays a setpoint.
    """

    def __init__(self) -> None:
        self._buckets: dict[int, int] = {}
        self.count = 0
        self.largest: int | None = None

    def add(self, value_ns: int) -> None:
        """Count a value; what is below zero counts as zero."""
        value_ns = max(0, value_ns)
        bucket = _bucket(value_ns)
        self._buckets[bucket] = self._buckets.get(bucket, 0) + 1
        self.count += 1
        if self.largest is None or value_ns > self.largest:
            self.largest = value_ns

    def percentile(self, percent: float) -> int | None:
        """Return the nearest-rank percentile, as its bucket's upper edge in ns; None if empty."""
        buckets = sorted(self._buckets.copy().items())
        rank = max(1, math.ceil(sum(count for _, count in buckets) * percent / 100))
        for bucket, count in buckets:
            rank -= count
            if rank <= 0:
                return min(_upper_edge(bucket), self.largest or 0)
        return None

    def figures_ms(self) -> dict[str, float | int | None]:
        """Return p50, p90, p99 and max in ms, and the number of samples."""

        def ms(value_ns: int | None) -> float | None:
            return None if value_ns is None else round(value_ns / 1e6, 4)

        return {
            'p50': ms(self.percentile(50)),
            'p90': ms(self.percentile(90)),
            'p99': ms(self.percentile(99)),
            'max': ms(self.largest),
            'count': self.count,
        }


def _bucket(value_ns: int) -> int:
    if value_ns < _EXACT:
        return value_ns
    shift = value_ns.bit_length() - 7
    return _EXACT * shift + (value_ns >> shift)


def _upper_edge(bucket: int) -> int:
    if bucket < 2 * _EXACT:
        return bucket
    shift, top = divmod(bucket - _EXACT, _EXACT)
    return ((_EXACT + top + 1) << shift) - 1


@dataclass
class Statistics:
    """
    What the player did with the rows it was given.

    `scheduled = emitted + merged + sum(dropped.values()) + held`, at any time: a row that a later
    one of the same round replaced counts as merged.
    """

    asked: int = 0
    answered: int = 0
    failed: int = 0
    abandoned: int = 0
    chunks: int = 0
    scheduled: int = 0
    emitted: int = 0
    merged: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    starved_ns: int = 0
    largest_gap_ns: int = 0
    largest_join_step: float = 0.0
    answer_delay: Distribution = field(default_factory=Distribution)

    def figures(self, held: int) -> dict[str, object]:
        """Return the counts as plain data; `held` is the number of rows still to be played."""
        return {
            'asks': {
                'asked': self.asked,
                'answered': self.answered,
                'failed': self.failed,
                'abandoned': self.abandoned,
            },
            'rows': {
                'scheduled': self.scheduled,
                'emitted': self.emitted,
                'merged': self.merged,
                'dropped': dict(self.dropped),
                'held': held,
            },
            'chunks': {'played': self.chunks, 'refused': dict(self.refused)},
            'starved_s': round(self.starved_ns / 1e9, 4),
            'largest_gap_ms': round(self.largest_gap_ns / 1e6, 4),
            'largest_join_step': round(self.largest_join_step, 6),
            'answer_delay_ms': self.answer_delay.figures_ms(),
        }

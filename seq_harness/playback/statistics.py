"""Counts and distributions of one episode's playback."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
import math
from typing import Any

import numpy as np

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
    expired_observations: int = 0
    """Asks that were not made, because the observation was too old."""
    chunks: int = 0
    chunk_ns: int = 0
    """How long the newest chunk lasts."""
    cut: int = 0
    """Chunks that play without their seam, which the guard refused."""
    scheduled: int = 0
    emitted: int = 0
    merged: int = 0
    interpolated: int = 0
    """Commands between two rows, which count as no row."""
    filled: int = 0
    """Commands that were made while starved."""
    dropped: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    """Chunks that must not play, by cause."""
    last_refusal: str = ''
    guarded: Counter[str] = field(default_factory=Counter)
    """Values that the guard changed, by cause and what was done."""
    short_plans: int = 0
    """Asks at which fewer rows were left than are expected to be executed meanwhile."""
    late_answers: int = 0
    """Answers during which more rows were consumed than the policy was told to expect."""
    starved_ns: int = 0
    largest_gap_ns: int = 0
    largest_join_step: float = 0.0
    lateness: Distribution = field(default_factory=Distribution)
    answer_delay: Distribution = field(default_factory=Distribution)
    expected_delay: Distribution = field(default_factory=Distribution)

    def note_ask(self, expected_ns: int | None) -> None:
        """Count an ask whose answer is expected to take so long, if that is known."""
        self.asked += 1
        if expected_ns is not None:
            self.expected_delay.add(expected_ns)

    def note_emission(self, rows: int, t: int, due_ns: int, before_ns: int | None) -> None:
        """Count a command at `t`, due at `due_ns`, that `rows` rows came to; 0 lies between."""
        if rows:
            self.emitted += 1
            self.merged += rows - 1
        else:
            self.interpolated += 1
        self.lateness.add(t - due_ns)
        if before_ns is not None and t - before_ns > self.largest_gap_ns:
            self.largest_gap_ns = t - before_ns

    def note_drop(self, cause: str, rows: int) -> None:
        """Count rows that will not be emitted."""
        if rows:
            self.dropped[cause] += rows

    def note_join(self, distance: Any) -> None:
        """Note how far a new plan's first command is from the last one, per component."""
        if np.size(distance):
            self.largest_join_step = max(self.largest_join_step, float(np.max(distance)))

    def figures(self, held: int, starving_ns: int = 0) -> dict[str, object]:
        """
        Return the counts as plain data.

        `held` is the number of rows still to be played; `starving_ns` is the starved time under
        way, which counts already.
        """
        return {
            'asks': {
                'asked': self.asked,
                'answered': self.answered,
                'failed': self.failed,
                'abandoned': self.abandoned,
                'expired': self.expired_observations,
                'late': self.late_answers,
                'short': self.short_plans,
            },
            'rows': {
                'scheduled': self.scheduled,
                'emitted': self.emitted,
                'merged': self.merged,
                'dropped': dict(self.dropped),
                'held': held,
                'interpolated': self.interpolated,
                'filled': self.filled,
                'guarded': dict(self.guarded),
            },
            'chunks': {
                'played': self.chunks,
                'lasts_ms': round(self.chunk_ns / 1e6, 4),
                'cut': self.cut,
                'refused': dict(self.refused),
                'last_refusal': self.last_refusal,
            },
            'starved_s': round((self.starved_ns + starving_ns) / 1e9, 4),
            'largest_gap_ms': round(self.largest_gap_ns / 1e6, 4),
            'largest_join_step': round(self.largest_join_step, 6),
            'lateness_ms': self.lateness.figures_ms(),
            'answer_delay_ms': self.answer_delay.figures_ms(),
            'expected_delay_ms': self.expected_delay.figures_ms(),
        }

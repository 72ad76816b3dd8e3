"""What the delays of the answers so far say about the next one's."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
import math
import statistics

Estimate = Callable[[Sequence[int]], float]

ESTIMATES: dict[str, Estimate] = {
    'mean': statistics.fmean,
    'min': min,
    'max': max,
    'median': statistics.median,
}
"""Beside these, `percentile` takes the nearest rank."""


class Delays:
    """
    A window of answer delays, and one figure that stands for them.

    The first delay of an episode, which pays for cold caches, is left out.
    """

    def __init__(self, estimate: str = 'max', *, window: int = 20, percent: float = 90.0) -> None:
        """`estimate` is one of `ESTIMATES`, or `percentile` with its `percent`."""
        self._estimate = ESTIMATES[estimate] if estimate != 'percentile' else _nearest(percent)
        self._delays: deque[int] = deque(maxlen=window)
        self._first_seen = False

    def add(self, delay_ns: int) -> None:
        """Note how long an answer took, from its ask to the round that read it."""
        if self._first_seen:
            self._delays.append(delay_ns)
        self._first_seen = True

    def expected_ns(self) -> int | None:
        """Return the delay to expect, in ns; None before there is a sample."""
        if not self._delays:
            return None
        return round(self._estimate(self._delays))

    def median_ns(self) -> int | None:
        """Return the median of the window, in ns; None before there is a sample."""
        return round(statistics.median(self._delays)) if self._delays else None


def _nearest(percent: float) -> Estimate:
    def percentile(delays: Sequence[int]) -> float:
        rank = max(1, math.ceil(len(delays) * percent / 100))
        return sorted(delays)[rank - 1]

    return percentile

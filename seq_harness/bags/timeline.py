"""Where in a recording a replay is: its rate, and its pauses."""

from __future__ import annotations

import math


class Timeline:
    """Maps instants of a steady clock to times in a recording, both in ns; stands at first."""

    def __init__(self, start_ns: int, rate: float = 1.0) -> None:
        """Stand at `start_ns` of the recording; `rate` is its seconds in one of ours."""
        if not (math.isfinite(rate) and rate > 0):
            raise ValueError(f'expected a rate above 0, got {rate!r}')
        self._rate = rate
        self._from_ns = start_ns
        self._since_ns: int | None = None

    @property
    def stands(self) -> bool:
        """Whether time in the recording stands still."""
        return self._since_ns is None

    def go(self, now_ns: int) -> None:
        """Let time pass from the instant `now_ns` on."""
        if self._since_ns is None:
            self._since_ns = now_ns

    def stand(self, now_ns: int) -> None:
        """Let time stand still from the instant `now_ns` on."""
        self._from_ns = self.at(now_ns)
        self._since_ns = None

    def at(self, now_ns: int) -> int:
        """Return the time in the recording at an instant."""
        if self._since_ns is None:
            return self._from_ns
        return self._from_ns + round((now_ns - self._since_ns) * self._rate)

    def when(self, log_ns: int) -> int | None:
        """Return the instant of a time in the recording; None while time stands."""
        if self._since_ns is None:
            return None
        return self._since_ns + math.ceil((log_ns - self._from_ns) / self._rate)

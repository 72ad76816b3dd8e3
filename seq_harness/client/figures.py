"""What is counted of a worker's answers, as immutable snapshots."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
import math
import threading

from seq_harness.client.posts import StreamFigures

RECENT = 1024
"""Acts whose times are remembered."""


@dataclass(frozen=True)
class Spread:
    """Times in ms, by nearest rank; None where there were none."""

    count: int = 0
    p50: float | None = None
    p90: float | None = None
    p95: float | None = None
    p99: float | None = None
    max: float | None = None

    @classmethod
    def of(cls, times_ms: Iterable[float]) -> Spread:
        """Sum up the times."""
        ordered = sorted(times_ms)
        if not ordered:
            return cls()
        p50, p90, p95, p99, largest = (
            round(ordered[max(0, math.ceil(len(ordered) * share) - 1)], 3)
            for share in (0.5, 0.9, 0.95, 0.99, 1.0)
        )
        return cls(len(ordered), p50, p90, p95, p99, largest)


@dataclass(frozen=True)
class ActFigures:
    """What became of the acts of one episode."""

    asked: int = 0
    answered: int = 0
    failed: int = 0
    """Acts that ended without an answer, for whatever reason."""
    repeated: int = 0
    """How often an act was sent again under its own id."""
    resends: int = 0
    """How often the worker lacked observations that an act reads."""
    round_trip_ms: Spread = field(default_factory=Spread)
    """From an act's last sending to its answer."""
    handler_ms: Spread = field(default_factory=Spread)
    """The worker's own part of it, where it says so."""
    network_ms: Spread = field(default_factory=Spread)
    """The rest of it: what the network and both ends' packing took."""
    network_share: float | None = None
    """The network's part of the time of all round trips whose parts are known, from 0 to 1."""


@dataclass(frozen=True)
class ScopeFigures:
    """What one episode did on the wire."""

    acts: ActFigures = field(default_factory=ActFigures)
    stream: StreamFigures = field(default_factory=StreamFigures)
    reconnects: int = 0
    """Connections for acts beyond the first."""


class ActTally:
    """Counts acts: written by the thread that acts, read by any."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # held for a copy of the recent times
        self._counts = dict.fromkeys(('asked', 'answered', 'failed', 'repeated', 'resends'), 0)
        self._round_trips: deque[float] = deque(maxlen=RECENT)  # under _lock
        self._handlers: deque[float] = deque(maxlen=RECENT)  # under _lock
        self._networks: deque[float] = deque(maxlen=RECENT)  # under _lock
        self._split: deque[float] = deque(maxlen=RECENT)  # under _lock; the round trips of those

    def count(self, name: str) -> None:
        """Add one to a figure."""
        self._counts[name] += 1

    def answered(self, round_trip_ms: float, handler_ms: float | None) -> None:
        """Count an answer and its times."""
        self.count('answered')
        with self._lock:
            self._round_trips.append(round_trip_ms)
            if handler_ms is not None:
                self._handlers.append(handler_ms)
            # A worker whose clock says more than we measured says nothing of the network.
            if handler_ms is not None and handler_ms <= round_trip_ms:
                self._networks.append(round_trip_ms - handler_ms)
                self._split.append(round_trip_ms)

    def figures(self) -> ActFigures:
        """Return a snapshot."""
        with self._lock:
            held = (self._round_trips, self._handlers, self._networks, self._split)
            times = [list(each) for each in held]
        round_trips, handlers, networks = (Spread.of(spread) for spread in times[:3])
        return ActFigures(
            **self._counts,
            round_trip_ms=round_trips,
            handler_ms=handlers,
            network_ms=networks,
            network_share=_share(times[2], times[3]),
        )


def _share(parts_ms: list[float], wholes_ms: list[float]) -> float | None:
    return round(sum(parts_ms) / sum(wholes_ms), 3) if sum(wholes_ms) > 0 else None

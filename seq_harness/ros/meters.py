"""How often each input arrives, and how much of it is refused."""

from __future__ import annotations

from collections.abc import Iterable
import time
from typing import Any

from seq_harness.inputs import Arrival, Inputs, Verdict


class Meters:
    """Count arrivals between two reports; the executor's thread alone."""

    def __init__(self, names: Iterable[str]) -> None:
        self._arrived = dict.fromkeys(names, 0)
        self._refused = dict.fromkeys(self._arrived, 0)
        self._since_ns = time.monotonic_ns()

    def note(self, name: str, arrival: Arrival) -> None:
        """Count a message of an input."""
        self._arrived[name] += 1
        self._refused[name] += arrival.verdict is Verdict.REFUSED

    def figures(self, inputs: Inputs, now_ns: int) -> dict[str, dict[str, Any]]:
        """
        Return rate, age and refusals of every input since the last report, and begin anew.

        `now_ns` is the playback clock's; a rate is of real seconds.
        """
        passed_s = max(1e-9, (time.monotonic_ns() - self._since_ns) / 1e9)
        snapshot = inputs.snapshot()
        found = {}
        for name, count in self._arrived.items():
            sample = snapshot.get(name)
            found[name] = {
                'rate_hz': round(count / passed_s, 2),
                'age_ms': None if sample is None else round((now_ns - sample.born_ns) / 1e6, 2),
                'refused': self._refused[name],
            }
            self._arrived[name] = 0
        self._since_ns = time.monotonic_ns()
        return found

"""How often each input arrives, and how much of it is refused or lost."""

from __future__ import annotations

from collections.abc import Iterable
import time
from typing import Any

from seq_harness.inputs import Arrival, Inputs, Verdict
from seq_harness.ros.subscribing import Losses


class Meters:
    """Count arrivals between two reports; the executor's thread alone."""

    def __init__(self, names: Iterable[str]) -> None:
        self._arrived = dict.fromkeys(names, 0)
        self._refused = dict.fromkeys(self._arrived, 0)
        self._losses: dict[str, list[Losses]] = {name: [] for name in self._arrived}
        self._since_ns = time.monotonic_ns()

    def follow(self, name: str, losses: Losses) -> None:
        """Tell of what is lost on a topic of an input too."""
        self._losses[name].append(losses)

    def note(self, name: str, arrival: Arrival) -> None:
        """Count a message of an input."""
        self._arrived[name] += 1
        self._refused[name] += arrival.verdict is Verdict.REFUSED

    def figures(self, inputs: Inputs, now_ns: int) -> dict[str, dict[str, Any]]:
        """
        Return rate, age, refusals and losses of every input, and begin to count arrivals anew.

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
                **_lost(self._losses[name]),
            }
            self._arrived[name] = 0
        self._since_ns = time.monotonic_ns()
        return found


def _lost(topics: Iterable[Losses]) -> dict[str, Any]:
    """Return how many messages were lost so far, and the largest share of late, by topic."""
    known = list(topics)
    shares = [each.share for each in known if each.share is not None]
    return {
        'lost': sum(each.lost for each in known),
        'lost_share': round(max(shares), 3) if shares else None,
    }

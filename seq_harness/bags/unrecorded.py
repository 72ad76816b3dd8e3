"""What a driver of the loop tells a recorder; recording nothing, it costs nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from seq_harness.episode import Start
from seq_harness.harness import Harness, Parts
from seq_harness.inputs import Arrival, Verdict
from seq_harness.playback.uplink import PolicyScope


class Unrecorded:
    """What a driver of the loop calls where nothing is recorded: all stays as it is."""

    def parts(self, parts: Parts) -> Parts:
        """Return the parts of the loop, as they are to be used."""
        return parts

    def episode(self, scope: PolicyScope, start: Start) -> tuple[PolicyScope, Start]:
        """Return the scope and the start of an episode, as they are to be used."""
        return scope, start

    def stamping(self, ros_now_ns: Callable[[], int]) -> Callable[[], int]:
        """Return the clock that stamps what is published."""
        return ros_now_ns

    def waking(self, cause: str, wake: Callable[[], None]) -> Callable[[], None]:
        """Return what wakes the loop for a cause."""
        return wake

    def round(self, harness: Harness) -> int:
        """Do a round."""
        return harness.round()

    def prepare(self, harness: Harness, instant_ns: int) -> bool:
        """Make ready for a round; tell whether anything is due."""
        return harness.prepare(instant_ns)

    def close_harness(self, harness: Harness, reason: str) -> None:
        """Close the loop, once no thread does its rounds any more."""
        harness.close(reason)

    def arrived(
        self, name: str, topic: str, sequence: int | None, at: tuple[int, int], arrival: Arrival
    ) -> None:
        """Hear of a message, `at` an instant of playback and of ROS time, in ns."""

    def told(self, name: str, reason: str, verdict: Verdict) -> None:
        """Hear what is wrong with an input or output, or that it is well again."""

    def figures(self) -> Mapping[str, Any]:
        """Return what was recorded so far, under `record`; empty where nothing is."""
        return {}

    def close(self) -> None:
        """End the record."""

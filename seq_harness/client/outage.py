"""How long a worker has been away, and how long that is borne."""

from __future__ import annotations

from collections.abc import Callable
import time

from seq_harness.playback.uplink import WorkerLost

FIRST_WAIT_S = 0.05
LAST_WAIT_S = 2.0
"""How long to wait before the next attempt: from the first to the last, doubling."""

SHORTEST_S = 0.05
"""What an attempt is given however long the outage has lasted."""


class Outage:
    """
    Count an outage from its first failure to the next answer, over however many acts.

    Belongs to the thread that acts.
    """

    def __init__(
        self, endpoint: str, reconnect_s: float, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._endpoint = endpoint
        self._reconnect_s = reconnect_s
        self._now_s = now_s
        self._since_s: float | None = None
        self._wait_s = FIRST_WAIT_S

    @property
    def lasted_s(self) -> float | None:
        """How long the worker has been away, in seconds; None while it is not."""
        return None if self._since_s is None else self._now_s() - self._since_s

    def began(self) -> float:
        """
        Note that there is no connection; return how long one may take to be made, in seconds.

        What was noted before counts on.
        """
        if self._since_s is None:
            self._since_s = self._now_s()
        return max(SHORTEST_S, self._since_s + self._reconnect_s - self._now_s())

    def failed(self, reason: str, at_least_s: float = 0.0) -> float:
        """
        Note a failed attempt; return how long to wait before the next, in seconds.

        Raises
        ------
        WorkerLost
            The worker has been away for longer than is borne.

        """
        self.began()
        left_s = self._reconnect_s - (self.lasted_s or 0.0)
        if left_s <= 0:
            raise WorkerLost(
                f'{self._endpoint} could not be reached for {self._reconnect_s:g} s: {reason}'
            )
        wait_s = max(self._wait_s, at_least_s)
        self._wait_s = min(2 * self._wait_s, LAST_WAIT_S)
        return min(wait_s, left_s)

    def over(self) -> float | None:
        """Note an answer; return how long the outage lasted, in seconds, if there was one."""
        lasted_s = self.lasted_s
        self._since_s, self._wait_s = None, FIRST_WAIT_S
        return lasted_s

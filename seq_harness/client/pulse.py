"""Whether a server answers pings while an answer is waited for."""

from __future__ import annotations

from collections.abc import Callable
import time

PING_S = 2.0
"""How often a server is pinged that is waited for."""

PONG_S = 2.0
"""How long it may take to answer a ping before it is taken to be silent."""


class Pulse:
    """
    Note the pings of one connection, and whatever comes.

    One thread notes; `is_silent` may be read from any.
    """

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._unanswered_s: float | None = None  # when the first ping went that was not answered

    @property
    def is_silent(self) -> bool:
        """Tell whether a ping has been without an answer for too long."""
        since_s = self._unanswered_s
        return since_s is not None and self._now_s() - since_s > PONG_S

    def pinged(self) -> None:
        """Note that a ping went out."""
        if self._unanswered_s is None:
            self._unanswered_s = self._now_s()

    def heard(self) -> None:
        """Note that something came, or that nothing is waited for any more."""
        self._unanswered_s = None

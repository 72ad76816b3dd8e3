"""What is noticed of the clocks: one that has not begun, stands, is coarse, or was set."""

from __future__ import annotations

from collections.abc import Callable
import time

STANDS_NS = 1_000_000_000
"""A simulated clock that says the same for this long stands."""

SET_NS = 250_000_000
"""A system clock that moved by this much against the steady one was set."""

SETTLED_NS = 2_000_000_000
"""For how long after that messages from before it may still arrive."""


class SimulatedWatch:
    """Say what is odd about a simulated clock; the executor's thread looks, on steady time."""

    def __init__(
        self,
        ros_now_ns: Callable[[], int],
        largest_tick_ns: Callable[[], int],
        now_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        """`largest_tick_ns` returns the largest tick since it was asked last."""
        self._ros_now_ns = ros_now_ns
        self._largest_tick_ns = largest_tick_ns
        self._now_ns = now_ns
        self._seen_ns = 0
        self._since_ns = now_ns()

    def look(self, period_ns: int) -> str:
        """Return what is odd, for people; empty while rows of `period_ns` can be played well."""
        now_ns, ros_ns = self._now_ns(), self._ros_now_ns()
        if ros_ns != self._seen_ns:
            self._seen_ns, self._since_ns = ros_ns, now_ns
        if not ros_ns:
            return (
                'use_sim_time is set and no /clock has come yet: nothing starts before it does; '
                'start what publishes it, or leave use_sim_time out'
            )
        stood_ns = now_ns - self._since_ns
        if stood_ns > STANDS_NS:
            return 'the clock stands: nothing plays until it goes on'
        tick_ns = self._largest_tick_ns()
        if tick_ns > period_ns:
            return (
                f'/clock ticks every {tick_ns / 1e6:.1f} ms and rows come every '
                f'{period_ns / 1e6:.1f} ms: several rows become one setpoint; publish it faster'
            )
        return ''


class SystemWatch:
    """Notice that the system clock was set, so that stamps from before are judged by then."""

    def __init__(self) -> None:
        self._offset_ns: int | None = None
        self._by_ns = 0
        self._set_at_ns = 0

    def look(self, now_ns: int, ros_now_ns: int) -> int:
        """Return by how much the system clock was set since the last look; 0 if it was not."""
        offset_ns = ros_now_ns - now_ns
        before_ns, self._offset_ns = self._offset_ns, offset_ns
        if before_ns is None or abs(offset_ns - before_ns) < SET_NS:
            return 0
        self._by_ns, self._set_at_ns = offset_ns - before_ns, now_ns
        return self._by_ns

    def ros_now_ns(self, stamp_ns: int | None, now_ns: int, ros_now_ns: int) -> int:
        """Return the reading by which a stamp is to be judged: of the clock that made it."""
        if stamp_ns is None or not self._by_ns or now_ns - self._set_at_ns > SETTLED_NS:
            return ros_now_ns
        before_ns = ros_now_ns - self._by_ns
        nearer = abs(before_ns - stamp_ns) < abs(ros_now_ns - stamp_ns)
        return before_ns if nearer else ros_now_ns

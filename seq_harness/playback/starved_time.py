"""How long an episode has been without rows while others could have given it some."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from enum import Enum

from seq_harness.playback.session import CEILING_NS
from seq_harness.playback.uplink import Standing

HELD_NS = 2 * CEILING_NS
"""A player that was not called for longer was held, and that time is nobody's fault."""


class Barren(Enum):
    """What an act came to that brought no rows, as it is told."""

    EMPTY = 'answer{s} without rows'
    GIVEN_UP = 'act{s} given up'
    REFUSED = 'chunk{s} refused'
    EXPIRED = 'answer{s} older than max_answer_age_s'
    PASSED = 'chunk{s} whose rows had passed'


class StarvedTime:
    """
    Count the time without rows against a bound, and say why there were none.

    What counts is the time between two calls in which nothing is asked because the last acts
    brought nothing, in which an act is older than any may be, or in which a server that can does
    not answer its ping. The time of a younger act counts once it brought no rows, but for the
    first such act since there were rows. The time in which the connection is made again does not
    count, nor that in which nothing may be asked.
    """

    def __init__(self, limit_ns: int | None, act_ns: int | None) -> None:
        """Take the bound and the age from which an act counts; None for no bound, or never."""
        self._limit_ns = limit_ns
        self._act_ns = act_ns
        self.end()

    def end(self) -> None:
        """Note that rows play again, or that nothing is to play."""
        self._counted_ns = 0
        self._act_so_far_ns = 0
        self._barren: Counter[Barren] = Counter()
        self._left_ns: int | None = None
        self._asked_ns: int | None = None
        self._may_ask = True
        self._standing = Standing.THERE

    def barren(self, what: Barren) -> None:
        """Note that an act ended without rows to play."""
        if self._barren:
            self._counted_ns += self._act_so_far_ns
        self._act_so_far_ns = 0
        self._barren[what] += 1

    def resume(self, t: int, standing: Callable[[], Standing]) -> None:
        """Count the time since the last call, which left without rows, if it did."""
        left_ns, self._left_ns = self._left_ns, None
        if self._limit_ns is None or left_ns is None or t - left_ns > HELD_NS:
            return
        if self._asked_ns is None:
            self._counted_ns += t - left_ns if self._may_ask else 0
            return
        self._standing = standing()
        if self._standing is Standing.SILENT:
            self._counted_ns += t - left_ns
        elif self._standing is Standing.THERE:
            until_ns = t if self._act_ns is None else min(t, self._asked_ns + self._act_ns)
            young_ns = max(0, until_ns - left_ns)
            self._act_so_far_ns += young_ns
            self._counted_ns += t - left_ns - young_ns

    def leave(self, t: int, asked_ns: int | None, may_ask: bool) -> None:
        """Note that a call ends without rows; an act that is under way was asked at `asked_ns`."""
        self._left_ns, self._asked_ns, self._may_ask = t, asked_ns, may_ask

    def over(self) -> str | None:
        """Return the reason for which the episode is to end; None while it is not."""
        if self._limit_ns is None or self._counted_ns < self._limit_ns:
            return None
        return f'starved: no rows for {self._counted_ns / 1e9:.3g} s: {self._why()}'

    def limit_at(self, t: int) -> int | None:
        """Return when the bound is reached if the time counts at `t`; None where it does not."""
        if self._limit_ns is None or self._left_ns is None or not self._counts(t):
            return None
        return t + self._limit_ns - self._counted_ns

    def _counts(self, t: int) -> bool:
        if self._asked_ns is None:
            return self._may_ask
        if self._standing is Standing.THERE:
            return self._act_ns is not None and t >= self._asked_ns + self._act_ns
        return self._standing is Standing.SILENT

    def _why(self) -> str:
        told = [
            f'{count} {what.value.format(s="" if count == 1 else "s")}'
            for what, count in self._barren.items()
        ]
        if self._asked_ns is not None and self._standing is Standing.SILENT:
            told.append('the server does not answer its ping')
        elif self._asked_ns is not None and self._counts(self._left_ns or 0):
            told.append('an act takes longer than act_timeout_s')
        return ', '.join(told) or 'nothing was answered'

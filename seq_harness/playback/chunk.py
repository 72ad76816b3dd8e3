"""A policy's answer: rows over time, and when the last of them ends."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
import itertools
import math
from numbers import Real
from typing import Any

from seq_harness.playback.session import Commands

STAMP = 'timestamp'
"""The key of a row's own stamp: float seconds after the anchor; missing means 0.0 (R10)."""

MAX_OFFSET_S = 60.0
"""A stamp further off than this was made against another clock, or anchored twice (R18)."""

MAX_PERIOD_S = 3600.0
"""A row that lasts longer than this comes of no rate of rows."""


class ChunkRefused(ValueError):
    """A chunk that must not play; says which row and why."""

    def __init__(self, message: str, cause: str = 'malformed') -> None:
        """`cause` is the short name under which it is counted."""
        super().__init__(message)
        self.cause = cause


def to_ns(seconds: float) -> int:
    """Convert an offset in seconds to integer ns; the player's only such seam (R15, R17)."""
    return round(seconds * 1e9)


@dataclass(frozen=True)
class Row:
    """One action of a chunk."""

    offset_ns: int
    """When it is due, relative to the chunk's anchor; negative is already due (R20)."""
    commands: Commands


@dataclass(frozen=True)
class Chunk:
    """Rows in order of time, and the offset at which the last one has had its period (R12)."""

    rows: tuple[Row, ...]
    end_ns: int
    end_reason: str | None = None
    """The policy's own reason to end the episode once these rows are out, if it gave one."""
    beyond: tuple[Row, ...] = ()
    """Rows past the open-loop horizon, which play only if nothing else comes."""
    beyond_end_ns: int = 0
    """The offset at which the last of those has had its period."""

    @classmethod
    def at_rate(cls, rows: Iterable[Commands], fps: float, end_reason: str | None = None) -> Chunk:
        """
        Make a chunk whose row i is due i/fps after its anchor (R10, R16).

        `fps` is in rows a second, finite and positive.

        Raises
        ------
        ChunkRefused
            The rate is none, or a row is no mapping of channels.

        """
        rate = _rate(fps)
        timed = tuple(Row(to_ns(i / rate), _mapping(i, row)) for i, row in enumerate(rows))
        return cls(timed, to_ns(len(timed) / rate), end_reason)

    def cut(self, rows: int) -> Chunk:
        """Return the chunk of the first `rows` rows; the others are set aside as `beyond`."""
        if rows >= len(self.rows):
            return self
        return replace(
            self,
            rows=self.rows[:rows],
            end_ns=self.rows[rows].offset_ns,
            beyond=self.rows[rows:],
            beyond_end_ns=self.end_ns,
        )

    @classmethod
    def stamped(cls, rows: Iterable[Mapping[str, Any]], fps: float | None = None) -> Chunk:
        """
        Make a chunk of rows that carry their own stamps under `STAMP`, in seconds (R10).

        A last row with a stamp and no channel is the end marker; without one the last row lasts
        1/fps, and without `fps` the chunk is refused (R12). Stamps must be finite, non-decreasing
        and within 60 s (R18, R19).

        Raises
        ------
        ChunkRefused
            Names the row whose stamp is none, or says that the rate or the end is missing.

        """
        timed = [_stamped_row(i, _mapping(i, row)) for i, row in enumerate(rows)]
        for i, (before, after) in enumerate(itertools.pairwise(timed)):
            if after.offset_ns < before.offset_ns:
                raise ChunkRefused(
                    f'row {i + 1} (from 0) is stamped {after.offset_ns} ns, before row {i} at '
                    f'{before.offset_ns} ns; stamps must not decrease'
                )
        if timed and not timed[-1].commands:
            return cls(tuple(timed[:-1]), timed[-1].offset_ns)
        if fps is None:
            raise ChunkRefused(
                'the chunk does not say when its last row ends: give a row rate, or an end marker '
                f'(a last row with {STAMP!r} and no channel)'
            )
        return cls(tuple(timed), (timed[-1].offset_ns if timed else 0) + to_ns(1 / _rate(fps)))


def _finite(value: object) -> float | None:
    """Return a number as a float, whichever library's it is; None where it is no finite one."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _rate(fps: object) -> float:
    rate = _finite(fps)
    if rate is None or rate * MAX_PERIOD_S < 1:
        raise ChunkRefused(
            f'a row rate must be finite and positive, and a row last at most {MAX_PERIOD_S:g} s; '
            f'got {fps!r}'
        )
    return rate


def _mapping(number: int, row: Any) -> Mapping[str, Any]:
    if not isinstance(row, Mapping):
        raise ChunkRefused(
            f'row {number} (from 0) is a {type(row).__name__}; a mapping of channels was expected'
        )
    return row


def _stamped_row(number: int, row: Mapping[str, Any]) -> Row:
    came = row.get(STAMP, 0.0)
    stamp = _finite(came)
    if stamp is None:
        raise ChunkRefused(
            f'row {number} (from 0) has the stamp {came!r}; expected finite seconds'
        )
    if abs(stamp) > MAX_OFFSET_S:
        raise ChunkRefused(
            f'row {number} (from 0) is stamped {stamp!r} s; within {MAX_OFFSET_S:g} s of the '
            'anchor was expected: is it timed against another clock, or anchored twice?'
        )
    commands = {channel: value for channel, value in row.items() if channel != STAMP}
    return Row(to_ns(stamp), commands)

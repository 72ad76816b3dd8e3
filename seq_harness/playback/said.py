"""What one chunk says of its channels at any instant, computed for many instants at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from seq_harness.playback.kinds import Binary, Kind, Kinds
from seq_harness.playback.rotations import Vector
from seq_harness.playback.session import Commands

Instants = npt.NDArray[np.int64]


class Timed(Protocol):
    """A row with its due instant."""

    @property
    def due_ns(self) -> int: ...

    @property
    def commands(self) -> Commands: ...


class Said:
    """A placed chunk, as it came: values lie on a line between two rows, and hold to the end."""

    def __init__(self, rows: Sequence[Timed], end_ns: int, kinds: Kinds) -> None:
        """Take at least one row, in order of time."""
        self.end_ns = end_ns
        names = dict.fromkeys(name for row in rows for name in row.commands)
        self._lines = {name: _Line(name, rows, end_ns, kinds[name]) for name in names}

    def at(self, channel: str, instants: Instants) -> tuple[Any, Vector] | None:
        """
        Return which of `instants` [R], which rise, it says something about, and what: [n, D].

        None where that is nothing: before the first row, from the end on, and where the row in
        force does not name the channel.
        """
        line = self._lines.get(channel)
        return None if line is None else line.at(instants)


class _Line:
    """What a chunk says of one channel."""

    def __init__(self, name: str, rows: Sequence[Timed], end_ns: int, kind: Kind) -> None:
        found = [row.commands.get(name) for row in rows]
        # What a row does not name is never read, but must be a value.
        filler = next(value for value in found if value is not None)
        values = [filler if value is None else value for value in found]
        named = np.array([value is not None for value in found])
        self._kind = kind
        self._span = np.array([rows[0].due_ns, end_ns], np.int64)
        self._instants = np.array([row.due_ns for row in rows], np.int64)
        self._values = np.stack([np.atleast_1d(value) for value in values])
        self._named = None if named.all() else named
        self._speeds: Vector | None = None
        """The change in a ns from each row on; None for a switch."""
        spans, led = np.diff(self._instants), named[:-1] & named[1:]
        if isinstance(kind, Binary):
            self._instants[1:] -= np.where(led, spans // 2, 0)
            return
        speeds = np.where(led & (spans > 0), 1.0 / np.maximum(spans, 1), 0.0)
        changes = kind.difference(self._values[:-1], self._values[1:]) * speeds[:, np.newaxis]
        self._speeds = np.concatenate([changes, np.zeros((1, changes.shape[1]))])

    def at(self, instants: Instants) -> tuple[Any, Vector] | None:
        start, stop = instants.searchsorted(self._span).tolist()
        if start == stop:
            return None
        asked = instants[start:stop]
        rows = self._instants.searchsorted(asked, side='right') - 1
        said = self._values[rows]
        if self._speeds is not None:
            since = (asked - self._instants[rows])[:, np.newaxis]
            said = self._kind.moved(said, self._speeds[rows] * since)
        if self._named is None:
            return slice(start, stop), said
        kept = self._named[rows]
        return start + np.flatnonzero(kept), said[kept]

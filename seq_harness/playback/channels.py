"""The named command outputs of a robot, and how a policy's rows are split among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from seq_harness.playback.chunk import Chunk, ChunkRefused
from seq_harness.playback.rotations import Vector
from seq_harness.playback.session import Commands

__all__ = ['END', 'Channel', 'ColumnsRefused', 'RowSplitter', 'Vector', 'columns_by_name']

END = 'end'
"""The key of an answer or of a row that ends the episode; its value is the reason."""


MAX_ROWS = 10_000
"""Rows of one chunk: taking up more would keep the interpreter from the setpoints."""


ROWS_AND_COLUMNS = 2
"""How many axes the rows of one chunk have."""


class ColumnsRefused(ValueError):
    """The policy's columns and the robot's channels do not fit; names both sides."""


@dataclass(frozen=True)
class Channel:
    """One named command output: the joints it commands, in the controller's order."""

    name: str
    joints: tuple[str, ...]
    columns: tuple[int, ...]
    """For each joint, the column of the policy's row that commands it."""


def columns_by_name(
    channel: str, wanted: Sequence[str], declared: Sequence[str]
) -> tuple[int, ...]:
    """
    Find the columns named `wanted` among those the policy declares.

    Raises
    ------
    ColumnsRefused
        A wanted column is missing, or a declared name stands twice.

    """
    if len(set(declared)) != len(declared):
        raise ColumnsRefused(f'the policy declares a column twice: {list(declared)}')
    missing = [name for name in wanted if name not in declared]
    if missing:
        raise ColumnsRefused(
            f'channel {channel!r} wants the columns {missing}, which the policy does not declare; '
            f'it declares {list(declared)}: set channels.{channel}.columns to names among them'
        )
    return tuple(declared.index(name) for name in wanted)


def _end_of(answer: Any) -> str | None:
    """Return the reason that ends the episode after these rows, if the answer has one."""
    end = answer.get(END) if isinstance(answer, Mapping) else None
    if end is not None and not isinstance(end, str):
        raise ChunkRefused(
            f'{END!r} must be a text, the reason for which the episode ends; '
            f'{type(end).__name__} came'
        )
    return end


class RowSplitter:
    """Turn a policy's answer into a chunk of rows by channel; runs below the player."""

    def __init__(
        self,
        channels: Sequence[Channel],
        *,
        fps: float,
        width: int,
        key: str | None = None,
        horizon: int | None = None,
    ) -> None:
        """`width` is the number of columns of a row; `horizon` the most rows to keep."""
        self._channels = channels
        self._fps = fps
        self._width = width
        self._key = key
        self._horizon = horizon

    def __call__(self, answer: Any) -> Chunk | None:
        """
        Return the chunk that `answer` holds: rows [K, width] and possibly an end (R13).

        Leading axes of 1 before these two are left out. None answers nothing new.

        Raises
        ------
        ChunkRefused
            The answer holds no rows of that width, or more than any chunk has.

        """
        if answer is None:
            return None
        end = _end_of(answer)
        rows = self._array(self._rows_of(answer))[: self._horizon]
        if len(rows) > MAX_ROWS:
            raise ChunkRefused(
                f'at most {MAX_ROWS} rows were expected in one answer; {len(rows)} came'
            )
        commands = [self._commands(row) for row in rows]
        return Chunk.at_rate(commands, self._fps, end)

    def joined(self, rows: Sequence[Commands]) -> npt.NDArray[np.float32]:
        """
        Return commands by channel as the policy's own rows, float32 [n, width].

        Raises
        ------
        ColumnsRefused
            A column belongs to no channel: what it holds is not known.

        """
        taken = [column for channel in self._channels for column in channel.columns]
        if sorted(taken) != list(range(self._width)):
            raise ColumnsRefused(
                f'every column must be commanded by one channel; of {self._width} columns the '
                f'channels command {sorted(taken)}'
            )
        out = np.empty((len(rows), self._width), np.float32)
        for channel in self._channels:
            for i, row in enumerate(rows):
                out[i, list(channel.columns)] = row[channel.name]
        return out

    def _rows_of(self, answer: Any) -> Any:
        if self._key is None:
            return answer
        if not isinstance(answer, Mapping) or self._key not in answer:
            came = sorted(answer) if isinstance(answer, Mapping) else type(answer).__name__
            raise ChunkRefused(f'the answer must hold its rows under {self._key!r}; it has {came}')
        return answer[self._key]

    def _array(self, rows: Any) -> Vector:
        try:
            if np.iscomplexobj(rows):
                raise TypeError('complex ones came, expected real ones')
            array = np.array(rows, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ChunkRefused(f'the rows are not numbers: {error}') from error
        came = array.shape
        if array.ndim == 1 and array.size:
            array = array[np.newaxis]
        if array.size == 0:
            return np.empty((0, self._width))
        while array.ndim > ROWS_AND_COLUMNS and array.shape[0] == 1:
            # A policy of one robot leaves the axis of its batch on.
            array = array[0]
        if array.ndim != ROWS_AND_COLUMNS or array.shape[1] != self._width:
            raise ChunkRefused(
                f'rows of {self._width} columns were expected; an array of shape {came} '
                'came: make the policy and the declared columns agree'
            )
        return array

    def _commands(self, row: Vector) -> Commands:
        return {channel.name: row[list(channel.columns)] for channel in self._channels}

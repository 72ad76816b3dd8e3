"""What lies below the player: plain callables by name, open for one episode."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, Protocol, TypeAlias

from seq_harness.playback.chunk import Chunk, ChunkRefused, STAMP
from seq_harness.playback.session import Commands, Observation
from seq_harness.playback.uplink import Step

INFER = 'infer'
"""The name of the callable that takes a step and returns a chunk."""

Calls: TypeAlias = Mapping[str, Callable[..., Any]]
"""What an open scope gives: plain callables by name, `INFER` among them."""

Scope: TypeAlias = AbstractContextManager[Calls]
"""A policy's episode: entering opens it, leaving releases its connection."""


class Infer(Protocol):
    """
    Answer a step with a chunk; it blocks, and runs off the control thread (R68).

    A chunk is a `Chunk`, or one row (a mapping), or rows (a sequence of mappings) (R10, R11);
    None is nothing new (R13).
    """

    def __call__(self, step: Step, plan: Mapping[str, Any] | None = None) -> Any: ...


class NotInfer(TypeError):
    """What was to answer chunks does not; says what came and what to do."""


def require_infer(candidate: object) -> None:
    """
    Refuse what answers commands, or cannot be called, where chunks are wanted.

    Raises
    ------
    NotInfer
        Says what came and what to do.

    """
    name = type(candidate).__name__
    if hasattr(candidate, 'cancel') and hasattr(candidate, 'close'):
        raise NotInfer(f'{name} answers commands, not chunks: put this layer below the player')
    if not callable(candidate):
        raise NotInfer(f'a callable that answers chunks was expected, got {name}')


def infer_of(scope_calls: Calls) -> Infer:
    """
    Return the callable that answers chunks among those of an open scope.

    Raises
    ------
    NotInfer
        There is none under `INFER`.

    """
    if INFER not in scope_calls:
        raise NotInfer(f'a scope must give {INFER!r}; it gives {sorted(scope_calls)}')
    infer = scope_calls[INFER]
    require_infer(infer)
    return infer


def stepped(policy: Callable[[Observation], Any]) -> Infer:
    """Make a plain function of an observation answer steps."""

    def infer(step: Step, plan: Mapping[str, Any] | None = None) -> Any:
        return policy(step.observation)

    return infer


def chunk_of(answer: Any, fps: float) -> Chunk | None:
    """
    Return the chunk that an answer holds, whichever of its forms it has (R10, R11, R13).

    Rows without stamps are `fps` a second; a row with a stamp makes all of them stamped.

    Raises
    ------
    ChunkRefused
        The answer is no chunk; says what came.

    """
    if answer is None or isinstance(answer, Chunk):
        return answer
    rows = [answer] if isinstance(answer, Mapping) else _rows_of(answer)
    if any(STAMP in row for row in rows):
        return Chunk.stamped(rows, fps)
    return Chunk.at_rate(rows, fps)


def map_rows(answer: Any, convert: Callable[[Commands], Commands]) -> Any:
    """
    Return an answer of the same form, with the commands of every row converted.

    Stamps, the end marker and the end stay as they are; None stays None.

    Raises
    ------
    ChunkRefused
        The answer is no chunk; says what came.

    """
    if answer is None:
        return None
    if isinstance(answer, Chunk):
        rows = tuple(replace(row, commands=convert(row.commands)) for row in answer.rows)
        return replace(answer, rows=rows)
    if isinstance(answer, Mapping):
        return _mapped(answer, convert)
    return [_mapped(row, convert) for row in _rows_of(answer)]


def channels_of(answer: Any) -> set[str]:
    """
    Return the channels that any row of an answer names; none for None and for no rows.

    Raises
    ------
    ChunkRefused
        The answer is no chunk; says what came.

    """
    if answer is None:
        return set()
    if isinstance(answer, Chunk):
        return {name for row in answer.rows for name in row.commands}
    rows = [answer] if isinstance(answer, Mapping) else _rows_of(answer)
    return {name for row in rows for name in row} - {STAMP}


def _rows_of(answer: Any) -> Sequence[Mapping[str, Any]]:
    """Return an answer that is a sequence of rows; its length says nothing else (R11)."""
    if isinstance(answer, Sequence) and all(isinstance(row, Mapping) for row in answer):
        return answer
    raise ChunkRefused(
        'a chunk, a row (a mapping of channels) or a sequence of rows was expected; '
        f'got {type(answer).__name__}'
    )


def _mapped(row: Mapping[str, Any], convert: Callable[[Commands], Commands]) -> Mapping[str, Any]:
    commands = {name: value for name, value in row.items() if name != STAMP}
    stamp = {STAMP: row[STAMP]} if STAMP in row else {}
    return {**stamp, **convert(commands)} if commands else stamp

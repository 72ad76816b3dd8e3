"""What codecs are made of: views of an observation, and checks of their arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from seq_harness.playback.channels import Vector
from seq_harness.playback.session import Observation

Indices: TypeAlias = Sequence[int]
"""Columns of a vector, from 0."""


class CodecRefused(ValueError):
    """A codec that cannot convert as it was told to; says what was expected."""


class Viewed(Mapping[str, Any]):
    """An observation under other keys or values, each of which is made when it is read."""

    def __init__(self, views: Mapping[str, Callable[[], Any]]) -> None:
        self._views = views

    def __getitem__(self, key: str) -> Any:
        return self._views[key]()

    def __contains__(self, key: object) -> bool:
        return key in self._views

    def __iter__(self) -> Iterator[str]:
        return iter(self._views)

    def __len__(self) -> int:
        return len(self._views)


def views_of(observation: Observation) -> dict[str, Callable[[], Any]]:
    """Return a reader of every key; reads nothing."""
    return {key: view_of(observation, key) for key in observation}


def view_of(observation: Observation, key: str) -> Callable[[], Any]:
    """Return a reader of one key; reads nothing."""
    return lambda: observation[key]


def vector_of(value: Any) -> Vector:
    """Return a value as a vector; a number becomes one of length 1."""
    vector: Vector = np.atleast_1d(np.asarray(value, np.float64))
    return vector


def checked_names(what: str, names: Sequence[str]) -> tuple[str, ...]:
    """Return a list of names, each once, or raise `CodecRefused`."""
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise CodecRefused(f'{what} must be a list of names, got {names!r}')
    if len(set(names)) != len(names):
        raise CodecRefused(f'{what} must name each once, got {list(names)}')
    return tuple(names)


def checked_pairs(what: str, names: Mapping[str, str]) -> dict[str, str]:
    """Return a map of names onto other names, each once, or raise `CodecRefused`."""
    if not isinstance(names, Mapping):
        raise CodecRefused(f'{what} must map names to names, got {names!r}')
    checked_names(what, tuple(names.values()))
    return dict(names)


def checked_columns(what: str, columns: Indices) -> tuple[int, ...]:
    """Return a list of columns from 0, each once, or raise `CodecRefused`."""
    good = all(isinstance(item, int) and not isinstance(item, bool) for item in columns)
    if not good or not columns or min(columns) < 0 or len(set(columns)) != len(columns):
        raise CodecRefused(f'{what} must list columns from 0, each once; got {columns!r}')
    return tuple(columns)


def require_keys(
    name: str, wanted: Sequence[str] | Mapping[str, str], observation: Observation
) -> None:
    """Raise `CodecRefused` for keys that an observation lacks; reads none."""
    # Membership in a mapping may read the value, so only the keys are looked at.
    came = set(observation)
    missing = [key for key in wanted if key not in came]
    if missing:
        raise CodecRefused(
            f'layer {name!r} reads the keys {missing}, which the observation lacks; it has '
            f'{sorted(came)}'
        )


def refuse_overlap(name: str, renamed: Mapping[str, str], came: Mapping[str, Any]) -> None:
    """Raise `CodecRefused` where a new name is one that something else has already."""
    there = set(came)
    kept = there - set(renamed)
    twice = sorted(kept & {new for old, new in renamed.items() if old in there})
    if twice:
        raise CodecRefused(f'layer {name!r} makes {twice[0]!r}, which is there already')

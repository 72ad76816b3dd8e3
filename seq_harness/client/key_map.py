"""The robot's observation in a server's own keys, and its answer as declared rows: one place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal
import uuid

import numpy as np
from pydantic import BaseModel, ConfigDict, Field
from seq_harness.contract.camera import Camera
from seq_harness.contract.connect import WorkerDeclaration
from seq_harness.contract.own_io import Actions, Observations, Stream
from seq_harness.playback.channels import END
from seq_harness.playback.uplink import PolicyError

ROWS = 'actions'
"""The key under which an answer's rows are handed on."""

ROW_KEYS = (ROWS, 'action')
"""Where servers put their rows, unless they answer the bare array."""

FROM = 'from'

Path = tuple[str, ...]
"""A server's key; more than one name where its observation is nested."""


class KeyMapRefused(ValueError):
    """A key map that is wrong, or an observation that is not as it says."""


class Entry(BaseModel):
    """What one key of the server holds."""

    model_config = ConfigDict(extra='forbid', populate_by_name=True, frozen=True)

    sources: tuple[str, ...] = Field(alias='from', min_length=1)
    """Own keys; the numbers of several are joined in this order."""
    camera: Camera | None = None
    """The size that a frame is fitted to."""
    layout: Literal['hwc', 'chw'] = 'hwc'
    length: int | None = Field(default=None, ge=1)
    """How many numbers the server reads."""
    dtype: Literal['float32', 'float64'] = 'float32'

    @classmethod
    def of(cls, own: str, length: int | None = None) -> Entry:
        """Take what one own key holds."""
        return cls.model_validate({FROM: (own,), 'length': length})


@dataclass(frozen=True)
class KeyMap:
    """
    How a server's observation is made of the robot's, and its answer read.

    Without entries the robot's own keys are sent as they are.
    """

    entries: Mapping[Path, Entry]
    columns: tuple[str, ...] = ()
    """Names of the columns of a row, in the server's order; empty takes those of the channels."""
    rows_key: str = ''
    """Where an answer holds its rows; empty looks for `actions`, `action` or a bare array."""
    width: int = 0
    """How wide padded rows are, of which the columns are the first; 0 for rows without padding."""

    def declaration(self, hz: float | None = None) -> WorkerDeclaration:
        """
        Say what the server reads, in the robot's own keys, and what it answers.

        Raises
        ------
        KeyMapRefused
            One camera is wanted in two sizes.

        """
        return WorkerDeclaration(
            instance=uuid.uuid4().hex,
            io=self.describe()[:4000],
            observations=Observations(self._streams() if self.entries else None),
            actions=Actions(key=ROWS, hz=hz),
            columns=list(self.columns) or None,
        )

    def request(self, observation: Mapping[str, Any]) -> dict[str, Any]:
        """
        Make the server's observation: frames uint8, numbers as the entry says, texts as they are.

        Raises
        ------
        KeyMapRefused
            A value is missing or of another form; names both sides.

        """
        if not self.entries:
            return dict(observation)
        made: dict[str, Any] = {}
        for path, entry in self.entries.items():
            within = made
            for name in path[:-1]:
                within = within.setdefault(name, {})
            within[path[-1]] = _value(path, entry, observation)
        return made

    def answer(self, answer: Any) -> dict[str, Any]:
        """
        Return the answer's rows under `actions`, and the reason of an end if it carries one.

        Raises
        ------
        PolicyError
            The answer holds no rows where they were looked for.

        """
        if not isinstance(answer, Mapping):
            if self.rows_key or not isinstance(answer, (np.ndarray, list)):
                raise self._no_rows(type(answer).__name__)
            return {ROWS: self.unpadded(answer)}
        keys = (self.rows_key,) if self.rows_key else ROW_KEYS
        key = next((key for key in keys if key in answer), None)
        if key is None:
            raise self._no_rows(f'a mapping with the keys {sorted(map(str, answer))}')
        end = answer.get(END)
        return {ROWS: self.unpadded(answer[key]), **({END: end} if isinstance(end, str) else {})}

    def unpadded(self, rows: Any) -> Any:
        """Return the columns of rows that are as wide as the server pads them."""
        shape: tuple[int, ...] = np.shape(rows) if self.width else ()
        padded = bool(shape) and shape[-1] == self.width
        return np.asarray(rows)[..., : len(self.columns)] if padded else rows

    def describe(self) -> str:
        """Say which own keys go to which of the server's."""
        if not self.entries:
            return 'the own keys are sent as they are'
        lines = [
            f'{" + ".join(entry.sources)} -> {shown(path)}' for path, entry in self.entries.items()
        ]
        return 'sent as ' + ', '.join(lines)

    def _streams(self) -> dict[str, Stream]:
        cameras: dict[str, Camera | None] = {}
        for path, entry in self.entries.items():
            for source in entry.sources:
                if cameras.setdefault(source, entry.camera) != entry.camera:
                    raise KeyMapRefused(
                        f'{source!r} is wanted in two sizes, the other for {shown(path)}: give '
                        'both the same camera, or make a second input of the topic'
                    )
        return {key: Stream(camera=camera) for key, camera in cameras.items()}

    def _no_rows(self, came: str) -> PolicyError:
        wanted = (
            f'under {self.rows_key!r}'
            if self.rows_key
            else f'under one of {list(ROW_KEYS)}, or a bare array'
        )
        return PolicyError(
            f'rows were expected {wanted}, and the server answered {came}: set server_rows_key'
        )


def naming_both(error: PolicyError, observation: Mapping[str, Any], sent: str) -> PolicyError:
    """Add the robot's side to what a server says of a first question; `sent` describes the map."""
    gave = ', '.join(f'{key!r} {_form(value)}' for key, value in observation.items())
    return PolicyError(
        f'{error}. The robot gave {gave}; {sent}: if the server reads other keys or sizes, '
        'server_preset and server_keys say so'
    )


def shown(path: Path) -> str:
    """Return a server's key for people."""
    return repr('.'.join(path))


def _value(path: Path, entry: Entry, observation: Mapping[str, Any]) -> Any:
    missing = [key for key in entry.sources if key not in observation]
    if missing:
        raise KeyMapRefused(
            f'{shown(path)} is made of {list(entry.sources)}; the robot has {sorted(observation)}'
        )
    values = [observation[key] for key in entry.sources]
    if len(values) == 1 and isinstance(values[0], str):
        return values[0]
    arrays = [np.asarray(value) for value in values]
    if any(array.dtype.kind not in 'biuf' for array in arrays):
        raise _wrong(path, entry, arrays, 'numbers or a frame were expected')
    if entry.camera is not None or arrays[0].ndim == 3:
        return _frame(path, entry, arrays)
    return _numbers(path, entry, arrays)


def _frame(path: Path, entry: Entry, arrays: list[Any]) -> Any:
    if len(arrays) != 1 or arrays[0].ndim != 3:
        raise _wrong(path, entry, arrays, 'one frame [height, width, 3] was expected')
    if entry.layout == 'chw':
        return np.ascontiguousarray(arrays[0].transpose(2, 0, 1))
    return arrays[0]


def _numbers(path: Path, entry: Entry, arrays: list[Any]) -> Any:
    if any(array.ndim > 1 for array in arrays):
        raise _wrong(path, entry, arrays, 'vectors were expected')
    joined = np.concatenate([array.reshape(-1) for array in arrays]).astype(entry.dtype)
    if entry.length is not None and len(joined) != entry.length:
        raise _wrong(path, entry, arrays, f'{entry.length} numbers were expected')
    return joined


def _form(value: Any) -> str:
    return (
        'text' if isinstance(value, str) else f'{np.asarray(value).dtype}{list(np.shape(value))}'
    )


def _wrong(path: Path, entry: Entry, arrays: list[Any], wanted: str) -> KeyMapRefused:
    came = ', '.join(
        f'{key!r} {array.dtype}{list(array.shape)}'
        for key, array in zip(entry.sources, arrays, strict=True)
    )
    return KeyMapRefused(f'for {shown(path)} {wanted}; the robot gives {came}')

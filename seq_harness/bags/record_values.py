"""Values of a record as JSON holds them, and back without the loss of a bit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
import math
from typing import Any

import numpy as np
from pydantic import TypeAdapter
from seq_harness.bags import record_format
from seq_harness.bags.records import BagError
from seq_harness.contract.connect import WorkerDeclaration
from seq_harness.inputs import Sample, Still
from seq_harness.observation import ObservationRefused
from seq_harness.playback.chunk import Chunk, ChunkRefused, Row
from seq_harness.playback.uplink import ActAbandoned, PolicyError, Retired, StateLost, WorkerLost
from seq_harness.settings import Settings

ARRAY, SHAPE, VALUES = '$array', 'shape', 'values'
"""An array: its element type as numpy writes it, its shape, and its elements in order."""

SCALAR, VALUE = '$scalar', 'value'
"""One number of a given element type."""

FLOAT = '$float'
"""A number that JSON has not: `nan`, `inf` or `-inf`."""

OTHER = '$other'
"""What JSON cannot hold: its text, for people."""

_SETTINGS = TypeAdapter(Settings)

_ERRORS: Mapping[str, type[Exception]] = {
    kind.__name__: kind
    for kind in (ActAbandoned, ObservationRefused, PolicyError, Retired, StateLost, WorkerLost)
}


def pack_value(value: Any) -> Any:
    """Return what JSON can hold of a value; `unpack_value` gives the value back."""
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, np.ndarray) and value.dtype.kind in 'fiub':
        values = [pack_value(item) for item in value.ravel().tolist()]
        return {ARRAY: value.dtype.str, SHAPE: list(value.shape), VALUES: values}
    if isinstance(value, np.generic) and value.dtype.kind in 'fiub':
        return {SCALAR: value.dtype.str, VALUE: pack_value(value.item())}
    if isinstance(value, float):
        return value if math.isfinite(value) else {FLOAT: str(value)}
    if isinstance(value, int):
        return value
    if isinstance(value, Mapping):
        return {str(key): pack_value(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [pack_value(item) for item in value]
    return {OTHER: repr(value)[:200]}


def unpack_value(value: Any) -> Any:
    """
    Return the value of which `pack_value` made this; tuples come as lists.

    Raises
    ------
    BagError
        It was none that JSON can hold.

    """
    if isinstance(value, list):
        return [unpack_value(item) for item in value]
    if not isinstance(value, dict):
        return value
    if ARRAY in value:
        items = [unpack_value(item) for item in value[VALUES]]
        return np.array(items, np.dtype(value[ARRAY])).reshape(value[SHAPE])
    if SCALAR in value:
        return np.dtype(value[SCALAR]).type(unpack_value(value[VALUE]))
    if FLOAT in value:
        return float(value[FLOAT])
    if OTHER in value:
        raise BagError(f'the record holds no value that can be read back: {value[OTHER]}')
    return {key: unpack_value(item) for key, item in value.items()}


def pack_still(still: Still) -> record_format.Still:
    """Return for how long numbers have been the same, as a record holds it."""
    steps = dict(still.steps) if still.messages > 1 else {}
    return record_format.Still(
        still.topic, list(still.names), still.since_ns, still.messages, steps
    )


def sample_of(held: record_format.Sample, value: Any) -> Sample:
    """Return the sample of which a record holds this; `value` is what was read of it."""
    still = (
        Still(each.topic, tuple(each.names), each.since_ns, each.messages, each.steps)
        for each in held.still
    )
    return Sample(
        value,
        held.stamp_ros_ns,
        held.born_ns,
        proven=held.proven,
        doubt=held.doubt,
        still=tuple(still),
        form=held.form,
    )


def pack_chunk(chunk: Chunk) -> dict[str, Any]:
    """Return a chunk as JSON holds it."""
    return {
        'rows': _packed_rows(chunk.rows),
        'end_ns': chunk.end_ns,
        'end_reason': chunk.end_reason,
        'beyond': _packed_rows(chunk.beyond),
        'beyond_end_ns': chunk.beyond_end_ns,
    }


def chunk_of(held: Mapping[str, Any]) -> Chunk:
    """Return the chunk of which `pack_chunk` made this."""
    return Chunk(
        _rows(held['rows']),
        held['end_ns'],
        held['end_reason'],
        _rows(held['beyond']),
        held['beyond_end_ns'],
    )


def pack_error(error: BaseException) -> dict[str, str]:
    """Return what the loop makes out of a failure."""
    packed = {'type': type(error).__name__, 'text': str(error)}
    return {**packed, 'cause': error.cause} if isinstance(error, ChunkRefused) else packed


def error_of(held: Mapping[str, str]) -> Exception:
    """Return a failure that the loop takes for the one that was recorded."""
    name, text = held['type'], held['text']
    if 'cause' in held:
        return ChunkRefused(text, held['cause'])
    return _ERRORS.get(name, type(name, (Exception,), {}))(text)


def pack_settings(settings: Settings) -> dict[str, Any]:
    """Return settings as JSON holds them."""
    packed: dict[str, Any] = pack_value(_SETTINGS.dump_python(settings))
    return packed


def settings_of(held: Mapping[str, Any]) -> Settings:
    """Return the settings of which `pack_settings` made this."""
    found = _SETTINGS.validate_python(unpack_value(dict(held)))
    general = {name: _hashable(value) for name, value in found.general.items()}
    return replace(found, general=general)


def pack_declaration(declaration: WorkerDeclaration) -> dict[str, Any]:
    """Return a policy's declaration as JSON holds it."""
    packed: dict[str, Any] = pack_value(declaration.model_dump(mode='json', exclude_unset=True))
    return packed


def declaration_of(held: Mapping[str, Any]) -> WorkerDeclaration:
    """Return the declaration of which `pack_declaration` made this."""
    return WorkerDeclaration.model_validate(unpack_value(dict(held)))


def _packed_rows(rows: Iterable[Row]) -> list[list[Any]]:
    return [[row.offset_ns, pack_value(row.commands)] for row in rows]


def _rows(held: Iterable[tuple[int, Any]]) -> tuple[Row, ...]:
    return tuple(Row(offset_ns, unpack_value(commands)) for offset_ns, commands in held)


def _hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value

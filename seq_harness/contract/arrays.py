"""Arrays as the maps that stand for them in a msgpack body."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
import math
import re
import sys
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
from seq_harness.contract.limits import MAX_DIMENSIONS

Array = npt.NDArray[Any]

MARKERS = frozenset(
    marker for name in ('nd', '__ndarray__', '__npgeneric__') for marker in (name, name.encode())
)
"""A map that holds none of these stands for itself."""

PLAIN_FIELDS = 5
"""The fields that `array_to_map` gives an array."""

WORD_BYTES = 8
"""The widest numbers that a memoryview casts; numpy itself casts all."""

BFLOAT16 = 'bfloat16'
"""The name of the type that ml_dtypes adds to numpy."""

_NUMBERS = 'biufc'
_CARRIED = _NUMBERS + 'SUMm'
_TYPE = re.compile(
    r'[<>=|]?(\?|[biufcSUMm][0-9]{0,9})(\[[0-9A-Za-z/]{1,12}\])?'
    r'|bool|u?int[0-9]{1,2}|float[0-9]{2,3}|complex[0-9]{2,3}'
)


class ArrayRefused(ValueError):
    """An array, or a map that claims to be one, that no body carries."""


def carried(array: Array) -> Array:
    """Return an array of bfloat16, which no body carries, as float32; any other as it is."""
    if array.dtype.kind == 'V' and array.dtype.name == BFLOAT16:
        return array.astype(np.float32)
    return array


def array_to_map(array: Array) -> dict[bytes, Any]:
    """
    Lay out an array as msgpack-numpy does; its data shares the array's memory where it can.

    An array of bfloat16 goes as float32, as a tensor of that type does.

    Raises
    ------
    ArrayRefused
        Its type is no plain number, bool, time or text.

    """
    array = carried(array)
    return {
        b'nd': True,
        b'type': _type_of(array.dtype),
        b'kind': b'',
        b'shape': list(array.shape),
        b'data': _data_of(array),
    }


def scalar_to_map(scalar: np.generic) -> dict[bytes, Any]:
    """
    Lay out a numpy bool or number as msgpack-numpy does.

    Raises
    ------
    ArrayRefused
        It is of another type.

    """
    if not isinstance(scalar, (np.bool_, np.number)):
        raise ArrayRefused(f'a numpy {scalar.dtype} scalar is not carried: make it a Python value')
    return {b'nd': False, b'type': _type_of(scalar.dtype), b'data': scalar.tobytes()}


def plain_array(fields: Mapping[Any, Any]) -> Array | None:
    """
    Return the array that a map stands for which `array_to_map` laid out; None for any other map.

    Raises
    ------
    ValueError, TypeError, ArithmeticError, MemoryError
        Its type, shape and data do not make one; mostly an `ArrayRefused`.

    """
    if len(fields) != PLAIN_FIELDS or fields.get(b'nd') is not True or fields.get(b'kind') != b'':
        return None
    type_name, shape, data = fields.get(b'type'), fields.get(b'shape'), fields.get(b'data')
    if type_name is None or shape is None or data is None:
        return None
    return _array(type_name, shape, data)


def map_to_value(fields: Mapping[Any, Any]) -> Any:
    """
    Return the array or scalar that a decoded map stands for, or the map itself.

    Both layouts are read, msgpack-numpy's and openpi's, with their keys as bytes or as text. An
    array is a read-only view of the map's data.

    Raises
    ------
    ArrayRefused
        The map claims to be an array, and its type, shape and data do not make one.

    """
    if MARKERS.isdisjoint(fields):
        return fields
    try:
        return _read(fields)
    except (ValueError, TypeError, ArithmeticError, MemoryError) as error:
        if isinstance(error, ArrayRefused):
            raise
        raise ArrayRefused(f'a map that claims to be an array is none: {error}') from error


def _read(fields: Mapping[Any, Any]) -> Any:
    marker = _field(fields, 'nd')
    if marker is True and _holds(fields, 'type', 'shape', 'data'):
        kind = _field(fields, 'kind')
        if not (kind is None or (isinstance(kind, (bytes, str)) and not kind)):
            raise ArrayRefused('a structured array is not carried: send its fields one by one')
        return _array(_field(fields, 'type'), _field(fields, 'shape'), _field(fields, 'data'))
    if marker is False and _holds(fields, 'type', 'data'):
        return _array(_field(fields, 'type'), [], _field(fields, 'data'))[()]
    if _field(fields, '__ndarray__') is True and _holds(fields, 'dtype', 'shape', 'data'):
        return _array(_field(fields, 'dtype'), _field(fields, 'shape'), _field(fields, 'data'))
    if _field(fields, '__npgeneric__') is True and _holds(fields, 'dtype', 'data'):
        return _scalar(_dtype(_field(fields, 'dtype')), _field(fields, 'data'))
    return fields


def _field(fields: Mapping[Any, Any], name: str) -> Any:
    value = fields.get(name)
    return fields.get(name.encode()) if value is None else value


def _holds(fields: Mapping[Any, Any], *names: str) -> bool:
    return all(_field(fields, name) is not None for name in names)


def _array(type_name: Any, shape: Any, data: Any) -> Array:
    dtype = _dtype(type_name)
    if not isinstance(shape, list) or len(shape) > MAX_DIMENSIONS:
        raise ArrayRefused(f'a shape is a list of at most {MAX_DIMENSIONS} lengths')
    for length in shape:
        if type(length) is not int or length < 0:
            raise ArrayRefused(f'the lengths of a shape are ints, 0 or more, got {shape!r:.200}')
    if not isinstance(data, bytes):
        raise ArrayRefused(f"an array's data are bytes, got {type(data).__name__}")
    expected = math.prod(shape) * dtype.itemsize
    if len(data) != expected:
        raise ArrayRefused(
            f'an array of shape {shape} and type {dtype.str} has {expected} bytes of data, got '
            f'{len(data)}'
        )
    array: Array = np.ndarray(tuple(shape), dtype, data)
    if dtype.kind == 'U' and data:
        _check_text(array)
    return array


def _check_text(array: Array) -> None:
    """Refuse what no text holds, which numpy stumbles over when it is read."""
    codes = np.frombuffer(array.tobytes(), np.dtype(np.uint32).newbyteorder(array.dtype.byteorder))
    if codes.max() > sys.maxunicode:
        raise ArrayRefused(f'an array of text holds {codes.max():#x}, which is no character')


def _scalar(dtype: np.dtype[Any], data: Any) -> Any:
    # The width of a text type is the sender's word: the value itself says what to allocate.
    if dtype.kind in 'SU' and isinstance(data, (str, bytes)):
        return np.array(data)[()]
    if dtype.kind in 'iu' and isinstance(data, int):
        limits = np.iinfo(dtype)
        if limits.min <= data <= limits.max:
            return np.array(data, dtype)[()]
    elif dtype.kind not in 'iuSU' and isinstance(data, (bool, int, float)):
        with np.errstate(over='raise'):
            return np.array(data, dtype)[()]
    raise ArrayRefused(f'a scalar of type {dtype.str} cannot hold {data!r:.80}')


def _dtype(name: Any) -> np.dtype[Any]:
    if isinstance(name, str):
        return _dtype_of(name)
    return _dtype_of(name.decode('ascii')) if isinstance(name, bytes) else _refuse_type(name)


@lru_cache(maxsize=256)
def _dtype_of(name: str) -> np.dtype[Any]:
    if not _TYPE.fullmatch(name):
        _refuse_type(name)
    dtype = np.dtype(name)
    _check_carried(dtype)
    return dtype


def _refuse_type(name: Any) -> NoReturn:
    raise ArrayRefused(f"an array's type is one such as '<f4', got {name!r:.80}")


@lru_cache(maxsize=256)
def _type_of(dtype: np.dtype[Any]) -> str:
    _check_carried(dtype)
    name: str = dtype.str
    return name


def _check_carried(dtype: np.dtype[Any]) -> None:
    if dtype.kind not in _CARRIED or dtype.itemsize == 0 or np.dtype(dtype.str) != dtype:
        raise ArrayRefused(
            f'an array of type {dtype} is not carried: plain numbers, bools, times and text are'
        )


def _data_of(array: Array) -> memoryview | bytes:
    if array.dtype.kind in _NUMBERS and array.size:
        whole = np.asarray(array if array.flags.c_contiguous else np.ascontiguousarray(array))
        if whole.dtype.isnative and whole.dtype.itemsize <= WORD_BYTES:
            return whole.data.cast('B')
        return whole.reshape(-1).view(np.uint8).data
    return array.tobytes()

"""Bodies in msgpack: plain values, bytes and arrays, one value a body."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
import struct
from typing import Any, NoReturn

import msgpack  # type: ignore[import-untyped]
import numpy as np
from seq_harness.contract.arrays import (
    array_to_map,
    carried,
    map_to_value,
    MARKERS,
    plain_array,
    scalar_to_map,
)
from seq_harness.contract.limits import MAX_CONTAINERS, MAX_DEPTH, MAX_VALUES, most_values

_LEAVES = frozenset({type(None), bool, int, float, str, bytes})
_UNREADABLE = (
    *(ValueError, TypeError, ArithmeticError, MemoryError, RecursionError),
    msgpack.UnpackException,
)
"""What decoding a body raises that holds no value."""

_SENT_KEYS = (str, bytes, int)


class MsgpackError(ValueError):
    """A value that no body carries, or a body that holds no value."""


def pack(value: Any) -> bytes:
    """
    Encode one value: None, bools, ints, floats, text, bytes, lists, tuples, dicts and arrays.

    Arrays and numpy scalars are laid out as msgpack-numpy does, every float is 64 bits wide, and
    every head is the smallest. Keys are text, bytes or ints.

    Raises
    ------
    MsgpackError
        The value is of another type, an int is wider than 64 bits, a text is not Unicode, or
        something lies more than 64 levels down.

    """
    return pack_as(value, _numpy_to_map)


def pack_as(value: Any, numpy_to_map: Callable[[Any], dict[bytes, Any]]) -> bytes:
    """
    Encode one value as `pack` does, with its arrays and numpy scalars laid out by a function.

    Raises
    ------
    MsgpackError
        As `pack`.

    """
    if type(value) not in _LEAVES:
        _check(value, 0)
    try:
        packed: bytes = msgpack.Packer(default=numpy_to_map).pack(value)
    except MsgpackError:
        raise
    except (ValueError, TypeError, OverflowError, BufferError) as error:
        raise MsgpackError(f'the value cannot be sent: {error}') from error
    return packed


LARGE_BYTES = 4096
"""From how many bytes on the data of an array are worth not to be copied."""


def pack_pieces(value: Any) -> tuple[bytes | memoryview, ...]:
    """
    Encode one value as `pack` does, in pieces; a large array's data are not copied.

    Raises
    ------
    MsgpackError
        As `pack`.

    """
    if not isinstance(value, np.ndarray) or value.nbytes >= 2**32:
        return (pack(value),)
    value = carried(value)
    try:
        fields = array_to_map(value)
    except ValueError as error:
        raise MsgpackError(f'the value cannot be sent: {error}') from error
    data = fields[b'data'] if value.nbytes >= LARGE_BYTES else bytes(fields[b'data'])
    return _array_head(fields[b'type'], value.shape, value.nbytes), data


@lru_cache(maxsize=256)
def _array_head(type_name: str, shape: tuple[int, ...], nbytes: int) -> bytes:
    fields = {b'nd': True, b'type': type_name, b'kind': b'', b'shape': list(shape), b'data': None}
    head: bytes = msgpack.packb(fields)[:-1]
    if nbytes < 2**8:
        return head + struct.pack('!BB', 0xC4, nbytes)
    length = ('!BH', 0xC5) if nbytes < 2**16 else ('!BI', 0xC6)
    return head + struct.pack(*length, nbytes)


def unpack(body: bytes | bytearray | memoryview, *, writable: bool = False) -> Any:
    """
    Decode one value; what decoding takes is bounded by the body's own length.

    Arrays of msgpack-numpy's and of openpi's layout become arrays: read-only views of the bytes
    that were received, or copies where `writable` is set.

    Raises
    ------
    MsgpackError
        The body is not exactly one value, holds an extension type or a text that is not UTF-8,
        declares more than it holds, holds more values than its length warrants, or something
        lies more than 64 levels down.

    """
    try:
        return _decoded(body, writable, SHORT_LIST)
    except _UNREADABLE:
        return _unpack_checked(body, writable)


SHORT_LIST = 64
"""What one list of a body may declare before it is known that the body holds it all."""


def _unpack_checked(body: bytes | bytearray | memoryview, writable: bool) -> Any:
    """Decode what holds longer lists, or tell what is wrong with it."""
    try:
        return _decoded(body, writable, most_values(_check_whole(body)))
    except MsgpackError:
        raise
    except _UNREADABLE as error:
        raise MsgpackError(f'the body is no msgpack value: {error!r:.300}') from error


def _decoded(body: bytes | bytearray | memoryview, writable: bool, longest: int) -> Any:
    # A list is allocated by the length that it declares; maps grow as their items come.
    nbytes = memoryview(body).nbytes
    most = most_values(nbytes)
    hooks = {}
    if nbytes > min(MAX_CONTAINERS, MAX_VALUES):  # a shorter body cannot hold as many
        counter = _Counter(most)
        hooks = {'object_hook': counter.count_map, 'list_hook': counter.count_list}
    value = msgpack.unpackb(
        body, strict_map_key=False, max_array_len=longest, max_map_len=most, **hooks
    )
    return value if type(value) in _LEAVES else _resolved(value, 0, writable)


class _Counter:
    """Bound how much a body holds, while it is decoded."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._values = 0
        self._containers = 0

    def count_list(self, items: list[Any]) -> list[Any]:
        self._count(len(items))
        return items

    def count_map(self, fields: dict[Any, Any]) -> Any:
        self._count(2 * len(fields))
        # An array takes far less than its map, of which there may be many.
        array = plain_array(fields)
        return fields if array is None else array

    def _count(self, values: int) -> None:
        self._containers += 1
        if self._containers > MAX_CONTAINERS:
            raise MsgpackError(f'a body holds at most {MAX_CONTAINERS} lists and maps')
        self._values += values
        if self._values > self._most:
            raise MsgpackError(
                f'a body of this length holds at most {self._most} values: send long lists of '
                'numbers as arrays'
            )


def _resolved(value: Any, depth: int, writable: bool) -> Any:
    """Check what was decoded, and return it with its arrays in place of the maps."""
    if type(value) is list:
        if depth >= MAX_DEPTH and value:
            _refuse_depth()
        if not _LEAVES.issuperset(map(type, value)):
            for index, item in enumerate(value):
                if type(item) not in _LEAVES:
                    value[index] = _resolved(item, depth + 1, writable)
        return value
    if type(value) is not dict:
        _check(value, depth)
        return value.copy() if writable and isinstance(value, np.ndarray) else value
    if depth >= MAX_DEPTH and value:
        _refuse_depth()
    array = plain_array(value) if depth < MAX_DEPTH - 1 else None
    if array is None:
        for key, item in value.items():
            if type(key) not in _LEAVES:
                _refuse_key(key)
            if type(item) not in _LEAVES:
                value[key] = _resolved(item, depth + 1, writable)
        if MARKERS.isdisjoint(value):
            return value
        array = map_to_value(value)
        if array is value:
            return value
        _check(array, depth)
    return array.copy() if writable and isinstance(array, np.ndarray) else array


def _check_whole(body: bytes | bytearray | memoryview) -> int:
    """Check that the body is one whole value, and return its length in bytes."""
    # Skipping builds nothing, so it ends where the body does, whatever lengths are declared.
    size = memoryview(body).nbytes
    if not size:
        raise MsgpackError('the body is empty; one msgpack value was expected')
    skipper = msgpack.Unpacker(max_buffer_size=size)
    skipper.feed(body)
    skipper.skip()
    if skipper.tell() != size:
        raise MsgpackError(f'{size - skipper.tell()} bytes follow the value; none were expected')
    return int(size)


def _check(value: Any, depth: int) -> None:
    """Refuse what lies too deep and what is of no carried type, without building anything."""
    if type(value) in _LEAVES:
        return
    if isinstance(value, dict):
        if depth >= MAX_DEPTH and value:
            _refuse_depth()
        for key, item in value.items():
            if type(key) is not str and (isinstance(key, bool) or not isinstance(key, _SENT_KEYS)):
                _refuse_key(key)
            if type(item) not in _LEAVES:
                _check(item, depth + 1)
    elif isinstance(value, (list, tuple)) and not isinstance(value, msgpack.ExtType):
        if value:
            _check_depth(depth + 1)
        if not _LEAVES.issuperset(map(type, value)):
            for item in value:
                _check(item, depth + 1)
    elif isinstance(value, np.ndarray):
        _check_depth(depth + (2 if value.ndim else 1))
    elif isinstance(value, (np.bool_, np.number)) and not isinstance(value, float):
        _check_depth(depth + 1)
    elif not isinstance(value, (str, bytes, bytearray, memoryview, int, float)):
        raise MsgpackError(
            f'{type(value).__name__} is not carried: plain values, bytes, lists, dicts with such '
            'values and numpy arrays are'
        )


def _check_depth(depth: int) -> None:
    if depth > MAX_DEPTH:
        _refuse_depth()


def _refuse_depth() -> NoReturn:
    raise MsgpackError(f'the value is nested more than {MAX_DEPTH} levels deep')


def _refuse_key(key: Any) -> NoReturn:
    raise MsgpackError(f'a key is text, bytes or an int, got {type(key).__name__}')


def _numpy_to_map(value: Any) -> dict[bytes, Any]:
    if isinstance(value, np.ndarray):
        return array_to_map(value)
    if isinstance(value, np.generic):
        return scalar_to_map(value)
    raise OverflowError(f'{value!r:.80} is wider than 64 bits')

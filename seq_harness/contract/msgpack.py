"""Bodies in msgpack: plain values, bytes and arrays, one value a body."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgpack  # type: ignore[import-untyped]
import numpy as np
from seq_harness.contract.arrays import array_to_map, map_to_value, scalar_to_map
from seq_harness.contract.limits import MAX_CONTAINERS, MAX_DEPTH, most_values

_LEAVES = frozenset({type(None), bool, int, float, str, bytes})
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
    _check(value, 0)
    try:
        packed: bytes = msgpack.Packer(default=numpy_to_map).pack(value)
    except MsgpackError:
        raise
    except (ValueError, TypeError, OverflowError, BufferError) as error:
        raise MsgpackError(f'the value cannot be sent: {error}') from error
    return packed


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
        most = most_values(_check_whole(body))
        reader = _Reader(writable, most)
        value = msgpack.unpackb(
            body,
            strict_map_key=False,
            object_hook=reader.read_map,
            list_hook=reader.read_list,
            max_array_len=most,
            max_map_len=most,
        )
    except MsgpackError:
        raise
    except (ValueError, TypeError, RecursionError, msgpack.UnpackException) as error:
        raise MsgpackError(f'the body is no msgpack value: {error!r:.300}') from error
    _check(value, 0, received=True)
    return value


class _Reader:
    """Turn each decoded container into what it stands for, and bound how much there is."""

    def __init__(self, writable: bool, most: int) -> None:
        self._writable = writable
        self._most = most
        self._values = 0
        self._containers = 0

    def read_list(self, items: list[Any]) -> list[Any]:
        self._count(len(items))
        return items

    def read_map(self, fields: dict[Any, Any]) -> Any:
        self._count(2 * len(fields))
        value = map_to_value(fields)
        return value.copy() if self._writable and isinstance(value, np.ndarray) else value

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


def _check(value: Any, depth: int, received: bool = False) -> None:
    """Refuse what lies too deep and what is of no carried type, without building anything."""
    _check_depth(depth)
    if type(value) in _LEAVES:
        return
    if isinstance(value, dict):
        for key, item in value.items():
            _check_key(key, received)
            _check(item, depth + 1, received)
    elif isinstance(value, (list, tuple)) and not isinstance(value, msgpack.ExtType):
        if value:
            _check_depth(depth + 1)
        if not _LEAVES.issuperset(map(type, value)):
            for item in value:
                _check(item, depth + 1, received)
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
        raise MsgpackError(f'the value is nested more than {MAX_DEPTH} levels deep')


def _check_key(key: Any, received: bool) -> None:
    carried = type(key) in _LEAVES if received else isinstance(key, _SENT_KEYS)
    if not carried or (isinstance(key, bool) and not received):
        raise MsgpackError(f'a key is text, bytes or an int, got {type(key).__name__}')


def _numpy_to_map(value: Any) -> dict[bytes, Any]:
    if isinstance(value, np.ndarray):
        return array_to_map(value)
    if isinstance(value, np.generic):
        return scalar_to_map(value)
    raise OverflowError(f'{value!r:.80} is wider than 64 bits')

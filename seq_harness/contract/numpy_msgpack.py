"""Messages as openpi, roboarena and positronic pack them: msgpack with arrays in envelopes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from seq_harness.contract.arrays import carried
from seq_harness.contract.limits import MAX_MESSAGE_BYTES
from seq_harness.contract.msgpack import MsgpackError, pack_as
from seq_harness.contract.msgpack import unpack as unpack_any

_REFUSED = 'VOc'


def pack(value: Any, *, max_bytes: int = MAX_MESSAGE_BYTES) -> bytes:
    """
    Encode one value, with its arrays and numpy scalars in the envelopes of openpi-client.

    An array is `{b'__ndarray__': True, b'data', b'dtype', b'shape'}` in C order, in its own byte
    order; a numpy scalar is `{b'__npgeneric__': True, b'data', b'dtype'}`, but a float64 and a
    numpy text, which are Python's own, go bare. Otherwise as `seq_harness.contract.pack`.

    Raises
    ------
    MsgpackError
        Something of the value is not carried, such as an array of objects, of fields or of
        complex numbers, or the message is longer than `max_bytes`.

    """
    packed = pack_as(value, _to_map)
    _check_length(len(packed), max_bytes)
    return packed


def unpack(body: bytes | bytearray | memoryview, *, max_bytes: int = MAX_MESSAGE_BYTES) -> Any:
    """
    Decode one value; arrays are read-only views of the bytes that were received.

    Reads what both public packages write, openpi-client's envelopes and msgpack-numpy's, with
    their keys as bytes or as text. Tuples come back as lists. Decoding takes no more than what
    the body's own length warrants.

    Raises
    ------
    MsgpackError
        The body is longer than `max_bytes`, is not exactly one value, or holds an envelope whose
        type, shape and data do not make an array of plain numbers, bools, times or text.

    """
    _check_length(memoryview(body).nbytes, max_bytes)
    value = unpack_any(body)
    _check_kinds(value)
    return value


def _check_length(nbytes: int, max_bytes: int) -> None:
    if nbytes > max_bytes:
        raise MsgpackError(f'a message has at most {max_bytes} bytes, this one has {nbytes}')


def _check_kinds(value: Any) -> None:
    if isinstance(value, (np.ndarray, np.generic)):
        _dtype_text(value.dtype)
    elif isinstance(value, Mapping):
        for item in value.values():
            _check_kinds(item)
    elif isinstance(value, list):
        for item in value:
            _check_kinds(item)


def _to_map(value: Any) -> dict[bytes, Any]:
    if isinstance(value, np.ndarray):
        value = carried(value)
        return {
            b'__ndarray__': True,
            b'data': _data_of(value),
            b'dtype': _dtype_text(value.dtype),
            b'shape': list(value.shape),
        }
    if isinstance(value, np.generic):
        return {
            b'__npgeneric__': True,
            b'data': value.item(),
            b'dtype': _dtype_text(value.dtype),
        }
    raise OverflowError(f'{value!r:.80} is wider than 64 bits')


def _dtype_text(dtype: np.dtype[Any]) -> str:
    if dtype.kind in _REFUSED or dtype.itemsize == 0:
        raise MsgpackError(
            f'an array of type {dtype} is not carried: plain numbers, bools, times and text are'
        )
    text: str = dtype.str
    return text


def _data_of(array: npt.NDArray[Any]) -> memoryview | bytes:
    if array.dtype.kind in 'biuf' and array.size:
        return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
    return array.tobytes()

"""Bodies in JSON, and which bodies cannot be."""

from __future__ import annotations

from enum import Enum
import json
import re
from typing import Any

import numpy as np
from seq_harness.contract.limits import MAX_DEPTH, most_values

_SURROGATE = re.compile(rb'\\u[dD][89a-fA-F]')
"""Half of a pair, which without its other half is no character."""


class JsonError(ValueError):
    """A value that JSON does not carry, or a body that is no JSON."""


class Contents(Enum):
    """What a value holds beside what JSON carries as it is."""

    PLAIN = 'plain'
    ARRAYS = 'arrays'
    """Arrays or numpy scalars, which can go as lists and numbers."""
    BYTES = 'bytes'
    """Bytes, which need a msgpack body."""


def contents_of(value: Any) -> Contents:
    """Tell what a body of `value` needs, by looking through its dicts, lists and tuples."""
    return _contents_of(value, 0)


def pack_json(value: Any) -> bytes:
    """
    Encode a value as compact JSON in UTF-8, arrays as lists.

    Raises
    ------
    JsonError
        The value holds bytes, a text that is not Unicode, or another type.

    """
    try:
        text = json.dumps(value, separators=(',', ':'), ensure_ascii=False, default=_to_plain)
        return text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise JsonError(f'the value cannot be sent as JSON: {error}') from error


def unpack_json(body: bytes) -> Any:
    """
    Decode a body of JSON.

    Raises
    ------
    JsonError
        It is none, nests more than 64 levels deep, holds a text that is not Unicode, or more
        values than its length warrants.

    """
    # Each value but the first follows one of these; some more of them stand in texts.
    values = 1 + body.count(b',') + body.count(b'[') + body.count(b'{')
    if values > most_values(len(body)):
        raise JsonError(
            f'a body of {len(body)} bytes of JSON holds at most {most_values(len(body))} values: '
            'send long lists of numbers as arrays, in msgpack'
        )
    try:
        value = json.loads(body)
        if _SURROGATE.search(body):
            json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise JsonError(f'the body is no JSON: {error}') from error
    if body.count(b'[') + body.count(b'{') > MAX_DEPTH:
        _check_depth(value)
    return value


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            inner
            for item in level
            for inner in (item.values() if isinstance(item, dict) else item)
            if isinstance(inner, (dict, list))
        ]
    if any(level):
        raise JsonError(f'the body is nested more than {MAX_DEPTH} levels deep')


def _to_plain(value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    raise TypeError(
        f'{type(value).__name__} is not carried; plain values and arrays are, and bytes go in a '
        'msgpack body'
    )


def _contents_of(value: Any, depth: int) -> Contents:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return Contents.BYTES
    if isinstance(value, (np.ndarray, np.generic)):
        return Contents.ARRAYS
    # Deeper than this no body goes, which packing it says.
    if not isinstance(value, (dict, list, tuple)) or depth > MAX_DEPTH:
        return Contents.PLAIN
    items = value.values() if isinstance(value, dict) else value
    found = {_contents_of(item, depth + 1) for item in items}
    for contents in (Contents.BYTES, Contents.ARRAYS):
        if contents in found:
            return contents
    return Contents.PLAIN

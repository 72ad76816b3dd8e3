"""The robot-arm preset's binary body: its JSON, with every frame's bytes behind it."""

from __future__ import annotations

import base64
import binascii
import copy
import itertools
import struct
from typing import Any

from seq_harness.contract.json_body import JsonError, pack_json, unpack_json
from seq_harness.contract.wire import KEY_INPUTS, KEY_OBSERVATION

MAGIC = b'SQF1'
MAX_SEGMENTS = 256
_HEAD = struct.Struct('<4sII')
_IMAGES = 'images'
_DATA = 'data'


class FramesError(ValueError):
    """A body that is not laid out as binary frames."""


def pack_frames(body: dict[str, Any]) -> bytes | None:
    """
    Lay out an act's body with its frames' base64 moved out as bytes; `body` stays as it is.

    None says to send JSON instead: nothing would move, a frame that stays holds a number, which
    would be read as a segment's, or the rest is no JSON.
    """
    moved = copy.copy(body)
    frames = _frames_of(moved, copied=True)
    segments: list[bytes] = []
    for frame in frames:
        raw = _decoded(frame.get(_DATA))
        if raw is not None:
            frame[_DATA] = len(segments)
            segments.append(raw)
        elif isinstance(frame.get(_DATA), (int, float)):
            return None
    if not 0 < len(segments) <= MAX_SEGMENTS:
        return None
    try:
        text = pack_json(moved)
    except JsonError:
        return None
    lengths = struct.pack(f'<{len(segments)}I', *map(len, segments))
    return b''.join([_HEAD.pack(MAGIC, len(text), len(segments)), lengths, text, *segments])


def unpack_frames(body: bytes) -> dict[str, Any]:
    """
    Read binary frames back into the act's body, every frame in base64 again.

    Raises
    ------
    FramesError
        A length does not fit the body, the JSON is none, or a segment is not named exactly once.

    """
    text, segments = _split(body)
    try:
        envelope = unpack_json(text)
    except JsonError as error:
        raise FramesError(str(error)) from error
    if not isinstance(envelope, dict):
        raise FramesError(f'the JSON is an object, got {type(envelope).__name__}')
    named: list[int] = []
    for frame in _frames_of(envelope):
        number = frame.get(_DATA)
        if type(number) is int:
            if not 0 <= number < len(segments):
                raise FramesError(f'a frame names segment {number} of {len(segments)}')
            named.append(number)
            frame[_DATA] = base64.b64encode(segments[number]).decode('ascii')
    if sorted(named) != list(range(len(segments))):
        raise FramesError(f'each of {len(segments)} segments is named once, got {named}')
    return envelope


def _split(body: bytes) -> tuple[bytes, list[bytes]]:
    if len(body) < _HEAD.size or not body.startswith(MAGIC):
        raise FramesError(f'binary frames begin with {MAGIC!r} and two lengths')
    _, text_length, count = _HEAD.unpack_from(body)
    if count > MAX_SEGMENTS:
        raise FramesError(f'a body has at most {MAX_SEGMENTS} segments, got {count}')
    start = _HEAD.size + 4 * count
    if len(body) < start:
        raise FramesError(f'{count} segment lengths were announced, and the body ends before them')
    lengths = struct.unpack_from(f'<{count}I', body, _HEAD.size)
    if start + text_length + sum(lengths) != len(body):
        raise FramesError(
            f'the lengths make {start + text_length + sum(lengths)} bytes, the body is {len(body)}'
        )
    text_end = start + text_length
    ends = itertools.accumulate(lengths, initial=text_end)
    return body[start:text_end], [body[at:end] for at, end in itertools.pairwise(ends)]


def _frames_of(body: dict[str, Any], copied: bool = False) -> list[dict[str, Any]]:
    """List the frames of a body's observation; `copied` puts copies of them in their place."""
    holder = body
    for key in (KEY_INPUTS, KEY_OBSERVATION):
        if key in body:
            inner = body[key]
            if not isinstance(inner, dict):
                return []
            holder = body[key] = copy.copy(inner) if copied else inner
            break
    images = holder.get(_IMAGES)
    if not isinstance(images, list):
        return []
    if copied:
        images = [copy.copy(frame) for frame in images]
        holder[_IMAGES] = images
    return [frame for frame in images if isinstance(frame, dict)]


def _decoded(data: Any) -> bytes | None:
    """Decode base64 that encodes back to itself; None is anything else."""
    if not isinstance(data, str):
        return None
    try:
        raw = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return None
    return raw if base64.b64encode(raw).decode('ascii') == data else None

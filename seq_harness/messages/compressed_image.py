"""Read sensor_msgs/CompressedImage: cheap checks on arrival, and the pixels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
import io
import struct
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from seq_harness.messages.colour import demosaic
from seq_harness.messages.refusals import ImageRefused

Pixels: TypeAlias = NDArray[Any]

MAX_SIDE = 8192
"""The widest and highest picture that is decoded: what a policy may declare at most."""

_JPEG_START, _JPEG_END = b'\xff\xd8\xff', b'\xff\xd9'
_PNG_START, _PNG_HEADER = b'\x89PNG\r\n\x1a\n', b'IHDR'
_PNG_SIZE, _JPEG_SIZE = struct.Struct('>2I'), struct.Struct('>2H')
_PIXELS_BEGIN = 0xDA
_FRAME_BEGINS = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})
_PNG_END = b'\x00\x00\x00\x00IEND\xaeB`\x82'
_FULL_SIZE, _COLOURS = 'full size', 'colours'
_COARSEST = 64 * 65535
_DEPTH_HEADER = struct.Struct('<i2f')
_DEPTH_SOURCES = {'mono16', '16UC1', '32FC1'}
_BAYER = {
    'bayer_rggb8': (0, 0),
    'bayer_grbg8': (0, 1),
    'bayer_gbrg8': (1, 0),
    'bayer_bggr8': (1, 1),
}


@dataclass(frozen=True)
class _Picture:
    """A message's bytes, taken apart as its format string says."""

    source: str
    """The encoding of the image before compression; empty when the string does not say."""
    header: bytes
    """What the depth transport puts before the picture (G10); empty otherwise."""
    payload: bytes
    """The JPEG or PNG."""


def check_compressed(message: Any) -> None:
    """
    Check a sensor_msgs/CompressedImage by its first and last bytes; decode nothing (G12).

    Raises
    ------
    ImageRefused
        On no data, on bytes that are neither JPEG nor PNG, on a picture that breaks off before its
        end marker, and on depth in a form that does not hold it (JPEG, or another depth codec).

    """
    _checked(message)


def decode_compressed(message: Any) -> Pixels:
    """
    Return the pixels of a sensor_msgs/CompressedImage, read-only.

    The bytes say what they are; of the format string counts only what the bytes cannot say: the
    encoding before compression, and the depth transport. Colour and grey come as RGB uint8
    [H, W, 3] whatever order the format string names (G11): both file formats fix it. 16-bit
    pictures come as uint16 [H, W]; inverse depth of `32FC1` as float32 [H, W] in m, NaN where
    nothing was measured.

    Raises
    ------
    ImageRefused
        When `check_compressed` would refuse it, or the picture does not decode.

    """
    checked = _checked(message)
    picture = _opened(checked.payload)
    if checked.source in _DEPTH_SOURCES or picture.mode.startswith('I'):
        pixels = _depth(checked, picture)
    elif checked.source in _BAYER and picture.mode == 'L' and min(picture.size) > 1:
        pixels = demosaic(np.asarray(picture), *_BAYER[checked.source])
    else:
        pixels = np.array(picture.convert('RGB'))
    pixels.flags.writeable = False
    return pixels


def compressed_form(message: Any) -> str:
    """
    Return what a sensor_msgs/CompressedImage holds and its size, such as `rgb8 jpeg 640x480`.

    Reads headers alone; a size that they do not tell is left out.
    """
    came = _taken_apart(message)
    if came.payload.startswith(_PNG_START):
        width, height = _PNG_SIZE.unpack_from(came.payload, 16)
        told = f'png {width}x{height}'
    else:
        size = _jpeg_size(came.payload)
        told = 'jpeg' if size is None else f'jpeg {size[0]}x{size[1]}'
    return f'{came.source} {told}'.strip()


def jpeg_as_it_came(message: Any, width: int, height: int, quality: int) -> bytes | None:
    """
    Return the JPEG of a sensor_msgs/CompressedImage if it may be sent on as it is, else None.

    It may if it is colour of `width` x `height` pixels, and no coarser than `quality`. It is read
    through at an eighth of its size, which finds what does not decode for a part of the cost.

    Raises
    ------
    ImageRefused
        As `decode_compressed` does.

    """
    checked = _checked(message)
    if checked.source in _DEPTH_SOURCES or checked.source in _BAYER:
        return None
    if not checked.payload.startswith(_JPEG_START):
        return None
    picture = _opened(checked.payload, eighth=True)
    # Reading at an eighth changes the size of the picture: what its header says counts.
    if picture.info[_FULL_SIZE] != (width, height) or picture.info[_COLOURS] != 'RGB':
        return None
    tables = getattr(picture, 'quantization', {})
    if sum(tables.get(0, (_COARSEST,))) > sum(_luminance(quality)):
        return None
    return checked.payload


def _checked(message: Any) -> _Picture:
    """Take the message apart, once what it holds can be trusted to decode."""
    came = _taken_apart(message)
    if came.payload.startswith(_JPEG_START):
        return _checked_jpeg(came, message.format)
    if came.payload.startswith(_PNG_START):
        return _checked_png(came)
    after = f' after a header of {len(came.header)} bytes' if came.header else ''
    raise ImageRefused(
        f'expected a JPEG or PNG picture{after}, got {len(message.data)} bytes of format '
        f'{message.format!r} that begin with {came.payload[:8].hex() or "nothing"}'
    )


def _taken_apart(message: Any) -> _Picture:
    """Read 'png', 'rgb8; jpeg compressed bgr8', '16UC1; compressedDepth png' and their kin."""
    source, separator, _ = message.format.partition(';')
    data = bytes(message.data)
    cut = _DEPTH_HEADER.size if 'compressedDepth' in message.format else 0
    return _Picture(source.strip() if separator else '', data[:cut], data[cut:])


def _checked_jpeg(came: _Picture, said: str) -> _Picture:
    """Return a picture without what its driver left behind its end, as in a buffer used again."""
    if came.source in _DEPTH_SOURCES:
        raise ImageRefused(
            f'format {said!r} holds depth in 8 bits, with loss; have the depth sent as png or '
            'compressedDepth png'
        )
    end = _jpeg_end(came.payload)
    if end is None:
        raise ImageRefused(
            f'the JPEG of {len(came.payload)} bytes breaks off: no end, {_JPEG_END.hex()}, '
            'follows its pixels'
        )
    return came if end == len(came.payload) else replace(came, payload=came.payload[:end])


def _checked_png(came: _Picture) -> _Picture:
    """Return a picture without what its driver left behind its end."""
    payload = came.payload
    if payload[12:16] != _PNG_HEADER:
        raise ImageRefused(
            f'the PNG of {len(payload)} bytes does not begin with its header, got '
            f'{payload[12:16].hex() or "nothing"}'
        )
    end = payload.rfind(_PNG_END) + len(_PNG_END)
    if end < len(_PNG_END):
        raise ImageRefused(
            f'the PNG of {len(payload)} bytes breaks off: expected it to end in '
            f'{_PNG_END.hex()}, got {payload[-12:].hex()}'
        )
    return came if end == len(payload) else replace(came, payload=payload[:end])


def _segments(payload: bytes) -> Iterator[tuple[int, int]]:
    """Yield the marker and the place of each segment of a JPEG, up to its first pixels."""
    at = 2
    while at + 4 <= len(payload) and payload[at] == 0xFF:
        marker = payload[at + 1]
        yield marker, at
        if marker == _PIXELS_BEGIN:
            return
        at += 2 + int.from_bytes(payload[at + 2 : at + 4], 'big') if marker != 0xFF else 1


def _jpeg_size(payload: bytes) -> tuple[int, int] | None:
    """Return width and height, which stand in the segment that begins a frame."""
    for marker, at in _segments(payload):
        if marker in _FRAME_BEGINS and at + 9 <= len(payload):
            height, width = _JPEG_SIZE.unpack_from(payload, at + 5)
            return width, height
    return None


def _jpeg_end(payload: bytes) -> int | None:
    """Return where a JPEG ends; None for one that breaks off, or within which another begins."""
    start = next((at for marker, at in _segments(payload) if marker == _PIXELS_BEGIN), None)
    if start is None:
        return len(payload) if payload.endswith(_JPEG_END) else None
    # Among pixels these two bytes stand for nothing else.
    end = payload.find(_JPEG_END, start)
    if end < 0 or payload.find(_JPEG_START[:2], start, end) >= 0:
        return None
    return end + len(_JPEG_END)


@lru_cache(maxsize=8)
def _luminance(quality: int) -> tuple[int, ...]:
    """Return the table by which a JPEG of that quality rounds its luminance."""
    out = io.BytesIO()
    Image.new('RGB', (8, 8)).save(out, 'JPEG', quality=quality)
    tables = getattr(Image.open(out), 'quantization', {})
    return tuple(tables[0])


def _opened(payload: bytes, eighth: bool = False) -> Image.Image:
    """Decode a picture whose header names a bearable size, or an eighth of its size."""
    try:
        picture = Image.open(io.BytesIO(payload), formats=('JPEG', 'PNG'))
        if max(picture.size) <= MAX_SIDE:
            picture.info.update({_FULL_SIZE: picture.size, _COLOURS: picture.mode})
            if eighth:
                picture.draft(None, (picture.width // 8, picture.height // 8))
            picture.load()
            return picture
    except (OSError, SyntaxError, ValueError, EOFError, struct.error) as e:
        raise ImageRefused(
            f'the picture of {len(payload)} bytes does not decode: {type(e).__name__}: {e}'
        ) from e
    except Image.DecompressionBombError as e:
        raise ImageRefused(f'expected sides of at most {MAX_SIDE} pixels: {e}') from e
    raise ImageRefused(
        f'expected sides of at most {MAX_SIDE} pixels, got {picture.width} x {picture.height}'
    )


def _depth(came: _Picture, picture: Image.Image) -> Pixels:
    """Return 16-bit depth as it came, or metres from the inverse depth of `32FC1`."""
    if not picture.mode.startswith('I'):
        raise ImageRefused(
            f'expected 16 bits a pixel for {came.source!r}, got a picture of mode {picture.mode!r}'
        )
    stored = np.asarray(picture).astype(np.uint16)
    if came.source != '32FC1':
        return stored
    if not came.header:
        raise ImageRefused("expected '32FC1; compressedDepth png' for depth in metres, got png")
    _, numerator, offset = _DEPTH_HEADER.unpack(came.header)
    with np.errstate(divide='ignore', invalid='ignore'):
        metres: Pixels = np.float32(numerator) / (stored - np.float32(offset))
    metres[stored == 0] = np.nan
    return metres

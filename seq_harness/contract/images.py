"""Camera frames on the robot's side: fitting, encoding, and reading a size without decoding."""

from __future__ import annotations

import base64
import io
import struct
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from PIL import Image
from seq_harness.contract.camera import Filter, Fit, JPEG_QUALITY

_DEPTH_IN_MM = {'m': 1000.0, 'mm': 1.0}
_MAX_DEPTH_MM = 65535
_PNG = b'\x89PNG\r\n\x1a\n'
_SIZE = struct.Struct('>HH')
_LENGTH = struct.Struct('>H')
# Every start-of-frame marker of a JPEG: C0 to CF without the three that are none.
_JPEG_SIZES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}


class ImageRefused(ValueError):
    """Something that is no frame of the kind that was expected."""


def fit_image(
    pixels: npt.NDArray[np.uint8],
    width: int,
    height: int,
    *,
    mode: Fit,
    filter: Filter,  # noqa: A002
) -> npt.NDArray[np.uint8]:
    """
    Fit a uint8 frame [h, w] or [h, w, c] to `width` by `height`.

    `stretch` resizes both sides; `pad` keeps the ratio, in the middle of black. A frame of that
    size already is returned as it is.
    """
    if pixels.shape[:2] == (height, width):
        return pixels
    image = Image.fromarray(pixels)
    return np.asarray(fit_picture(image, width, height, mode=mode, filter=filter))


def fit_picture(
    image: Image.Image,
    width: int,
    height: int,
    *,
    mode: Fit,
    filter: Filter,  # noqa: A002
) -> Image.Image:
    """Fit a picture as `fit_image` fits a frame; its encoder needs no array of it."""
    resample = Image.Resampling[filter.upper()]
    if mode == 'stretch':
        return image.resize((width, height), resample)
    ratio = max(image.width / width, image.height / height)
    inner = (max(1, int(image.width / ratio)), max(1, int(image.height / ratio)))
    padded = Image.new(image.mode, (width, height))
    place = (max(0, int((width - inner[0]) / 2)), max(0, int((height - inner[1]) / 2)))
    padded.paste(image.resize(inner, resample), place)
    return padded


def encode_image(frame: npt.NDArray[np.uint8] | bytes | str, quality: int = JPEG_QUALITY) -> str:
    """
    Encode a frame [h, w, 3] as a JPEG in base64, at its own size.

    Bytes are an encoded file already, and a text is base64 already: neither is looked into.

    Raises
    ------
    ImageRefused
        The array is no uint8 frame.

    """
    if isinstance(frame, str):
        return frame
    if isinstance(frame, bytes):
        return base64.b64encode(frame).decode('ascii')
    if frame.dtype != np.uint8 or frame.ndim not in (2, 3):
        raise ImageRefused(
            f'a frame is a uint8 array [h, w, 3], got {frame.dtype} {list(frame.shape)}'
        )
    return _to_base64(_image_of(frame).convert('RGB'), 'JPEG', quality=quality)


def encode_depth(depth: npt.NDArray[Any], unit: Literal['m', 'mm'] = 'm') -> str:
    """
    Encode a depth frame [h, w] as a 16-bit PNG of mm in base64.

    Halves round to even; what is not finite or not above 0 is 0, no reading; 65535 is the most.
    """
    with np.errstate(invalid='ignore', over='ignore'):
        mm = np.round(np.asarray(depth, np.float64) * _DEPTH_IN_MM[unit])
    read = np.where(np.isfinite(mm) & (mm > 0), np.minimum(mm, _MAX_DEPTH_MM), 0)
    return _to_base64(_image_of(read.astype(np.uint16)), 'PNG')


def decode_depth(data: str | bytes) -> npt.NDArray[np.uint16]:
    """
    Decode a depth frame, a PNG as bytes or in base64, to mm [h, w]; 0 is no reading.

    Raises
    ------
    ImageRefused
        It is no PNG.

    """
    raw = frame_bytes(data) if isinstance(data, str) else data
    try:
        with Image.open(io.BytesIO(raw), formats=['PNG']) as image:
            return np.asarray(image).astype(np.uint16)
    except (OSError, SyntaxError, Image.DecompressionBombError) as error:
        raise ImageRefused(f'a depth frame is a 16-bit PNG: {error}') from error


def image_size(data: str | bytes) -> tuple[int, int]:
    """
    Read width and height from the head of a PNG or a JPEG, as bytes or in base64.

    Raises
    ------
    ImageRefused
        It is neither.

    """
    raw = frame_bytes(data) if isinstance(data, str) else data
    size = _png_size(raw) if raw.startswith(_PNG) else _jpeg_size(raw)
    if size is None:
        raise ImageRefused(f'a PNG or a JPEG was expected, got {len(raw)} bytes of something else')
    return size


def check_kind(raw: bytes, *, depth: bool) -> None:
    """
    Check, from its head alone, that an encoded frame is of depth, or is not.

    Raises
    ------
    ImageRefused
        A depth frame is no grey PNG of 16 bits, or another one has 16 bits a channel.

    """
    bits, colour = (raw[24], raw[25]) if raw.startswith(_PNG) and len(raw) > 25 else (8, 2)
    if depth and (bits, colour) != (16, 0):
        raise ImageRefused('a depth frame is a grey PNG of 16 bits, and this is another image')
    if not depth and bits == 16:
        raise ImageRefused('a frame of colours has 8 bits a channel, and this one has 16')


def frame_bytes(data: str) -> bytes:
    """
    Return the bytes of a frame that travels in base64.

    Raises
    ------
    ImageRefused
        The text is no base64.

    """
    try:
        return base64.b64decode(data, validate=True)
    except ValueError as error:
        raise ImageRefused(f'a frame travels in base64: {error}') from error


def _image_of(pixels: npt.NDArray[Any]) -> Image.Image:
    try:
        return Image.fromarray(pixels)
    except (TypeError, ValueError) as error:
        raise ImageRefused(
            f'a frame is an array [h, w] or [h, w, c], got {list(pixels.shape)}'
        ) from error


def _to_base64(image: Image.Image, form: str, **options: Any) -> str:
    out = io.BytesIO()
    image.save(out, form, **options)
    return base64.b64encode(out.getvalue()).decode('ascii')


def _png_size(raw: bytes) -> tuple[int, int] | None:
    if len(raw) < 24 or raw[12:16] != b'IHDR':
        return None
    return int.from_bytes(raw[16:20], 'big'), int.from_bytes(raw[20:24], 'big')


def _jpeg_size(raw: bytes) -> tuple[int, int] | None:
    if not raw.startswith(b'\xff\xd8'):
        return None
    at = 2
    while at + 9 <= len(raw) and raw[at] == 0xFF:
        marker = raw[at + 1]
        if marker in _JPEG_SIZES:
            height, width = _SIZE.unpack_from(raw, at + 5)
            return width, height
        # A filler byte stands alone; every other segment says its length.
        (length,) = _LENGTH.unpack_from(raw, at + 2)
        at += 1 if marker == 0xFF else 2 + max(2, length)
    return None

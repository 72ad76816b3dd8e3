"""Read sensor_msgs/Image: cheap checks on arrival, and the pixels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from seq_harness.messages.colour import demosaic, yuv_to_rgb
from seq_harness.messages.refusals import ImageRefused

Pixels: TypeAlias = NDArray[Any]


@dataclass(frozen=True)
class _Encoding:
    """How the bytes of an encoding lie, and what makes pixels of them."""

    pixel_bytes: int
    """Bytes of a pixel within a row of the first plane."""
    read: Callable[[Any], Pixels]
    extra_rows: float = 0.0
    """Rows of chroma after the first plane, as a part of the height."""
    even: tuple[str, ...] = ()
    """The sides that the layout needs to be even."""
    least_side: int = 1


def check_image(message: Any) -> None:
    """
    Check what a sensor_msgs/Image says of itself against the bytes that came; decode nothing.

    Raises
    ------
    ImageRefused
        On an unknown encoding, an empty image, a `step` shorter than a row, or missing bytes.

    """
    encoding = _encoding_of(message)
    width, height, step = int(message.width), int(message.height), int(message.step)
    least = encoding.least_side
    if width < least or height < least:
        raise ImageRefused(
            f'expected an image of at least {least} x {least} pixels, got {width} x {height}'
        )
    for side in encoding.even:
        if int(getattr(message, side)) % 2:
            raise ImageRefused(
                f'{message.encoding!r} needs an even {side}, got {width} x {height}'
            )
    row = width * encoding.pixel_bytes
    if step < row:
        raise ImageRefused(
            f'{width} pixels of {message.encoding!r} take {row} bytes a row, got a step of {step}'
        )
    rows = height + int(height * encoding.extra_rows)
    needed = step * (rows - 1) + row
    if len(message.data) < needed:
        raise ImageRefused(
            f'{width} x {height} pixels of {message.encoding!r} with a step of {step} take '
            f'{needed} bytes, got {len(message.data)}'
        )


def decode_image(message: Any) -> Pixels:
    """
    Return the pixels of a sensor_msgs/Image, read-only.

    Colour and grey come as RGB uint8 [H, W, 3]; 16-bit depth as uint16 [H, W] (by convention in
    mm) and 32-bit depth as float32 [H, W] (in m), in this machine's byte order. The array may
    share the message's memory. `8UC3` and `8UC4` hold blue first, as OpenCV writes them and rviz
    reads them. Rows are cropped by `step` (G8); 4:2:2 is read as its name declares (G9).

    Raises
    ------
    ImageRefused
        When `check_image` would refuse it.

    """
    check_image(message)
    pixels = _encoding_of(message).read(message)
    pixels.flags.writeable = False
    return pixels


def image_form(message: Any) -> str:
    """Return the encoding and size of a sensor_msgs/Image, such as `rgb8 640x480`."""
    return f'{message.encoding} {message.width}x{message.height}'


def _encoding_of(message: Any) -> _Encoding:
    encoding = _ENCODINGS.get(message.encoding)
    if encoding is None:
        raise ImageRefused(
            f'unknown image encoding {message.encoding!r}; expected one of '
            + ', '.join(sorted(_ENCODINGS))
        )
    return encoding


def _plane(message: Any, channels: int) -> NDArray[np.uint8]:
    """View the message's first plane as [H, W, channels], without the padding of its rows."""
    shape = (int(message.height), int(message.width), channels)
    strides = (int(message.step), channels, 1)
    plane: NDArray[np.uint8] = np.ndarray(shape, np.uint8, message.data, 0, strides)
    return plane


def _packed(*rgb: int, channels: int) -> Callable[[Any], Pixels]:
    """Read packed bytes whose red, green and blue are the channels `rgb`."""

    def read(message: Any) -> Pixels:
        plane = _plane(message, channels)
        if rgb == tuple(range(channels)):
            return np.ascontiguousarray(plane)
        pixels = np.empty((*plane.shape[:2], 3), np.uint8)
        for target, source in enumerate(rgb):
            pixels[..., target] = plane[..., source]
        return pixels

    return read


def _samples(kind: str) -> Callable[[Any], Pixels]:
    """Read one number a pixel, in the byte order that the message names."""

    def read(message: Any) -> Pixels:
        dtype = np.dtype(kind).newbyteorder('>' if message.is_bigendian else '<')
        rows = np.ascontiguousarray(_plane(message, dtype.itemsize))
        values: Pixels = rows.view(dtype)[..., 0]
        return values.astype(np.dtype(kind), copy=False)

    return read


def _bayer(red_row: int, red_column: int) -> Callable[[Any], Pixels]:
    def read(message: Any) -> Pixels:
        return demosaic(_plane(message, 1)[..., 0], red_row, red_column)

    return read


def _interleaved(luma: int, blue: int, red: int) -> Callable[[Any], Pixels]:
    """Read 4:2:2: four bytes hold two pixels; the arguments place Y0, U and V among them."""

    def read(message: Any) -> Pixels:
        pairs = _plane(message, 2).reshape(int(message.height), -1, 4)
        chroma = (np.repeat(pairs[..., place], 2, axis=1) for place in (blue, red))
        return yuv_to_rgb(_plane(message, 2)[..., luma], *chroma)

    return read


def _two_planes(blue: int, divisor: int) -> Callable[[Any], Pixels]:
    """Read a luma plane and one of chroma pairs, sub-sampled by `divisor` both ways."""

    def read(message: Any) -> Pixels:
        width, height, step = int(message.width), int(message.height), int(message.step)
        stride = step * 2 // divisor
        chroma = np.ndarray(
            (height // divisor, width // divisor, 2),
            np.uint8,
            buffer=message.data,
            offset=step * height,
            strides=(stride, 2, 1),
        )
        full = chroma.repeat(divisor, axis=0).repeat(divisor, axis=1)
        return yuv_to_rgb(_plane(message, 1)[..., 0], full[..., blue], full[..., 1 - blue])

    return read


_UYVY = _Encoding(2, _interleaved(luma=1, blue=0, red=2), even=('width',))
_YUYV = _Encoding(2, _interleaved(luma=0, blue=1, red=3), even=('width',))
_GREY = _Encoding(1, _packed(0, 0, 0, channels=1))
_SHORT = _Encoding(2, _samples('u2'))
_BGR = _Encoding(3, _packed(2, 1, 0, channels=3))
_BGRA = _Encoding(4, _packed(2, 1, 0, channels=4))

_ENCODINGS = {
    'rgb8': _Encoding(3, _packed(0, 1, 2, channels=3)),
    'rgba8': _Encoding(4, _packed(0, 1, 2, channels=4)),
    'bgr8': _BGR,
    'bgra8': _BGRA,
    '8UC3': _BGR,
    '8UC4': _BGRA,
    'mono8': _GREY,
    '8UC1': _GREY,
    'mono16': _SHORT,
    '16UC1': _SHORT,
    '32FC1': _Encoding(4, _samples('f4')),
    'bayer_rggb8': _Encoding(1, _bayer(0, 0), least_side=2),
    'bayer_grbg8': _Encoding(1, _bayer(0, 1), least_side=2),
    'bayer_gbrg8': _Encoding(1, _bayer(1, 0), least_side=2),
    'bayer_bggr8': _Encoding(1, _bayer(1, 1), least_side=2),
    'yuv422': _UYVY,
    'uyvy': _UYVY,
    'yuv422_yuy2': _YUYV,
    'yuyv': _YUYV,
    'nv12': _Encoding(1, _two_planes(0, divisor=2), extra_rows=0.5, even=('width', 'height')),
    'nv21': _Encoding(1, _two_planes(1, divisor=2), extra_rows=0.5, even=('width', 'height')),
    'nv24': _Encoding(1, _two_planes(0, divisor=1), extra_rows=2.0),
}

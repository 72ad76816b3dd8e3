"""A camera's depth frames: checked as they come, decoded before the policy reads them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from seq_harness.contract.errors import Rejected
from seq_harness.contract.images import check_kind, decode_depth, image_size, ImageRefused


def depth_size(key: str, frame: Any) -> tuple[int, int]:
    """
    Return width and height of a depth frame, from its head alone.

    Raises
    ------
    Rejected
        It is no depth frame.

    """
    if isinstance(frame, np.ndarray) and frame.dtype == np.uint16 and frame.ndim == 2:
        return int(frame.shape[1]), int(frame.shape[0])
    if not isinstance(frame, bytes):
        kind = f'{frame.dtype} array' if isinstance(frame, np.ndarray) else type(frame).__name__
        raise _refused(key, f'a {kind} came')
    try:
        check_kind(frame, depth=True)
        return image_size(frame)
    except ImageRefused as error:
        raise _refused(key, str(error)) from None


def depth_pixels(key: str, frame: Any) -> npt.NDArray[np.uint16]:
    """
    Return a depth frame in mm, uint16 [h, w]; 0 is no reading.

    Raises
    ------
    Rejected
        It cannot be decoded.

    """
    if isinstance(frame, np.ndarray):
        return frame
    try:
        return decode_depth(frame)
    except (ImageRefused, ValueError) as error:
        raise _refused(key, str(error)) from None


def _refused(key: str, why: str) -> Rejected:
    return Rejected(
        f'camera {key!r} declares depth, and its depth frame is none: {why}',
        hint='send a 16-bit PNG of mm as bytes, or a uint16 array [height, width]',
        details={'view': key},
    )

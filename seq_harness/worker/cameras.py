"""A policy's camera frames: checked as they come, decoded before the policy reads them."""

from __future__ import annotations

from collections.abc import Mapping
import io
from typing import Any

import numpy as np
from PIL import Image, UnidentifiedImageError
from seq_harness.contract.camera import Camera
from seq_harness.contract.errors import Rejected
from seq_harness.contract.own_io import Observations
from seq_harness.contract.wire import DETAIL_SIZES

ENCODED = ('JPEG', 'PNG')
"""The formats that are decoded, by Pillow's names."""


class Cameras:
    """
    The cameras of one declaration, by the key of the observation that holds their frames.

    A frame is bytes of a JPEG or PNG, or a uint8 array [h, w, 3]. It is never resized.
    """

    def __init__(self, observations: Observations | None) -> None:
        streams = (observations.streams if observations is not None else None) or {}
        self._cameras = {key: s.camera for key, s in streams.items() if s.camera is not None}

    def check(self, observation: Any) -> None:
        """
        Check the kind and the size of every frame, from its head alone.

        Raises
        ------
        Rejected
            A frame is of another size than declared, or is none.

        """
        for key, camera, frame in self._frames(observation):
            _check_size(key, camera, _size_of(key, frame))

    def decode(self, observation: Any) -> Any:
        """
        Return the observation with its frames in the layout that the policy declares.

        Raises
        ------
        Rejected
            A frame is of another size than declared, or cannot be decoded.

        """
        decoded = {
            key: _laid_out(_pixels(key, camera, frame), camera)
            for key, camera, frame in self._frames(observation)
        }
        return {**observation, **decoded} if decoded else observation

    def _frames(self, observation: Any) -> list[tuple[str, Camera, Any]]:
        if not isinstance(observation, Mapping):
            return []
        return [
            (key, camera, observation[key])
            for key, camera in self._cameras.items()
            if key in observation
        ]


def _size_of(key: str, frame: Any) -> tuple[int, int]:
    if isinstance(frame, np.ndarray):
        if frame.dtype != np.uint8 or frame.ndim != 3 or frame.shape[2] != 3:
            raise Rejected(
                f'camera {key!r} sent a {frame.dtype} array {list(frame.shape)}; a uint8 array '
                '[height, width, 3] was expected',
                hint='send RGB pixels, or a JPEG or PNG as bytes',
            )
        return int(frame.shape[1]), int(frame.shape[0])
    with _opened(key, frame) as image:
        width, height = image.size
    return width, height


def _check_size(key: str, camera: Camera, size: tuple[int, int]) -> None:
    declared = (camera.width, camera.height)
    if size != declared:
        raise Rejected(
            f'camera {key!r} sent a frame of {size[0]}x{size[1]}; the policy reads '
            f'{declared[0]}x{declared[1]}, and a worker never resizes',
            hint=_fit_hint(camera),
            details={'view': key, DETAIL_SIZES: {'sent': list(size), 'declared': list(declared)}},
        )


def _fit_hint(camera: Camera) -> str:
    if camera.resize is not None and camera.filter is not None:
        return f'fit it on the robot: resize={camera.resize!r} with the {camera.filter} filter'
    return f'fit it to {camera.width}x{camera.height} on the robot, as the policy was trained'


def _pixels(key: str, camera: Camera, frame: Any) -> np.ndarray[Any, np.dtype[np.uint8]]:
    _check_size(key, camera, _size_of(key, frame))
    if isinstance(frame, np.ndarray):
        return frame
    try:
        with _opened(key, frame) as image:
            return np.asarray(image.convert('RGB'))
    except (OSError, ValueError, SyntaxError) as error:
        raise Rejected(
            f'the frame of camera {key!r} cannot be decoded: {error}',
            hint='send the bytes of the whole file',
            details={'view': key},
        ) from error


def _opened(key: str, frame: Any) -> Image.Image:
    if not isinstance(frame, bytes):
        raise Rejected(
            f'camera {key!r} sent a {type(frame).__name__}; the bytes of a JPEG or PNG, or a '
            'uint8 array [height, width, 3], were expected'
        )
    try:
        return Image.open(io.BytesIO(frame), formats=ENCODED)
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError) as error:
        raise Rejected(
            f'camera {key!r} sent {len(frame)} bytes that are no JPEG or PNG',
            hint='send the bytes of the whole file, or a uint8 array [height, width, 3]',
            details={'view': key},
        ) from error


def _laid_out(pixels: np.ndarray[Any, np.dtype[np.uint8]], camera: Camera) -> Any:
    if camera.layout == 'chw_float':
        return np.ascontiguousarray(pixels.transpose(2, 0, 1), dtype=np.float32) / np.float32(255)
    return pixels

"""A policy's camera frames: checked as they come, decoded before the policy reads them."""

from __future__ import annotations

from collections.abc import Mapping
import io
from typing import Any

import numpy as np
from PIL import Image, UnidentifiedImageError
from seq_harness.contract.camera import Camera
from seq_harness.contract.errors import Rejected
from seq_harness.contract.images import check_kind, ImageRefused
from seq_harness.contract.own_io import Observations
from seq_harness.contract.wire import DETAIL_SIZES
from seq_harness.worker.depth import depth_pixels, depth_size

RGB, DEPTH = 'rgb', 'depth'
"""The two frames of a camera that declares depth."""

ENCODED = ('JPEG', 'PNG')
"""The formats that are decoded, by Pillow's names."""


class Cameras:
    """
    The cameras of one declaration, by the key of the observation that holds their frames.

    A frame is bytes of a JPEG or PNG, or a uint8 array [h, w, 3]. It is never resized. A camera
    that declares depth sends a mapping of two frames, `rgb` and `depth`: the latter is a 16-bit
    PNG of mm, or a uint16 array [h, w], and reaches the policy as such an array in any layout.
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
            if camera.depth:
                rgb, depth = _pair(key, frame)
                check_size(key, camera, depth_size(key, depth))
                check_size(key, camera, _size_of(key, rgb))
            else:
                check_size(key, camera, _size_of(key, frame))

    def decode(self, observation: Any) -> Any:
        """
        Return the observation with its frames in the layout that the policy declares.

        Raises
        ------
        Rejected
            A frame is of another size than declared, or cannot be decoded.

        """
        decoded = {
            key: _decoded(key, camera, frame) for key, camera, frame in self._frames(observation)
        }
        return {**observation, **decoded} if decoded else observation

    def _frames(self, observation: Any) -> list[tuple[str, Camera, Any]]:
        if not self._cameras or not isinstance(observation, Mapping):
            return []
        return [
            (key, camera, observation[key])
            for key, camera in self._cameras.items()
            if key in observation
        ]


def _decoded(key: str, camera: Camera, frame: Any) -> Any:
    if not camera.depth:
        return _laid_out(_pixels(key, camera, frame), camera)
    rgb, depth = _pair(key, frame)
    check_size(key, camera, depth_size(key, depth))
    return {RGB: _laid_out(_pixels(key, camera, rgb), camera), DEPTH: depth_pixels(key, depth)}


def _pair(key: str, frame: Any) -> tuple[Any, Any]:
    if not isinstance(frame, Mapping) or not {RGB, DEPTH} <= set(frame):
        came = sorted(map(str, frame)) if isinstance(frame, Mapping) else type(frame).__name__
        raise Rejected(
            f'camera {key!r} sent {came}; it declares depth, so a mapping of rgb and depth was '
            'expected',
            hint='send {"rgb": <the frame>, "depth": <a 16-bit PNG of mm>}',
            details={'view': key},
        )
    return frame[RGB], frame[DEPTH]


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
    try:
        check_kind(frame, depth=False)
    except ImageRefused as error:
        raise Rejected(f'camera {key!r}: {error}', details={'view': key}) from None
    return width, height


def check_size(view: str, camera: Camera, size: tuple[int, int]) -> None:
    """
    Check the size of a frame, width and height, against the declared one.

    Raises
    ------
    Rejected
        It is another; a worker never resizes.

    """
    declared = (camera.width, camera.height)
    if size != declared:
        raise Rejected(
            f'camera {view!r} sent a frame of {size[0]}x{size[1]}; the policy reads '
            f'{declared[0]}x{declared[1]}, and a worker never resizes',
            hint=_fit_hint(camera),
            details={'view': view, DETAIL_SIZES: {'sent': list(size), 'declared': list(declared)}},
        )


def _fit_hint(camera: Camera) -> str:
    if camera.resize is not None and camera.filter is not None:
        return f'fit it on the robot: resize={camera.resize!r} with the {camera.filter} filter'
    return f'fit it to {camera.width}x{camera.height} on the robot, as the policy was trained'


def _pixels(key: str, camera: Camera, frame: Any) -> np.ndarray[Any, np.dtype[np.uint8]]:
    check_size(key, camera, _size_of(key, frame))
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

"""Sensor colour formats to RGB: 4:2:2 and 4:2:0 video samples, and Bayer mosaics."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Bytes: TypeAlias = NDArray[np.uint8]

_LUMA = np.clip(np.rint((np.arange(256) - 16.0) * 255 / 219), 0, 255).astype(np.uint8)
_CHROMA = np.clip(np.rint((np.arange(256) - 128.0) * 255 / 224 + 128), 0, 255).astype(np.uint8)


def yuv_to_rgb(luma: Bytes, blue: Bytes, red: Bytes) -> Bytes:
    """
    Convert planes of one size, uint8 [H, W], to RGB uint8 [H, W, 3].

    Video range, ITU-R BT.601, as OpenCV and cv_bridge read these encodings; within 2 of the exact
    value.
    """
    planes = np.empty((*luma.shape, 3), np.uint8)
    planes[..., 0] = _LUMA[luma]
    planes[..., 1] = _CHROMA[blue]
    planes[..., 2] = _CHROMA[red]
    size = (luma.shape[1], luma.shape[0])
    picture = Image.frombuffer('YCbCr', size, planes, 'raw', 'YCbCr', 0, 1)
    return np.array(picture.convert('RGB'))


def demosaic(mosaic: Bytes, red_row: int, red_column: int) -> Bytes:
    """
    Interpolate a Bayer mosaic, uint8 [H, W], bilinearly to RGB uint8 [H, W, 3].

    `red_row` and `red_column`, each 0 or 1, place the red sample in the first 2 x 2 block. Both
    sides are 2 or more. Borders are mirrored, which keeps the pattern.
    """
    height, width = mosaic.shape
    wide = np.pad(mosaic, 1, mode='reflect').astype(np.uint16)
    shifted = _Shifted(wide, height, width)
    rgb = np.empty((height, width, 3), np.uint8)
    colours = [rgb[..., channel] for channel in range(3)]
    for row in (0, 1):
        for column in (0, 1):
            cell = (slice(row, None, 2), slice(column, None, 2))
            on_red_row, on_red_column = row == red_row, column == red_column
            if on_red_row == on_red_column:
                own, other = (0, 2) if on_red_row else (2, 0)
                colours[own][cell] = mosaic[cell]
                colours[1][cell] = shifted.mean(cell, [(-1, 0), (1, 0), (0, -1), (0, 1)])
                colours[other][cell] = shifted.mean(cell, [(-1, -1), (-1, 1), (1, -1), (1, 1)])
            else:
                beside, above = (0, 2) if on_red_row else (2, 0)
                colours[1][cell] = mosaic[cell]
                colours[beside][cell] = shifted.mean(cell, [(0, -1), (0, 1)])
                colours[above][cell] = shifted.mean(cell, [(-1, 0), (1, 0)])
    return rgb


class _Shifted:
    """Neighbours of the cells of a mosaic that carries a border of one sample."""

    def __init__(self, wide: NDArray[np.uint16], height: int, width: int) -> None:
        self._wide = wide
        self._height = height
        self._width = width

    def mean(
        self, cell: tuple[slice, slice], offsets: list[tuple[int, int]]
    ) -> NDArray[np.uint16]:
        """Return the mean of the neighbours at `offsets`, halves rounded up."""
        total: Any = sum(self._at(down, right)[cell] for down, right in offsets)
        return np.asarray((total + len(offsets) // 2) // len(offsets), np.uint16)

    def _at(self, down: int, right: int) -> NDArray[np.uint16]:
        rows = slice(1 + down, 1 + down + self._height)
        columns = slice(1 + right, 1 + right + self._width)
        return self._wide[rows, columns]

"""Unit quaternions (x, y, z, w), and rotation vectors; each may be one or many, [..., 4 or 3]."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float64]

_SMALL = 1e-9
"""Below this angle, in rad, a rotation and its vector are the same to float64."""


def rotation_between(before: Vector, after: Vector) -> Vector:
    """Return the rotation vector, in rad, that turns `before` into `after` the short way."""
    turned = _product(after, np.multiply(before, (-1.0, -1.0, -1.0, 1.0)))
    turned = np.where(turned[..., 3:] < 0, -turned, turned)
    axis = turned[..., :3]
    sine = np.sqrt((axis * axis).sum(axis=-1, keepdims=True))
    angle = 2 * np.arctan2(sine, turned[..., 3:])
    small = sine < _SMALL
    return np.asarray(axis * np.where(small, 2.0, angle / np.where(small, 1.0, sine)))


def rotated(value: Vector, rotation: Vector) -> Vector:
    """Return `value` turned by a rotation vector in rad, of unit length."""
    angle = np.sqrt((rotation * rotation).sum(axis=-1, keepdims=True))
    small = angle < _SMALL
    scale = np.where(small, 0.5, np.sin(angle / 2) / np.where(small, 1.0, angle))
    turned = _product(np.concatenate([rotation * scale, np.cos(angle / 2)], axis=-1), value)
    return np.asarray(turned / np.sqrt((turned * turned).sum(axis=-1, keepdims=True)))


def _product(left: Vector, right: Vector) -> Vector:
    lx, ly, lz, lw = np.moveaxis(left, -1, 0)
    rx, ry, rz, rw = np.moveaxis(right, -1, 0)
    return np.stack(
        [
            lw * rx + lx * rw + ly * rz - lz * ry,
            lw * ry - lx * rz + ly * rw + lz * rx,
            lw * rz + lx * ry - ly * rx + lz * rw,
            lw * rw - lx * rx - ly * ry - lz * rz,
        ],
        axis=-1,
    )

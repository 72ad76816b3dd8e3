"""Unit quaternions as (x, y, z, w), and rotation vectors."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float64]

_SMALL = 1e-9
"""Below this angle, in rad, a rotation and its vector are the same to float64."""


def rotation_between(before: Vector, after: Vector) -> Vector:
    """Return the rotation vector, in rad, that turns `before` into `after` the short way."""
    turned = _product(after, _conjugate(before))
    if turned[3] < 0:
        turned = -turned
    sine = float(np.linalg.norm(turned[:3]))
    if sine < _SMALL:
        return np.asarray(2 * turned[:3])
    angle = 2 * math.atan2(sine, float(turned[3]))
    return np.asarray(turned[:3] * (angle / sine))


def rotated(value: Vector, rotation: Vector) -> Vector:
    """Return `value` turned by a rotation vector in rad, of unit length."""
    angle = float(np.linalg.norm(rotation))
    scale = 0.5 if angle < _SMALL else math.sin(angle / 2) / angle
    turn = np.append(rotation * scale, math.cos(angle / 2))
    turned = _product(turn, value)
    return np.asarray(turned / np.linalg.norm(turned))


def _conjugate(value: Vector) -> Vector:
    return np.array([-value[0], -value[1], -value[2], value[3]])


def _product(left: Vector, right: Vector) -> Vector:
    lx, ly, lz, lw = left
    rx, ry, rz, rw = right
    return np.array(
        [
            lw * rx + lx * rw + ly * rz - lz * ry,
            lw * ry - lx * rz + ly * rw + lz * rx,
            lw * rz + lx * ry - ly * rx + lz * rw,
            lw * rw - lx * rx - ly * ry - lz * rz,
        ]
    )

"""Poses in the forms that policies and controllers use: a position, then a rotation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from seq_harness.playback.channels import Vector

SMALL = 1e-9
"""A rotation shorter than this has no axis, in rad, or no direction, without unit."""


class PoseRefused(ValueError):
    """A vector that is no pose of its form; says what was expected and what came."""


@dataclass(frozen=True)
class Form:
    """One way to write a rotation."""

    size: int
    """How many numbers it takes, after the three of the position."""
    read: Callable[[Vector], Vector]
    """Makes the rotation matrix [3, 3]."""
    write: Callable[[Vector], Vector]
    """Makes the numbers [size] of a rotation matrix."""


def matrix_of(pose: Vector, form: str) -> Vector:
    """
    Return the homogeneous matrix [4, 4] of a pose [3 + size], positions in m.

    Raises
    ------
    PoseRefused
        The vector has another size, or its rotation no direction.

    """
    size = 3 + FORMS[form].size
    if pose.shape != (size,):
        raise PoseRefused(f'a pose of form {form!r} has {size} numbers; got shape {pose.shape}')
    matrix = np.eye(4)
    matrix[:3, :3] = FORMS[form].read(pose[3:])
    matrix[:3, 3] = pose[:3]
    return matrix


def pose_of(matrix: Vector, form: str) -> Vector:
    """Return the pose [3 + size] of a homogeneous matrix [4, 4]."""
    return np.concatenate([matrix[:3, 3], FORMS[form].write(matrix[:3, :3])])


def inverse(matrix: Vector) -> Vector:
    """Return the inverse of a homogeneous matrix of rotation and translation."""
    turned = np.eye(4)
    turned[:3, :3] = matrix[:3, :3].T
    turned[:3, 3] = -matrix[:3, :3].T @ matrix[:3, 3]
    return turned


def _unit(vector: Vector) -> Vector:
    length = np.linalg.norm(vector)
    if length < SMALL:
        raise PoseRefused(f'a rotation of some length was expected, got {vector.tolist()}')
    unit: Vector = vector / length
    return unit


def _from_xyzw(q: Vector) -> Vector:
    x, y, z, w = _unit(q)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )


def _to_xyzw(r: Vector) -> Vector:
    """Return the quaternion with w >= 0, by its largest component (Shepperd, 1978)."""
    trace = r[0, 0] + r[1, 1] + r[2, 2]
    squares = np.array([2 * r[0, 0] - trace, 2 * r[1, 1] - trace, 2 * r[2, 2] - trace, trace])
    largest = int(np.argmax(squares))
    i, j, k = largest % 3, (largest + 1) % 3, (largest + 2) % 3
    q = np.empty(4)
    if largest == 3:
        q[:] = [r[2, 1] - r[1, 2], r[0, 2] - r[2, 0], r[1, 0] - r[0, 1], 1 + trace]
    else:
        q[i] = 1 + squares[largest]
        q[j] = r[i, j] + r[j, i]
        q[k] = r[i, k] + r[k, i]
        q[3] = r[k, j] - r[j, k]
    q /= np.linalg.norm(q)
    return q if q[3] >= 0 else -q


def _from_rotvec(v: Vector) -> Vector:
    """Return the matrix of an axis scaled by its angle in rad (Rodrigues)."""
    angle = float(np.linalg.norm(v))
    if angle < SMALL:
        return np.eye(3) + _cross(v)
    k = _cross(v / angle)
    matrix: Vector = np.eye(3) + np.sin(angle) * k + (1 - np.cos(angle)) * (k @ k)
    return matrix


def _to_rotvec(r: Vector) -> Vector:
    q = _to_xyzw(r)
    length = float(np.linalg.norm(q[:3]))
    if length < SMALL:
        return 2 * q[:3]
    rotvec: Vector = q[:3] / length * 2 * np.arctan2(length, q[3])
    return rotvec


def _cross(v: Vector) -> Vector:
    x, y, z = v
    return np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])


def _from_rpy(v: Vector) -> Vector:
    """Return the matrix of roll, pitch and yaw about the fixed axes x, y, z, in rad (URDF)."""
    (sr, sp, sy), (cr, cp, cy) = np.sin(v), np.cos(v)
    return np.array(
        [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
    )


def _to_rpy(r: Vector) -> Vector:
    pitch = np.arctan2(-r[2, 0], np.hypot(r[0, 0], r[1, 0]))
    if np.hypot(r[0, 0], r[1, 0]) < SMALL:
        # Straight up or down only the sum of roll and yaw is known: yaw is taken as 0.
        return np.array([np.arctan2(-r[1, 2], r[1, 1]), pitch, 0.0])
    return np.array([np.arctan2(r[2, 1], r[2, 2]), pitch, np.arctan2(r[1, 0], r[0, 0])])


def _from_rot6d(v: Vector) -> Vector:
    """Return the matrix of its first two columns, made orthogonal (arXiv 1812.07035)."""
    first = _unit(v[:3])
    second = _unit(v[3:] - (first @ v[3:]) * first)
    return np.stack([first, second, np.cross(first, second)], axis=1)


def _to_rot6d(r: Vector) -> Vector:
    return np.concatenate([r[:, 0], r[:, 1]])


FORMS: Mapping[str, Form] = {
    'quat_xyzw': Form(4, _from_xyzw, _to_xyzw),
    'quat_wxyz': Form(
        4,
        lambda q: _from_xyzw(q[[1, 2, 3, 0]]),
        lambda r: _to_xyzw(r)[[3, 0, 1, 2]],
    ),
    'rotvec': Form(3, _from_rotvec, _to_rotvec),
    'rpy': Form(3, _from_rpy, _to_rpy),
    'rot6d': Form(6, _from_rot6d, _to_rot6d),
}
"""Every form by its name; quaternions are normed, and written with w >= 0."""

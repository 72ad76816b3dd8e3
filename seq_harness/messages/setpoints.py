"""Fill and read the messages of standard controllers, by their fields alone."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
import math
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from seq_harness.messages.refusals import SetpointRefused

Floats: TypeAlias = Sequence[float] | NDArray[np.floating[Any]]

__all__ = [
    'SetpointRefused',
    'TrajectoryPoint',
    'fill_float64_multi_array',
    'fill_joint_trajectory',
    'read_float64_multi_array',
    'read_joint_trajectory',
]


@dataclass(frozen=True)
class TrajectoryPoint:
    """Where the joints are to be, and when."""

    positions: tuple[float, ...]
    """In the order of the trajectory's joint names, in rad or m."""
    time_from_start_ns: int
    """After the instant at which the controller takes the trajectory."""


def fill_float64_multi_array(message: Any, values: Floats) -> None:
    """
    Put `values` into a std_msgs/Float64MultiArray; its layout stays empty.

    Raises
    ------
    SetpointRefused
        When a value is not finite (G4); the message is left as it was.

    """
    message.data = container_of(message)(finite_setpoint(values))


def fill_joint_trajectory(
    message: Any,
    point_type: Callable[..., Any],
    duration_type: Callable[..., Any],
    names: Sequence[str],
    points: Sequence[TrajectoryPoint],
) -> None:
    """
    Put `points` into a trajectory_msgs/JointTrajectory of the joints `names`.

    The stamp is zero, which means at once (G39); no point carries a velocity, so that none is left
    at the end (G41). `point_type` and `duration_type` make JointTrajectoryPoint and Duration.

    Raises
    ------
    SetpointRefused
        When there is no point, a value is not finite, a width differs from the names, or the times
        do not rise from above zero; the message is left as it was.

    """
    _check_points(names, points)
    floats = container_of(message)
    filled = [_filled_point(point_type, duration_type, floats, point) for point in points]
    message.header.stamp.sec = 0
    message.header.stamp.nanosec = 0
    message.joint_names = list(names)
    message.points = filled


def read_float64_multi_array(message: Any) -> NDArray[np.float64]:
    """Return the values of a std_msgs/Float64MultiArray as float64 [N], whatever they are."""
    return np.array(message.data, np.float64)


def read_joint_trajectory(message: Any) -> tuple[tuple[str, ...], tuple[TrajectoryPoint, ...]]:
    """Return the joint names of a trajectory_msgs/JointTrajectory, and its points."""
    points = tuple(
        TrajectoryPoint(
            tuple(map(float, point.positions)),
            point.time_from_start.sec * 1_000_000_000 + point.time_from_start.nanosec,
        )
        for point in message.points
    )
    return tuple(message.joint_names), points


def _check_points(names: Sequence[str], points: Sequence[TrajectoryPoint]) -> None:
    if not points:
        raise SetpointRefused('expected at least one trajectory point, got none')
    before_ns = 0
    for number, point in enumerate(points):
        if len(point.positions) != len(names):
            raise SetpointRefused(
                f'expected {len(names)} positions in point {number}, got {len(point.positions)}'
            )
        if point.time_from_start_ns <= before_ns:
            raise SetpointRefused(
                f'expected point {number} after {before_ns} ns, got {point.time_from_start_ns} ns'
            )
        before_ns = point.time_from_start_ns


def _filled_point(
    point_type: Callable[..., Any],
    duration_type: Callable[..., Any],
    floats: Callable[[list[float]], Any],
    point: TrajectoryPoint,
) -> Any:
    seconds, nanoseconds = divmod(point.time_from_start_ns, 1_000_000_000)
    return point_type(
        positions=floats(finite_setpoint(point.positions)),
        velocities=floats([]),
        accelerations=floats([]),
        effort=floats([]),
        time_from_start=duration_type(sec=seconds, nanosec=nanoseconds),
    )


def finite_setpoint(values: Floats) -> list[float]:
    """Return plain numbers, or raise `SetpointRefused` for one that is not finite."""
    plain = [float(value) for value in values]
    for place, value in enumerate(plain):
        if not math.isfinite(value):
            raise SetpointRefused(f'expected finite setpoints, got {value} at place {place}')
    return plain


def container_of(message: Any) -> Callable[[list[float]], Any]:
    """Return what makes the message's own kind of float64 sequence: rosbags' or rclpy's."""
    if hasattr(message, '__msgtype__'):
        return lambda values: np.array(values, np.float64)
    return lambda values: array('d', values)

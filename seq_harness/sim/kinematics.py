"""A six-joint arm: where its links are, and the joints that put its tip on the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
import math
from typing import TypeAlias

Point: TypeAlias = tuple[float, float, float]
"""x forward, y left, z up from the arm's foot on the table, in metres."""

Joints: TypeAlias = tuple[float, ...]
"""Six angles in rad: yaw, shoulder, elbow, wrist, tool roll, jaw tilt."""

JOINT_NAMES = tuple(f'joint_{number}' for number in range(1, 7))
LOWER: Joints = (-2.6, -0.3, -2.7, -2.2, -3.1, -1.6)
UPPER: Joints = (2.6, 2.2, 0.0, 2.2, 3.1, 1.6)
"""The joint limits, in rad."""
MAX_VELOCITY: Joints = (2.0, 2.0, 2.5, 3.0, 4.0, 4.0)
"""The fastest that each joint turns, in rad/s."""

SHOULDER_HEIGHT, UPPER_ARM, FOREARM, TOOL = 0.16, 0.30, 0.28, 0.12
"""The lengths of the links, in metres."""


class OutOfReach(ValueError):
    """A point on the table that the tip cannot touch; says how far it is and what is reached."""


@dataclass(frozen=True)
class Pose:
    """The arm's links in the world."""

    shoulder: Point
    elbow: Point
    wrist: Point
    tip: Point
    jaw: Point
    """The direction in which the jaws lie at the tip, a unit vector; the tool joints turn it."""


def forward(joints: Sequence[float]) -> Pose:
    """
    Return where the links are for six joint angles in rad.

    The shoulder's angle is its elevation above the table's plane, the elbow's and the wrist's are
    relative to the link before; positive raises. The last two turn the tool and leave the tip.
    """
    yaw, shoulder, elbow, wrist, roll, tilt = joints
    ahead = (math.cos(yaw), math.sin(yaw))
    places = [(0.0, SHOULDER_HEIGHT)]
    pitch = 0.0
    for angle, length in ((shoulder, UPPER_ARM), (elbow, FOREARM), (wrist, TOOL)):
        pitch += angle
        r, z = places[-1]
        places.append((r + length * math.cos(pitch), z + length * math.sin(pitch)))
    base, elbow_at, wrist_at, tip = ((r * ahead[0], r * ahead[1], z) for r, z in places)
    return Pose(base, elbow_at, wrist_at, tip, _jaw(ahead, pitch, roll, tilt))


def inverse(x: float, y: float, *, roll: float = 0.0, tilt: float = 0.0) -> Joints:
    """
    Return the joints that touch the table at (x, y) in metres, tool straight down, elbow up.

    Raises
    ------
    OutOfReach
        When no angles within the limits do.

    """
    distance = math.hypot(x, y)
    height = TOOL - SHOULDER_HEIGHT
    span = math.hypot(distance, height)
    bend = (span**2 - UPPER_ARM**2 - FOREARM**2) / (2 * UPPER_ARM * FOREARM)
    if not abs(bend) <= 1:
        raise OutOfReach(
            f'({x:.3f}, {y:.3f}) m is {span:.3f} m from the shoulder; expected '
            f'{abs(UPPER_ARM - FOREARM):.3f} to {UPPER_ARM + FOREARM:.3f} m'
        )
    elbow = -math.acos(bend)
    shoulder = math.atan2(height, distance) - math.atan2(
        FOREARM * math.sin(elbow), UPPER_ARM + FOREARM * math.cos(elbow)
    )
    joints = (math.atan2(y, x), shoulder, elbow, -math.pi / 2 - shoulder - elbow, roll, tilt)
    if beyond := beyond_limits(joints):
        raise OutOfReach(f'({x:.3f}, {y:.3f}) m needs {beyond}')
    return joints


def beyond_limits(joints: Sequence[float]) -> str:
    """Name each joint that lies outside its limits, with both numbers; empty when none does."""
    return ', '.join(
        f'{name} = {value:.4f} rad outside {low:g}..{high:g}'
        for name, value, low, high in zip(JOINT_NAMES, joints, LOWER, UPPER, strict=True)
        if not low <= value <= high
    )


def _jaw(ahead: tuple[float, float], pitch: float, roll: float, tilt: float) -> Point:
    """Turn the arm's sideways axis about the tool, then tilt it towards the tool's direction."""
    along = (math.cos(pitch) * ahead[0], math.cos(pitch) * ahead[1], math.sin(pitch))
    across = (-math.sin(pitch) * ahead[0], -math.sin(pitch) * ahead[1], math.cos(pitch))
    sideways = (-ahead[1], ahead[0], 0.0)
    parts = (math.cos(roll) * math.cos(tilt), math.sin(roll) * math.cos(tilt), math.sin(tilt))
    x, y, z = (
        parts[0] * s + parts[1] * c + parts[2] * a
        for s, c, a in zip(sideways, across, along, strict=True)
    )
    return x, y, z


HOME: Joints = inverse(0.28, 0.0)
"""Where the arm starts: its tip on the table in front of it."""

"""What one channel may be commanded, and how a value is checked against it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from seq_harness.playback.chunk import ChunkRefused
from seq_harness.playback.kinds import Kind, Position
from seq_harness.playback.record import Emitted
from seq_harness.playback.rotations import Vector

TOLERANCE = 1e-6
"""Slack of the comparisons, in the channel's unit: float32 noise is no fault."""

NOT_FINITE, WIDTH, NO_VALUE = 'not_finite', 'width', 'no_value'
LIMITS, STEP, START = 'limits', 'step', 'start'


@dataclass(frozen=True)
class Limits:
    """What one channel may be commanded; vectors are per joint, in the channel's unit."""

    joints: tuple[str, ...]
    lower: Vector
    """For a pose: the workspace box, x, y and z."""
    upper: Vector
    max_velocity: Vector
    """Largest rate of change between two rows, in units a second; for a pose in m/s and rad/s."""
    max_start_distance: Vector
    """Largest distance of a first row from the measured state."""


class Check:
    """The limits of one channel of one kind; says what is wrong with a value."""

    def __init__(self, limits: Limits, kind: Kind) -> None:
        self.limits = limits
        self.kind = kind
        self._shape = (kind.width(len(limits.joints)),)
        self._plain = type(kind) is Position
        self._bounds = [
            (float(low) - TOLERANCE, float(high) + TOLERANCE, float(rate) / 1e9)
            for low, high, rate in zip(
                limits.lower, limits.upper, limits.max_velocity, strict=self._plain
            )
        ]

    def passes(self, value: Any, before: Emitted, gap_ns: int) -> bool:
        """Tell whether a value of plain positions passes; False also for other kinds."""
        if not self._plain or value.shape != self._shape:
            return False
        pairs = zip(value.tolist(), before.value.tolist(), self._bounds, strict=True)
        for now, then, (low, high, rate) in pairs:
            reach = rate * gap_ns + TOLERANCE
            if not (low <= now <= high and -reach <= now - then <= reach):
                return False
        return True

    def refuse_malformed(self, number: int, value: Any) -> None:
        """Refuse what is no value of the channel: no policy of a guard lets it pass."""
        self.refuse_width(number, value)
        finite = np.isfinite(value)
        if not finite.all():
            at = int(np.argmin(finite))
            raise ChunkRefused(
                f'row {number} (from 0): {self._name(at)} is {value[at]}, not finite',
                NOT_FINITE,
            )
        if (fault := self.kind.fault(value)) is not None:
            raise ChunkRefused(f'row {number} (from 0): {fault}', NO_VALUE)

    def refuse_width(self, number: int, value: Any) -> None:
        """Refuse a value that has not as many numbers as the channel."""
        if np.shape(value) != self._shape:
            raise ChunkRefused(
                f'row {number} (from 0) has {np.shape(value)} values; {self._shape[0]} were '
                f'expected for {list(self.limits.joints)}',
                WIDTH,
            )

    def beyond_limits(self, value: Any) -> str | None:
        """Say which joint lies outside its limits; None when none does."""
        bounded, limits = self.kind.bounded(value), self.limits
        if not bounded.size:
            return None
        inside = (bounded >= limits.lower - TOLERANCE) & (bounded <= limits.upper + TOLERANCE)
        if inside.all():
            return None
        at = int(np.argmin(inside))
        return (
            f'{self._name(at)} is {bounded[at]:.6g}, outside '
            f'[{limits.lower[at]:.6g}, {limits.upper[at]:.6g}]'
        )

    def beyond_step(self, before: Any, value: Any, bound: Vector, what: str) -> str | None:
        """Say which joint goes further than `bound`; None when none does."""
        size = self.kind.distance(before, value)
        inside = size <= bound[: size.size] + TOLERANCE
        if inside.all():
            return None
        at = int(np.argmin(inside))
        return f'{self._name(at)} makes {what} {size[at]:.6g}, beyond {bound[at]:.6g}'

    def _name(self, at: int) -> str:
        joints = self.limits.joints
        return joints[at] if at < len(joints) else f'component {at}'

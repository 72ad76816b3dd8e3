"""Where the target lies: it jumps on once the tip has stayed at it."""

from __future__ import annotations

from enum import Enum
import math
import random

from seq_harness.sim.kinematics import Point

NEAREST_M, FARTHEST_M, WIDEST_RAD, WIDEST_M = 0.24, 0.48, 0.9, 0.32
"""Where targets lie: reached by the arm and seen by the camera, with a margin."""

JUMP_M = 0.16
"""The least distance from one target to the next."""


class TargetEvent(Enum):
    """What an `update` saw."""

    AWAY = 'away'
    NEAR = 'near'
    REACHED = 'reached'
    """The tip has stayed long enough, and the target has jumped."""


class TargetSequence:
    """One target at a time on the table, from a seeded sequence without end."""

    def __init__(self, seed: int = 0, *, tolerance_m: float = 0.02, hold_s: float = 0.3) -> None:
        """Start at the first target of `seed`; `tolerance_m` and `hold_s` say what reaches it."""
        self._random = random.Random(seed)
        self._tolerance_m = tolerance_m
        self._hold_s = hold_s
        self._near_s = 0.0
        self._reached = 0
        self._place = self._drawn()

    @property
    def place(self) -> tuple[float, float]:
        """Where the target lies: x, y in metres."""
        return self._place

    @property
    def reached(self) -> int:
        """How many targets have been reached."""
        return self._reached

    def distance(self, tip: Point) -> float:
        """Return how far the tip is from the target, in metres."""
        return math.dist(tip, (*self._place, 0.0))

    def update(self, tip: Point, dt_s: float) -> TargetEvent:
        """Judge the tip at the end of `dt_s` seconds."""
        if self.distance(tip) > self._tolerance_m:
            self._near_s = 0.0
            return TargetEvent.AWAY
        self._near_s += dt_s
        if self._near_s < self._hold_s:
            return TargetEvent.NEAR
        self._near_s = 0.0
        self._reached += 1
        self._place = self._next()
        return TargetEvent.REACHED

    def _next(self) -> tuple[float, float]:
        while math.dist(place := self._drawn(), self._place) < JUMP_M:
            continue
        return place

    def _drawn(self) -> tuple[float, float]:
        while True:
            distance = self._random.uniform(NEAREST_M, FARTHEST_M)
            angle = self._random.uniform(-WIDEST_RAD, WIDEST_RAD)
            place = (distance * math.cos(angle), distance * math.sin(angle))
            if abs(place[1]) <= WIDEST_M:
                return place

"""The arm in time: it takes setpoints as a controller would, and follows them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
import math

import numpy as np
from numpy.typing import NDArray
from seq_harness.sim.kinematics import beyond_limits, HOME, JOINT_NAMES, MAX_VELOCITY

TIME_CONSTANT_S = 0.03
"""How soon a joint has closed all but 1/e of its distance to the setpoint."""


class Verdict(Enum):
    """What the arm made of a command."""

    TAKEN = 'taken'
    WRONG_WIDTH = 'wrong_width'
    WRONG_JOINTS = 'wrong_joints'
    NOT_FINITE = 'not_finite'
    OUT_OF_LIMITS = 'out_of_limits'
    WRONG_TIMES = 'wrong_times'


@dataclass(frozen=True)
class Taken:
    """The verdict on a command; unless taken, the arm goes on as before."""

    verdict: Verdict
    reason: str = ''
    """What was expected and what came; empty when taken."""


@dataclass(frozen=True)
class Waypoint:
    """Where a trajectory wants the joints, and when."""

    after_s: float
    """Seconds after the arm took the trajectory."""
    positions: Sequence[float]


_TAKEN = Taken(Verdict.TAKEN)


class ArmModel:
    """
    Six joints that track their setpoints to first order, within a velocity bound.

    Time passes in `advance` alone.
    """

    def __init__(self, start: Sequence[float] = HOME) -> None:
        """Stand still at `start`, six angles in rad."""
        if refused := _refused_row(start):
            raise ValueError(refused.reason)
        self._positions = np.array(start, np.float64)
        self._velocities = np.zeros(len(JOINT_NAMES))
        self._bound = np.array(MAX_VELOCITY)
        self._plan = _Plan.holding(self._positions)
        self._since_s = 0.0

    @property
    def positions(self) -> NDArray[np.float64]:
        """Where the joints are: rad, float64 [6]."""
        return self._positions

    @property
    def velocities(self) -> NDArray[np.float64]:
        """How fast they turned in the last `advance`: rad/s, float64 [6]."""
        return self._velocities

    def command(self, positions: Sequence[float]) -> Taken:
        """Take one setpoint, rad [6]; it replaces whatever the arm was following."""
        if refused := _refused_row(positions):
            return refused
        self._follow(_Plan.holding(np.array(positions, np.float64)))
        return _TAKEN

    def follow(self, names: Sequence[str], waypoints: Sequence[Waypoint]) -> Taken:
        """
        Take a trajectory of the joints `names`, in any order but complete.

        It starts now, from what the arm is following, in straight lines; without waypoints the arm
        stops where it is.
        """
        if sorted(names) != sorted(JOINT_NAMES):
            return Taken(
                Verdict.WRONG_JOINTS,
                f'expected the joints {", ".join(JOINT_NAMES)}, got {", ".join(names) or "none"}',
            )
        before_s = 0.0
        for number, waypoint in enumerate(waypoints):
            if refused := _refused_waypoint(names, waypoint, before_s):
                return Taken(refused.verdict, f'point {number}: {refused.reason}')
            before_s = waypoint.after_s
        order = [list(names).index(name) for name in JOINT_NAMES]
        rows = [np.array(waypoint.positions, np.float64)[order] for waypoint in waypoints]
        start = self._plan.at(self._since_s) if rows else self._positions
        times = [0.0, *(waypoint.after_s for waypoint in waypoints)]
        self._follow(_Plan(np.array(times), np.array([start, *rows])))
        return _TAKEN

    def advance(self, dt_s: float) -> None:
        """Let `dt_s` > 0 seconds pass."""
        if not (math.isfinite(dt_s) and dt_s > 0):
            raise ValueError(f'expected a positive step of time, got {dt_s!r} s')
        self._since_s += dt_s
        away = self._plan.at(self._since_s) - self._positions
        wanted = away * (-math.expm1(-dt_s / TIME_CONSTANT_S) / dt_s)
        self._velocities = np.clip(wanted, -self._bound, self._bound)
        self._positions = self._positions + self._velocities * dt_s

    def _follow(self, plan: _Plan) -> None:
        self._plan = plan
        self._since_s = 0.0


@dataclass(frozen=True)
class _Plan:
    """Straight lines between rows; the last row holds."""

    times_s: NDArray[np.float64]
    rows: NDArray[np.float64]

    @classmethod
    def holding(cls, row: NDArray[np.float64]) -> _Plan:
        return cls(np.zeros(1), row[np.newaxis].copy())

    def at(self, time_s: float) -> NDArray[np.float64]:
        """Return the row at `time_s` seconds into the plan."""
        after = int(np.searchsorted(self.times_s, time_s, side='right'))
        if after == len(self.times_s):
            row: NDArray[np.float64] = self.rows[-1]
            return row
        begin, end = self.times_s[after - 1], self.times_s[after]
        share = (time_s - begin) / (end - begin)
        between: NDArray[np.float64] = (
            self.rows[after - 1] * (1 - share) + self.rows[after] * share
        )
        return between


def _refused_row(positions: Sequence[float]) -> Taken | None:
    if len(positions) != len(JOINT_NAMES):
        return Taken(
            Verdict.WRONG_WIDTH, f'expected {len(JOINT_NAMES)} positions, got {len(positions)}'
        )
    if not all(map(math.isfinite, positions)):
        return Taken(
            Verdict.NOT_FINITE, f'expected finite positions, got {[float(p) for p in positions]}'
        )
    if beyond := beyond_limits(positions):
        return Taken(Verdict.OUT_OF_LIMITS, f'expected positions within the limits, got {beyond}')
    return None


def _refused_waypoint(names: Sequence[str], waypoint: Waypoint, before_s: float) -> Taken | None:
    if not waypoint.after_s > before_s:
        return Taken(
            Verdict.WRONG_TIMES,
            f'expected a time after {before_s:g} s, got {waypoint.after_s:g} s',
        )
    if len(waypoint.positions) != len(names):
        return _refused_row(waypoint.positions)
    by_name = dict(zip(names, waypoint.positions, strict=True))
    return _refused_row([by_name[name] for name in JOINT_NAMES])

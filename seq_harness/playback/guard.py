"""What a chunk must satisfy before any of it plays, and a row before it goes out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from seq_harness.playback.channels import Vector
from seq_harness.playback.chunk import ChunkRefused
from seq_harness.playback.plan import Plan, Waypoint
from seq_harness.playback.session import Commands

TOLERANCE = 1e-6
"""Slack of the comparisons, in the channel's unit: float32 noise is no fault."""

MERGED_PERIODS = 3
"""How many row periods one late emission may make up for."""


@dataclass(frozen=True)
class Limits:
    """What one channel may be commanded; vectors are per joint, in the channel's unit."""

    joints: tuple[str, ...]
    lower: Vector
    upper: Vector
    max_velocity: Vector
    """Largest rate of change between two rows, in units a second."""
    max_start_distance: Vector
    """Largest distance of a first row from the measured state."""


@dataclass(frozen=True)
class Emitted:
    """The value a channel was last commanded, and the instant it was due."""

    value: Vector
    due_ns: int


class Guard:
    """Refuse rows that are not finite, too wide, outside limits or too far from the last."""

    def __init__(self, limits: Mapping[str, Limits], period_ns: int) -> None:
        """`period_ns` is one row's: a first row after a wait moves no further than one row may."""
        self._limits = limits
        self._period_ns = period_ns

    def check_plan(
        self, plan: Plan, last: Mapping[str, Emitted], measured: Mapping[str, Vector]
    ) -> None:
        """
        Check every held row before any plays.

        `last` is what was commanded before it; a channel without is bounded from `measured`.

        Raises
        ------
        ChunkRefused
            Names the row, the channel, the joint, the value and its limit.

        """
        before = dict(last)
        seen: set[str] = set()
        for number, waypoint in enumerate(plan.waiting()):
            for name, value in waypoint.commands.items():
                limits = self._limits_of(name)
                if name in before:
                    gap_ns = waypoint.due_ns - before[name].due_ns
                    if name not in seen:
                        gap_ns = min(gap_ns, self._period_ns)
                    _check_step(number, limits, before[name], value, gap_ns)
                elif name in measured:
                    _check_start(number, limits, measured[name], value)
                else:
                    raise ChunkRefused(f'channel {name!r}: no measured state to start from')
                before[name] = Emitted(value, waypoint.due_ns)
                seen.add(name)

    def check_emission(self, waypoint: Waypoint, last: Mapping[str, Emitted]) -> None:
        """
        Check one merged row just before it goes out, from the last commanded value.

        Raises
        ------
        ChunkRefused
            As `check_plan`.

        """
        for name, value in waypoint.commands.items():
            limits = self._limits_of(name)
            if name in last:
                gap_ns = waypoint.due_ns - last[name].due_ns
                longest_ns = MERGED_PERIODS * self._period_ns
                _check_step(0, limits, last[name], value, min(gap_ns, longest_ns))
            else:
                _check_range(0, limits, value)

    def _limits_of(self, channel: str) -> Limits:
        if channel not in self._limits:
            raise ChunkRefused(
                f'the policy commands the channel {channel!r}, which this robot does not have; '
                f'it has {sorted(self._limits)}'
            )
        return self._limits[channel]


def _check_step(number: int, limits: Limits, before: Emitted, value: Vector, gap_ns: int) -> None:
    _check_range(number, limits, value)
    step = np.abs(value - before.value)
    _refuse_beyond(number, limits, step, limits.max_velocity * (gap_ns / 1e9), 'a step of')


def _check_start(number: int, limits: Limits, measured: Vector, value: Vector) -> None:
    _check_range(number, limits, value)
    distance = np.abs(value - measured)
    what = 'a distance from the measured state of'
    _refuse_beyond(number, limits, distance, limits.max_start_distance, what)


def _check_range(number: int, limits: Limits, value: Vector) -> None:
    if value.shape != limits.lower.shape:
        raise ChunkRefused(
            f'row {number} has {value.shape} values; {len(limits.joints)} were expected for '
            f'{list(limits.joints)}'
        )
    inside = (value >= limits.lower - TOLERANCE) & (value <= limits.upper + TOLERANCE)
    if inside.all():
        return
    joint = int(np.argmin(inside))
    if not np.isfinite(value[joint]):
        raise ChunkRefused(f'row {number}: {limits.joints[joint]} is {value[joint]}, not finite')
    raise ChunkRefused(
        f'row {number}: {limits.joints[joint]} is {value[joint]:.6g}, outside '
        f'[{limits.lower[joint]:.6g}, {limits.upper[joint]:.6g}]'
    )


def _refuse_beyond(number: int, limits: Limits, size: Vector, bound: Vector, what: str) -> None:
    inside = size <= bound + TOLERANCE
    if inside.all():
        return
    joint = int(np.argmin(inside))
    raise ChunkRefused(
        f'row {number}: {limits.joints[joint]} makes {what} {size[joint]:.6g}, beyond '
        f'{bound[joint]:.6g}'
    )


def merge(waypoints: list[Waypoint]) -> tuple[Commands, int]:
    """Merge due waypoints per channel, last wins; return them and the last due instant (R21)."""
    if len(waypoints) == 1:
        return waypoints[0].commands, waypoints[0].due_ns
    merged: dict[str, Vector] = {}
    for waypoint in waypoints:
        merged.update(waypoint.commands)
    return merged, waypoints[-1].due_ns

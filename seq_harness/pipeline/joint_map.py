"""Joint values as the policy counts them, and as ROS does: units, signs, zeros and grippers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
import math
from typing import Any

import numpy as np
from seq_harness.playback.channels import Vector
from seq_harness.playback.codec_parts import vector_of, Viewed, views_of
from seq_harness.playback.layers import Codec
from seq_harness.playback.session import Commands, Observation
from seq_harness.settings import JointSettings, Settings
from seq_harness.settings.joint_parameters import UNITS

ABSOLUTE = ('position', 'angle', 'binary')
"""The kinds of channels, and fields of inputs, whose values have a zero and ends."""

EFFORT = 'effort'
"""The kind and field whose unit is that of a force: a joint's sign alone applies."""


@dataclass(frozen=True)
class _Line:
    """For each joint of a vector: `ros = policy * factor + offset`, within bounds both ways."""

    factor: Vector
    offset: Vector
    ros: tuple[Vector, Vector]
    policy: tuple[Vector, Vector]
    turns: Vector
    """A whole turn of each continuous joint in the policy's unit; 0 for the others."""

    def to_ros(self, value: Any) -> Vector:
        """Return a value of the policy as ROS has it."""
        changed: Vector = np.clip(vector_of(value) * self.factor + self.offset, *self.ros)
        return changed

    def to_policy(self, value: Any) -> Vector:
        """Return a value of ROS as the policy has it."""
        numbers = (vector_of(value) - self.offset) / self.factor
        turns = np.where(self.turns > 0, self.turns, 1.0)
        wrapped = numbers - np.round(numbers / turns) * self.turns
        changed: Vector = np.clip(wrapped, *self.policy)
        return changed


class JointMap(Codec):
    """Convert every vector that holds mapped joints, right below what counts as ROS does (G6)."""

    name = 'joint_map'

    def __init__(self, settings: Settings) -> None:
        joints = {item.name: item for item in settings.joints}
        self._keys = {
            item.key: _line(item.joints, joints, item.field)
            for item in settings.inputs
            if joints.keys() & set(item.joints)
        }
        self._channels = {
            item.name: _line(item.joints, joints, item.kind)
            for item in settings.channels
            if joints.keys() & set(item.joints)
        }
        self.requires = tuple(self._channels)

    def encode(self, observation: Observation) -> Observation:
        """Return the observation with its joints as the policy counts them; reads nothing."""
        if not self._keys:
            return observation
        changed = {
            key: _seen(observation, key, line)
            for key, line in self._keys.items()
            if key in set(observation)
        }
        return Viewed({**views_of(observation), **changed})

    def decode_row(self, commands: Commands) -> Commands:
        """Return commands as ROS counts them."""
        return {**commands, **_each(commands, self._channels, _Line.to_ros)}

    def encode_row(self, commands: Commands) -> Commands:
        """Return commands as the policy counts them."""
        return {**commands, **_each(commands, self._channels, _Line.to_policy)}


def describe_joint(joint: JointSettings) -> str:
    """Say how one joint is converted, with what its ends come to, for people (G5)."""
    if joint.open_closed:
        (ros_open, ros_closed), (open_, closed) = joint.open_closed, joint.policy_open_closed
        return (
            f'  {joint.name}: the policy says {open_:g} for open ({ros_open:g}) and {closed:g} '
            f'for closed ({ros_closed:g})'
        )
    zero = f', zero at {joint.offset:g}' if joint.offset else ''
    turn = ', continuous' if joint.continuous else ''
    factor = UNITS[joint.unit] * joint.sign
    return f'  {joint.name}: 1 {joint.unit} of the policy is {factor:g}{zero}{turn}'


def _seen(observation: Observation, key: str, line: _Line) -> Callable[[], Any]:
    def read() -> Any:
        value = np.asarray(observation[key])
        return line.to_policy(value).astype(value.dtype)

    return read


def _each(
    commands: Commands, lines: Mapping[str, _Line], convert: Callable[[_Line, Any], Vector]
) -> dict[str, Vector]:
    # A row of another width is left to the guard, which names both.
    return {
        name: convert(line, commands[name])
        for name, line in lines.items()
        if name in commands and vector_of(commands[name]).shape == line.factor.shape
    }


def _line(names: Sequence[str], joints: Mapping[str, JointSettings], kind: str) -> _Line:
    rows = [_row(joints.get(name), kind) for name in names]
    factor, offset, ros_low, ros_high, low, high, turn = np.array(rows, np.float64).T
    return _Line(factor, offset, (ros_low, ros_high), (low, high), turn)


def _row(joint: JointSettings | None, kind: str) -> tuple[float, ...]:
    """Return factor, offset, bounds of ROS, bounds of the policy, and a turn."""
    free = (-math.inf, math.inf, -math.inf, math.inf)
    if joint is None:
        return (1.0, 0.0, *free, 0.0)
    if kind == EFFORT:
        return (float(joint.sign), 0.0, *free, 0.0)
    absolute = kind in ABSOLUTE
    if joint.open_closed:
        (ros_open, ros_closed), (open_, closed) = joint.open_closed, joint.policy_open_closed
        factor = (ros_closed - ros_open) / (closed - open_)
        if not absolute:
            return (factor, 0.0, *free, 0.0)
        ends = (*sorted(joint.open_closed), *sorted(joint.policy_open_closed))
        return (factor, ros_open - open_ * factor, *ends, 0.0)
    unit = UNITS[joint.unit]
    turn = 2 * math.pi / unit if joint.continuous and absolute else 0.0
    return (unit * joint.sign, joint.offset if absolute else 0.0, *free, turn)

"""Codecs that convert values: what a policy answers into what a robot is commanded."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from seq_harness.playback.channels import Vector
from seq_harness.playback.chunk import ChunkRefused
from seq_harness.playback.codec_parts import (
    checked_columns,
    checked_names,
    CodecRefused,
    Indices,
    require_keys,
    vector_of,
    Viewed,
    views_of,
)
from seq_harness.playback.layers import Codec
from seq_harness.playback.poses import FORMS, inverse, matrix_of, pose_of
from seq_harness.playback.session import Commands, Observation

UNITS: Mapping[str, tuple[str, float]] = {
    'rad': ('angle', 1.0),
    'deg': ('angle', np.pi / 180),
    'turn': ('angle', 2 * np.pi),
    'm': ('length', 1.0),
    'cm': ('length', 0.01),
    'mm': ('length', 0.001),
    'rad/s': ('angular speed', 1.0),
    'deg/s': ('angular speed', np.pi / 180),
    'm/s': ('speed', 1.0),
    'mm/s': ('speed', 0.001),
    'fraction': ('fraction', 1.0),
    'percent': ('fraction', 0.01),
}
"""Unit to what it measures, and how much one of it is in that quantity's first unit."""


class ValueCodec(Codec):
    """Converts the values of some channels and, the other way round, of some keys."""

    def __init__(self, name: str, channels: Sequence[str], keys: Sequence[str]) -> None:
        self.name = name
        self.requires = checked_names('channels', channels)
        self._keys = checked_names('keys', keys)
        if not self.requires and not self._keys:
            raise CodecRefused(f'{name}: name the channels or the keys to convert')

    @abstractmethod
    def to_robot(self, value: Vector) -> Vector:
        """Return a value of the policy as the robot has it."""

    @abstractmethod
    def to_policy(self, value: Vector) -> Vector:
        """Return a value of the robot as the policy has it."""

    def encode(self, observation: Observation) -> Observation:
        if not self._keys:
            return observation
        require_keys(self.name, self._keys, observation)
        changed = {key: self._seen(observation, key) for key in self._keys}
        return Viewed({**views_of(observation), **changed})

    def decode_row(self, commands: Commands) -> Commands:
        changed = {
            name: self._converted(name, commands[name], self.to_robot)
            for name in self.requires
            if name in commands
        }
        return {**commands, **changed}

    def encode_row(self, commands: Commands) -> Commands:
        changed = {
            name: self._converted(name, commands[name], self.to_policy)
            for name in self.requires
            if name in commands
        }
        return {**commands, **changed}

    def _seen(self, observation: Observation, key: str) -> Callable[[], Any]:
        def read() -> Any:
            value = np.asarray(observation[key])
            changed = self.to_policy(vector_of(value)).reshape(-1)
            return changed.astype(value.dtype if value.dtype.kind == 'f' else np.float64)

        return read

    def _converted(self, name: str, value: Any, convert: Callable[[Vector], Vector]) -> Vector:
        try:
            return convert(vector_of(value))
        except (ValueError, IndexError) as error:
            raise ChunkRefused(f'layer {self.name!r}, channel {name!r}: {error}') from error


class Scale(ValueCodec):
    """Multiply and shift: `robot = policy * factor + offset`; a factor of -1 turns a sign."""

    def __init__(
        self,
        channels: Sequence[str] = (),
        keys: Sequence[str] = (),
        *,
        factor: float | Sequence[float] = 1.0,
        offset: float | Sequence[float] = 0.0,
        name: str = 'scale',
    ) -> None:
        """`factor` and `offset` are one number, or one for each column."""
        super().__init__(name, channels, keys)
        self._factor, self._offset = _numbers('factor', factor), _numbers('offset', offset)
        if not self._factor.all():
            raise CodecRefused(f'{name}: a factor must not be 0; got {factor!r}')

    def to_robot(self, value: Vector) -> Vector:
        return self._same_size(value * self._factor + self._offset, value)

    def to_policy(self, value: Vector) -> Vector:
        return self._same_size((value - self._offset) / self._factor, value)

    def _same_size(self, changed: Vector, value: Vector) -> Vector:
        if changed.shape != value.shape:
            raise CodecRefused(f'{changed.shape[0]} columns were expected, got {value.shape[0]}')
        return changed


class Units(ValueCodec):
    """Convert units, such as degrees of the policy to radians of the robot."""

    def __init__(
        self,
        channels: Sequence[str] = (),
        keys: Sequence[str] = (),
        *,
        policy: str,
        robot: str,
        columns: Indices | None = None,
    ) -> None:
        """`columns` are those that have this unit; None is all of them."""
        super().__init__('units', channels, keys)
        (quantity, of_policy), (other, of_robot) = _unit(policy), _unit(robot)
        if quantity != other:
            raise CodecRefused(f'units: {policy!r} is {quantity} and {robot!r} is {other}')
        self._factor = of_policy / of_robot
        self._columns = None if columns is None else checked_columns('columns', columns)

    def to_robot(self, value: Vector) -> Vector:
        return _on_columns(value, self._columns, lambda part: part * self._factor)

    def to_policy(self, value: Vector) -> Vector:
        return _on_columns(value, self._columns, lambda part: part / self._factor)


class PoseForm(ValueCodec):
    """Write poses in the form that the other side uses; the frame stays the same."""

    def __init__(
        self,
        channels: Sequence[str] = (),
        keys: Sequence[str] = (),
        *,
        policy: str,
        robot: str,
    ) -> None:
        """Take poses as a position in m and a rotation in one of the forms of `FORMS`."""
        super().__init__('pose_form', channels, keys)
        self._policy, self._robot = _form(policy), _form(robot)

    def to_robot(self, value: Vector) -> Vector:
        return pose_of(matrix_of(value, self._policy), self._robot)

    def to_policy(self, value: Vector) -> Vector:
        return pose_of(matrix_of(value, self._robot), self._policy)


class FrameChange(ValueCodec):
    """Move poses from the policy's frame into the robot's: `robot = transform * policy` (R75)."""

    changes_frame = True

    def __init__(
        self,
        channels: Sequence[str] = (),
        keys: Sequence[str] = (),
        *,
        form: str,
        transform: Sequence[float],
    ) -> None:
        """`transform` is the pose of the policy's frame in the robot's, of form quat_xyzw."""
        super().__init__('frame_change', channels, keys)
        self._form = _form(form)
        try:
            self._transform = matrix_of(_numbers('transform', transform), 'quat_xyzw')
        except ValueError as error:
            raise CodecRefused(f'frame_change: transform: {error}') from error

    def to_robot(self, value: Vector) -> Vector:
        return pose_of(self._transform @ matrix_of(value, self._form), self._form)

    def to_policy(self, value: Vector) -> Vector:
        return pose_of(inverse(self._transform) @ matrix_of(value, self._form), self._form)


class GripperMap(ValueCodec):
    """Map a gripper from the policy's open and closed to the robot's, whichever is larger."""

    def __init__(
        self,
        channels: Sequence[str] = (),
        keys: Sequence[str] = (),
        *,
        policy: Sequence[float],
        robot: Sequence[float],
        columns: Indices | None = None,
        clip: bool = False,
    ) -> None:
        """
        Take `policy` and `robot` as (open, closed).

        `clip` cuts what the policy answers beyond its own open and closed, and counts it.
        """
        super().__init__('gripper_map', channels, keys)
        self._policy, self._robot = _open_closed('policy', policy), _open_closed('robot', robot)
        self._columns = None if columns is None else checked_columns('columns', columns)
        self._clip = clip
        self.clipped: Counter[str] = Counter()
        """How many values of the policy were beyond open, and beyond closed."""

    def to_robot(self, value: Vector) -> Vector:
        return _on_columns(value, self._columns, self._commanded)

    def to_policy(self, value: Vector) -> Vector:
        return _on_columns(
            value, self._columns, lambda part: _lerp(self._policy, _share(self._robot, part))
        )

    def _commanded(self, part: Vector) -> Vector:
        closed = _share(self._policy, part)
        if self._clip:
            self.clipped['open'] += int((closed < 0).sum())
            self.clipped['closed'] += int((closed > 1).sum())
            closed = np.clip(closed, 0.0, 1.0)
        return _lerp(self._robot, closed)


def _share(ends: tuple[float, float], value: Vector) -> Vector:
    """Return how closed a value is: 0 is open and 1 is closed."""
    share: Vector = (value - ends[0]) / (ends[1] - ends[0])
    return share


def _lerp(ends: tuple[float, float], share: Vector) -> Vector:
    value: Vector = ends[0] + share * (ends[1] - ends[0])
    return value


def _on_columns(
    value: Vector, columns: tuple[int, ...] | None, change: Callable[[Vector], Vector]
) -> Vector:
    if columns is None:
        return change(value)
    changed: Vector = value.copy()
    changed[list(columns)] = change(value[list(columns)])
    return changed


def _numbers(what: str, value: float | Sequence[float]) -> Vector:
    try:
        numbers = vector_of(value)
    except (TypeError, ValueError):
        raise CodecRefused(f'{what} must be numbers, got {value!r}') from None
    if numbers.ndim != 1 or not np.isfinite(numbers).all():
        raise CodecRefused(f'{what} must be finite numbers, got {value!r}')
    return numbers


def _unit(unit: str) -> tuple[str, float]:
    if unit not in UNITS:
        raise CodecRefused(f'units: expected one of {sorted(UNITS)}, got {unit!r}')
    return UNITS[unit]


def _form(form: str) -> str:
    if form not in FORMS:
        raise CodecRefused(f'a pose has one of the forms {sorted(FORMS)}, got {form!r}')
    return form


def _open_closed(what: str, ends: Sequence[float]) -> tuple[float, float]:
    numbers = _numbers(what, ends)
    if numbers.shape != (2,) or numbers[0] == numbers[1]:
        raise CodecRefused(f'gripper_map: {what} must be (open, closed), two values; got {ends!r}')
    return float(numbers[0]), float(numbers[1])

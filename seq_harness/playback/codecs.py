"""Codecs: chunk layers that turn what a policy answers into what a robot is commanded."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from seq_harness.playback.channels import Vector
from seq_harness.playback.chunk import ChunkRefused
from seq_harness.playback.layers import Codec
from seq_harness.playback.poses import FORMS, inverse, matrix_of, pose_of
from seq_harness.playback.session import Commands, Observation

Indices: TypeAlias = Sequence[int]

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


class CodecRefused(ValueError):
    """A codec that cannot convert as it was told to; says what was expected."""


class Viewed(Mapping[str, Any]):
    """An observation under other keys or values, each of which is made when it is read."""

    def __init__(self, views: Mapping[str, Callable[[], Any]]) -> None:
        self._views = views

    def __getitem__(self, key: str) -> Any:
        return self._views[key]()

    def __contains__(self, key: object) -> bool:
        return key in self._views

    def __iter__(self) -> Iterator[str]:
        return iter(self._views)

    def __len__(self) -> int:
        return len(self._views)


def _views(observation: Observation) -> dict[str, Callable[[], Any]]:
    return {key: _view(observation, key) for key in observation}


def _view(observation: Observation, key: str) -> Callable[[], Any]:
    return lambda: observation[key]


class Select(Codec):
    """Keep only the named channels of a chunk, and the named keys of an observation."""

    def __init__(
        self, channels: Sequence[str] | None = None, keys: Sequence[str] | None = None
    ) -> None:
        """Without `channels` every channel is kept; without `keys` every key."""
        self.name = 'select'
        self.requires = _names('channels', channels or ())
        self.reversible = channels is None
        self._all_channels = channels is None
        self._keys = None if keys is None else _names('keys', keys)

    def encode(self, observation: Observation) -> Observation:
        if self._keys is None:
            return observation
        _require_keys(self.name, self._keys, observation)
        return Viewed({key: _view(observation, key) for key in self._keys})

    def decode_row(self, commands: Commands) -> Commands:
        if self._all_channels:
            return commands
        return {name: value for name, value in commands.items() if name in self.requires}


class Rename(Codec):
    """Give channels and keys the names that the other side uses."""

    def __init__(
        self, channels: Mapping[str, str] | None = None, keys: Mapping[str, str] | None = None
    ) -> None:
        """`channels` are the policy's names to the robot's; `keys` the robot's to the policy's."""
        self.name = 'rename'
        self._channels = _one_to_one('channels', channels or {})
        self._keys = _one_to_one('keys', keys or {})
        self.requires = tuple(self._channels)

    def encode(self, observation: Observation) -> Observation:
        if not self._keys:
            return observation
        _require_keys(self.name, self._keys, observation)
        _refuse_overlap(self.name, self._keys, observation)
        views = _views(observation).items()
        return Viewed({self._keys.get(key, key): view for key, view in views})

    def decode_row(self, commands: Commands) -> Commands:
        try:
            _refuse_overlap(self.name, self._channels, commands)
        except CodecRefused as error:
            raise ChunkRefused(str(error)) from error
        return {self._channels.get(name, name): value for name, value in commands.items()}

    def encode_row(self, commands: Commands) -> Commands:
        back = {robot: policy for policy, robot in self._channels.items()}
        return {back.get(name, name): value for name, value in commands.items()}


class Split(Codec):
    """Turn one channel of the policy into several of the robot, by columns."""

    def __init__(self, channel: str, into: Mapping[str, Indices]) -> None:
        """`into` gives each new channel the columns it takes of `channel`, from 0."""
        self.name = 'split'
        self.requires = (channel,)
        self._channel = channel
        self._into = {name: _columns(f'into.{name}', columns) for name, columns in into.items()}
        if not into:
            raise CodecRefused('split: into must name at least one channel')
        taken = sorted(column for columns in self._into.values() for column in columns)
        self.reversible = taken == list(range(len(taken)))
        self._width = taken[-1] + 1

    def decode_row(self, commands: Commands) -> Commands:
        if self._channel not in commands:
            return commands
        kept = {name: value for name, value in commands.items() if name != self._channel}
        row = _vector(commands[self._channel])
        if row.shape[0] < self._width:
            raise ChunkRefused(
                f'layer {self.name!r} takes column {self._width - 1} of {self._channel!r}, which '
                f'has {row.shape[0]} columns'
            )
        return {**kept, **{name: row[list(columns)] for name, columns in self._into.items()}}

    def encode_row(self, commands: Commands) -> Commands:
        if any(name not in commands for name in self._into):
            return commands
        row = np.empty(self._width)
        for name, columns in self._into.items():
            row[list(columns)] = commands[name]
        kept = {name: value for name, value in commands.items() if name not in self._into}
        return {**kept, self._channel: row}


class Join(Codec):
    """Give the policy several vectors of an observation as one."""

    def __init__(self, key: str, of: Sequence[str]) -> None:
        """`key` is the new one; those in `of` are put one after the other and left out."""
        self.name = 'join'
        self._key = key
        self._of = _names('of', of)
        if not self._of:
            raise CodecRefused('join: of must name at least one key')

    def encode(self, observation: Observation) -> Observation:
        _require_keys(self.name, self._of, observation)
        kept = {key: view for key, view in _views(observation).items() if key not in self._of}
        return Viewed({**kept, self._key: lambda: self._joined(observation)})

    def _joined(self, observation: Observation) -> Any:
        return np.concatenate([np.atleast_1d(observation[key]) for key in self._of])


class ValueCodec(Codec):
    """Converts the values of some channels and, the other way round, of some keys."""

    def __init__(self, name: str, channels: Sequence[str], keys: Sequence[str]) -> None:
        self.name = name
        self.requires = _names('channels', channels)
        self._keys = _names('keys', keys)
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
        _require_keys(self.name, self._keys, observation)
        changed = {key: self._seen(observation, key) for key in self._keys}
        return Viewed({**_views(observation), **changed})

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
            changed = self.to_policy(_vector(value)).reshape(-1)
            return changed.astype(value.dtype if value.dtype.kind == 'f' else np.float64)

        return read

    def _converted(self, name: str, value: Any, convert: Callable[[Vector], Vector]) -> Vector:
        try:
            return convert(_vector(value))
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
        self._columns = None if columns is None else _columns('columns', columns)

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
        self._columns = None if columns is None else _columns('columns', columns)
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


def _vector(value: Any) -> Vector:
    vector: Vector = np.atleast_1d(np.asarray(value, np.float64))
    return vector


def _on_columns(
    value: Vector, columns: tuple[int, ...] | None, change: Callable[[Vector], Vector]
) -> Vector:
    if columns is None:
        return change(value)
    changed: Vector = value.copy()
    changed[list(columns)] = change(value[list(columns)])
    return changed


def _names(what: str, names: Sequence[str]) -> tuple[str, ...]:
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise CodecRefused(f'{what} must be a list of names, got {names!r}')
    if len(set(names)) != len(names):
        raise CodecRefused(f'{what} must name each once, got {list(names)}')
    return tuple(names)


def _one_to_one(what: str, names: Mapping[str, str]) -> dict[str, str]:
    if not isinstance(names, Mapping):
        raise CodecRefused(f'{what} must map names to names, got {names!r}')
    _names(what, tuple(names.values()))
    return dict(names)


def _columns(what: str, columns: Indices) -> tuple[int, ...]:
    good = all(isinstance(item, int) and not isinstance(item, bool) for item in columns)
    if not good or not columns or min(columns) < 0 or len(set(columns)) != len(columns):
        raise CodecRefused(f'{what} must list columns from 0, each once; got {columns!r}')
    return tuple(columns)


def _numbers(what: str, value: float | Sequence[float]) -> Vector:
    try:
        numbers = _vector(value)
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


def _require_keys(
    name: str, wanted: Sequence[str] | Mapping[str, str], observation: Observation
) -> None:
    # Membership in a mapping may read the value, so only the keys are looked at.
    came = set(observation)
    missing = [key for key in wanted if key not in came]
    if missing:
        raise CodecRefused(
            f'layer {name!r} reads the keys {missing}, which the observation lacks; it has '
            f'{sorted(came)}'
        )


def _refuse_overlap(name: str, renamed: Mapping[str, str], came: Mapping[str, Any]) -> None:
    there = set(came)
    kept = there - set(renamed)
    twice = sorted(kept & {new for old, new in renamed.items() if old in there})
    if twice:
        raise CodecRefused(f'layer {name!r} makes {twice[0]!r}, which is there already')

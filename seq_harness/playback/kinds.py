"""What the values of a channel mean, and the algebra that follows from it."""

from __future__ import annotations

from collections.abc import Mapping
import math
from typing import Any, ClassVar, Protocol

import numpy as np
from seq_harness.playback.rotations import rotated, rotation_between, Vector

HOLD, ZERO = 'hold', 'zero'


class KindRefused(ValueError):
    """A channel's kind is unknown, or does not say what it must; names what is known."""


class Kind(Protocol):
    """
    The algebra of one channel's values.

    Everything that joins or interpolates is made of `difference` and `moved`.
    """

    name: str
    starve: str
    """What happens by default while nothing is held: `hold`, or `zero` for a rate."""
    absolute: bool
    """Whether a later value replaces an earlier one exactly, and is itself where to be."""
    measured: bool
    """Whether a first row is held to a distance from the measured state."""

    def width(self, joints: int) -> int:
        """Return how many numbers a value has."""

    def merge(self, older: Any, newer: Any) -> Any:
        """Return what two values due in one round come to (R21, R22)."""

    def difference(self, before: Any, after: Any) -> Any:
        """Return the shortest change that leads from `before` to `after`."""

    def moved(self, value: Any, change: Any) -> Any:
        """Return `value` after a change."""

    def blend(self, old: Any, new: Any, share: float) -> Any:
        """Return the value that lies `share`, 0 to 1, of the way from `old` to `new`."""

    def near(self, before: Any, value: Any) -> Any:
        """Return `value`, written as its turn nearest to `before`."""

    def distance(self, before: Any, after: Any) -> Vector:
        """Return what is held to a speed limit, times the gap between the two values."""

    def limited(self, before: Any, value: Any, bound: Vector) -> Any:
        """Return the value nearest to `value` whose distance from `before` is within `bound`."""

    def left(self, reached: Any, value: Any) -> Any | None:
        """Return what a value that is cut to `reached` still asks for; None where rows say it."""

    def bounded(self, value: Any) -> Vector:
        """Return what is held to the lower and upper limits."""

    def clamped(self, value: Any, lower: Vector, upper: Vector) -> Any:
        """Return the value nearest to `value` inside the limits."""

    def fault(self, value: Any) -> str | None:
        """Say what makes finite numbers no value of this kind; None when nothing does."""


class Position:
    """Absolute positions: the last wins, a straight line leads between two, starved they hold."""

    name: str = 'position'
    starve: str = HOLD
    absolute: bool = True
    measured: bool = True

    def width(self, joints: int) -> int:
        return joints

    def merge(self, older: Any, newer: Any) -> Any:
        return newer

    def difference(self, before: Any, after: Any) -> Any:
        return after - before

    def moved(self, value: Any, change: Any) -> Any:
        return value + change

    def blend(self, old: Any, new: Any, share: float) -> Any:
        return self.moved(old, share * self.difference(old, new))

    def near(self, before: Any, value: Any) -> Any:
        return value

    def distance(self, before: Any, after: Any) -> Vector:
        return np.asarray(np.abs(self.difference(before, after)))

    def limited(self, before: Any, value: Any, bound: Vector) -> Any:
        return self.moved(before, np.clip(self.difference(before, value), -bound, bound))

    def left(self, reached: Any, value: Any) -> Any | None:
        return None

    def bounded(self, value: Any) -> Vector:
        return np.asarray(value)

    def clamped(self, value: Any, lower: Vector, upper: Vector) -> Any:
        return np.clip(value, lower, upper)

    def fault(self, value: Any) -> str | None:
        return None


class Angle(Position):
    """Angles in rad without end stops: the nearest turn is taken, in blends and in commands."""

    name = 'angle'

    def difference(self, before: Any, after: Any) -> Any:
        return (after - before + math.pi) % (2 * math.pi) - math.pi

    def near(self, before: Any, value: Any) -> Any:
        return before + self.difference(before, value)


class Quaternion(Position):
    """A unit quaternion (x, y, z, w): blended along the shorter arc; its speed is in rad/s."""

    name = 'quaternion'

    def width(self, joints: int) -> int:
        return 4

    def difference(self, before: Any, after: Any) -> Any:
        return rotation_between(before, after)

    def moved(self, value: Any, change: Any) -> Any:
        return rotated(value, change)

    def near(self, before: Any, value: Any) -> Any:
        return -value if float(np.dot(before, value)) < 0 else value

    def distance(self, before: Any, after: Any) -> Vector:
        return np.array([np.linalg.norm(self.difference(before, after))])

    def limited(self, before: Any, value: Any, bound: Vector) -> Any:
        return self.moved(before, _shortened(self.difference(before, value), float(bound[0])))

    def bounded(self, value: Any) -> Vector:
        return np.empty(0)

    def clamped(self, value: Any, lower: Vector, upper: Vector) -> Any:
        return value

    def fault(self, value: Any) -> str | None:
        return _length_fault(value)


class Pose(Quaternion):
    """
    A position and a quaternion, (x, y, z, qx, qy, qz, qw).

    Its lower and upper limits are a workspace box in m; its speeds are in m/s and rad/s.
    """

    name = 'pose'

    def width(self, joints: int) -> int:
        return 7

    def difference(self, before: Any, after: Any) -> Any:
        turn = rotation_between(before[..., 3:], after[..., 3:])
        return np.concatenate([after[..., :3] - before[..., :3], turn], axis=-1)

    def moved(self, value: Any, change: Any) -> Any:
        turned = rotated(value[..., 3:], change[..., 3:])
        return np.concatenate([value[..., :3] + change[..., :3], turned], axis=-1)

    def near(self, before: Any, value: Any) -> Any:
        turn = super().near(before[3:], value[3:])
        return np.concatenate([value[:3], turn])

    def distance(self, before: Any, after: Any) -> Vector:
        change = self.difference(before, after)
        return np.array([np.linalg.norm(change[:3]), np.linalg.norm(change[3:])])

    def limited(self, before: Any, value: Any, bound: Vector) -> Any:
        change = self.difference(before, value)
        moved, turned = (
            _shortened(part, float(limit))
            for part, limit in zip((change[:3], change[3:]), bound, strict=True)
        )
        return self.moved(before, np.concatenate([moved, turned]))

    def bounded(self, value: Any) -> Vector:
        return np.asarray(value[:3])

    def clamped(self, value: Any, lower: Vector, upper: Vector) -> Any:
        return np.concatenate([np.clip(value[:3], lower, upper), value[3:]])

    def fault(self, value: Any) -> str | None:
        return _length_fault(value[3:])


class Velocity(Position):
    """Velocities: zero when starved, since a held velocity is a runaway."""

    name = 'velocity'
    starve = ZERO
    absolute = False
    measured = False


class Effort(Velocity):
    """Efforts: zero when starved, as velocities."""

    name = 'effort'


class Delta(Position):
    """Changes since the previous row: those of one round are summed (R22)."""

    name = 'delta'
    absolute = False
    measured = False

    def merge(self, older: Any, newer: Any) -> Any:
        return older + newer

    def distance(self, before: Any, after: Any) -> Vector:
        return np.asarray(np.abs(after))

    def limited(self, before: Any, value: Any, bound: Vector) -> Any:
        return np.clip(value, -bound, bound)

    def left(self, reached: Any, value: Any) -> Any | None:
        return value - reached


class Binary(Position):
    """Switches, such as a gripper that is open or shut: a blend switches at half."""

    name = 'binary'
    measured = False

    def blend(self, old: Any, new: Any, share: float) -> Any:
        return new if share >= 0.5 else old

    def distance(self, before: Any, after: Any) -> Vector:
        return np.empty(0)

    def limited(self, before: Any, value: Any, bound: Vector) -> Any:
        return value


class Kinds:
    """The kinds of a robot's channels; one that is not named holds positions."""

    plain: ClassVar[Position] = Position()

    def __init__(self, kinds: Mapping[str, Kind] | None = None) -> None:
        self._kinds = dict(kinds or {})
        self.sums = any(isinstance(kind, Delta) for kind in self._kinds.values())
        """Whether some channel does more than let the last value win."""
        self.turning = {
            name for name, kind in self._kinds.items() if isinstance(kind, (Angle, Quaternion))
        }
        """The channels whose values can be written as several turns."""

    def __getitem__(self, channel: str) -> Kind:
        return self._kinds.get(channel, self.plain)

    def items(self) -> list[tuple[str, Kind]]:
        """List the channels that are named, with their kinds."""
        return list(self._kinds.items())


OF_PREVIOUS, OF_OBSERVATION = 'previous', 'observation'

_KINDS: dict[str, type[Position]] = {
    kind.name: kind for kind in (Position, Angle, Quaternion, Pose, Velocity, Effort, Binary)
}


def kind_named(name: str, delta_of: str | None = None) -> Kind:
    """
    Return the kind of that name, as the player sees it.

    A delta says of what: of the `previous` row, or of the `observation`, which is made absolute
    below the player, so that the player sees positions (R22).

    Raises
    ------
    KindRefused
        The name is unknown, or a delta does not say of what it is one.

    """
    if name == Delta.name:
        if delta_of == OF_PREVIOUS:
            return Delta()
        if delta_of == OF_OBSERVATION:
            return Position()
        raise KindRefused(
            f'a delta channel must say of what it is one, {OF_PREVIOUS!r} or {OF_OBSERVATION!r}; '
            f'got {delta_of!r}'
        )
    if name not in _KINDS:
        raise KindRefused(f'the kind {name!r} is unknown; known: {sorted([*_KINDS, Delta.name])}')
    return _KINDS[name]()


def _shortened(change: Vector, longest: float) -> Vector:
    length = float(np.linalg.norm(change))
    return change if length <= longest else np.asarray(change * (longest / length))


def _length_fault(quaternion: Any) -> str | None:
    length = float(np.linalg.norm(quaternion))
    if abs(length - 1) > 1e-3:
        return f'a quaternion of length {length:.6g} came; a unit quaternion was expected'
    return None

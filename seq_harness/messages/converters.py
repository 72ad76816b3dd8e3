"""How messages of each type are read; other packages add types by entry points."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from importlib.metadata import entry_points
import math
from typing import Any, TypeAlias

from seq_harness.messages.compressed_image import (
    check_compressed,
    compressed_form,
    decode_compressed,
)
from seq_harness.messages.joints import joint_values
from seq_harness.messages.raw_image import check_image, decode_image, image_form
from seq_harness.messages.refusals import JointsFault, JointsRefused

GROUP = 'seq_harness.inputs'
"""The entry points by which other packages add converters: each names a `Converter`."""

Read: TypeAlias = Callable[[Any, Sequence[str], str], Any]
"""Makes a value of a message, the names wanted and the field of a joint_state."""


class Form(Enum):
    """What a converter makes."""

    IMAGE = 'image'
    """Pixels, made when they are read; `check` is what an arrival must pass."""
    NUMBERS = 'numbers'
    """Finite numbers by name, made at arrival; a message may hold some of the names."""
    WORD = 'word'
    """A text, made at arrival; None where the message says nothing of it."""


@dataclass(frozen=True)
class Converter:
    """How messages of one type are read."""

    message: str
    """The ROS type, such as `geometry_msgs/msg/PoseStamped`."""
    form: Form
    read: Read
    check: Callable[[Any], None] = lambda message: None
    """Refuses what cannot be read, by `ImageRefused`, without decoding it."""
    form_of: Callable[[Any], str] = lambda message: ''
    """Says what encoding and size an image has that passed its check; decodes nothing."""


def converter(kind: str) -> Converter:
    """
    Return the converter of a type of input, built in or added.

    Raises
    ------
    LookupError
        Nothing of that name is known.
    TypeError
        What another package adds is no `Converter`.

    """
    built_in = CONVERTERS.get(kind)
    if built_in is not None:
        return built_in
    for entry in entry_points(group=GROUP, name=kind):
        added = entry.load()
        if not isinstance(added, Converter):
            raise TypeError(f'{GROUP} entry {kind!r} must be a Converter, got {type(added)}')
        return added
    raise LookupError(f'no converter of {kind!r}; known: {sorted(CONVERTERS)}, or add one as an '
                      f'entry point of the group {GROUP!r}')  # fmt: skip


def finite(found: Mapping[str, float], names: Sequence[str]) -> dict[str, float]:
    """
    Return the numbers of those of `names` that `found` has.

    Raises
    ------
    JointsRefused
        One is missing, or not finite (G1).

    """
    missing = [name for name in names if name not in found]
    if missing:
        raise JointsRefused(
            JointsFault.MISSING, f'expected {list(names)}; {missing} missing from {list(found)}'
        )
    bad = [f'{name} = {found[name]}' for name in names if not math.isfinite(found[name])]
    if bad:
        raise JointsRefused(
            JointsFault.NOT_FINITE, f'expected finite numbers, got {", ".join(bad)}'
        )
    return {name: float(found[name]) for name in names}


def _joints(message: Any, names: Sequence[str], field: str) -> dict[str, float]:
    # The settings allow these three fields only.
    return joint_values(message, names, field)  # type: ignore[arg-type]


def _multi_array(message: Any, names: Sequence[str], field: str) -> dict[str, float]:
    if len(message.data) != len(names):
        raise JointsRefused(
            JointsFault.TOO_SHORT, f'expected {len(names)} numbers, got {len(message.data)}'
        )
    return finite(dict(zip(names, message.data, strict=True)), names)


def _joy(message: Any, names: Sequence[str], field: str) -> dict[str, float]:
    axes = {f'axis_{number}': value for number, value in enumerate(message.axes)}
    buttons = {f'button_{number}': value for number, value in enumerate(message.buttons)}
    return finite({**axes, **buttons}, names)


def _pose(message: Any, names: Sequence[str], field: str) -> dict[str, float]:
    pose = message.pose
    turned = {f'q{axis}': getattr(pose.orientation, axis) for axis in 'xyzw'}
    return finite({**_axes('', pose.position), **turned}, names)


def _twist(message: Any, names: Sequence[str], field: str) -> dict[str, float]:
    twist = message.twist
    return finite({**_axes('v', twist.linear), **_axes('w', twist.angular)}, names)


def _wrench(message: Any, names: Sequence[str], field: str) -> dict[str, float]:
    wrench = message.wrench
    return finite({**_axes('f', wrench.force), **_axes('t', wrench.torque)}, names)


def _axes(prefix: str, vector: Any) -> dict[str, float]:
    return {f'{prefix}{axis}': getattr(vector, axis) for axis in 'xyz'}


def _float(message: Any, names: Sequence[str], field: str) -> dict[str, float]:
    return finite({names[0]: message.data}, names)


def _word(message: Any, names: Sequence[str], field: str) -> str:
    data = message.data
    return str(data).lower() if isinstance(data, bool) else str(data)


def _diagnostic(message: Any, names: Sequence[str], field: str) -> str | None:
    """Return the level of the status `names[0]`, or its value of the key `names[1]`."""
    for status in message.status:
        if status.name != names[0]:
            continue
        if len(names) == 1:
            return _LEVELS.get(_level(status.level), 'unknown')
        return next((str(pair.value) for pair in status.values if pair.key == names[1]), None)
    return None


def _franka_mode(message: Any, names: Sequence[str], field: str) -> str:
    mode = int(message.robot_mode)
    return _FRANKA_MODES[mode] if mode < len(_FRANKA_MODES) else str(mode)


def _servo_status(message: Any, names: Sequence[str], field: str) -> str:
    code = int(message.code)
    return _SERVO_WORDS.get(code, str(code))


def _speed_scaling(message: Any, names: Sequence[str], field: str) -> str:
    percent = float(message.data)
    if percent >= _FULL_SPEED:
        return 'full'
    return 'slowed' if percent > 0 else 'stopped'


def _level(level: Any) -> int:
    """Return a byte as a number; rclpy has it as bytes of length 1."""
    return int(level) if hasattr(level, '__index__') else int(level[0])


_FRANKA_MODES = (
    'other', 'idle', 'move', 'guiding', 'reflex', 'user_stopped', 'automatic_error_recovery',
)  # fmt: skip
"""The words of ROBOT_MODE_* of franka_msgs/msg/FrankaRobotState, by its numbers."""

_SERVO_WORDS = {
    -1: 'invalid', 0: 'no_warning', 1: 'approaching_singularity', 2: 'halt_for_singularity',
    3: 'leaving_singularity', 4: 'near_collision', 5: 'halt_for_collision', 6: 'joint_bound',
}  # fmt: skip
"""The words of the codes of moveit_msgs/msg/ServoStatus."""

_FULL_SPEED = 99.5
"""From how many percent on a speed counts as whole: it is read back with an error."""

_LEVELS = {0: 'ok', 1: 'warn', 2: 'error', 3: 'stale'}


def _numbers(message: str, read: Read) -> Converter:
    return Converter(message, Form.NUMBERS, read)


def _words(name: str) -> Converter:
    return Converter(f'std_msgs/msg/{name}', Form.WORD, _word)


CONVERTERS: dict[str, Converter] = {
    'image': Converter(
        'sensor_msgs/msg/Image',
        Form.IMAGE,
        lambda message, names, field: decode_image(message),
        check_image,
        image_form,
    ),
    'compressed_image': Converter(
        'sensor_msgs/msg/CompressedImage',
        Form.IMAGE,
        lambda message, names, field: decode_compressed(message),
        check_compressed,
        compressed_form,
    ),
    'joint_state': _numbers('sensor_msgs/msg/JointState', _joints),
    'float64_multi_array': _numbers('std_msgs/msg/Float64MultiArray', _multi_array),
    'joy': _numbers('sensor_msgs/msg/Joy', _joy),
    'pose_stamped': _numbers('geometry_msgs/msg/PoseStamped', _pose),
    'twist_stamped': _numbers('geometry_msgs/msg/TwistStamped', _twist),
    'wrench_stamped': _numbers('geometry_msgs/msg/WrenchStamped', _wrench),
    'float64': _numbers('std_msgs/msg/Float64', _float),
    'string': _words('String'),
    'bool': _words('Bool'),
    'int8': _words('Int8'),
    'uint8': _words('UInt8'),
    'int32': _words('Int32'),
    'diagnostic_array': Converter('diagnostic_msgs/msg/DiagnosticArray', Form.WORD, _diagnostic),
    'franka_robot_state': Converter('franka_msgs/msg/FrankaRobotState', Form.WORD, _franka_mode),
    'servo_status': Converter('moveit_msgs/msg/ServoStatus', Form.WORD, _servo_status),
    'speed_scaling': Converter('std_msgs/msg/Float64', Form.WORD, _speed_scaling),
}
"""The built-in types of inputs."""

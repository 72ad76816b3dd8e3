"""What topics may carry: the built-in types of inputs, and those that other packages add."""

from __future__ import annotations

from importlib.metadata import entry_points

IMAGE, COMPRESSED_IMAGE, JOINT_STATE = 'image', 'compressed_image', 'joint_state'

CAMERAS = (IMAGE, COMPRESSED_IMAGE)

NAMES: dict[str, tuple[str, ...]] = {
    JOINT_STATE: (),
    'float64_multi_array': (),
    'joy': (),
    'pose_stamped': ('x', 'y', 'z', 'qx', 'qy', 'qz', 'qw'),
    'twist_stamped': ('vx', 'vy', 'vz', 'wx', 'wy', 'wz'),
    'wrench_stamped': ('fx', 'fy', 'fz', 'tx', 'ty', 'tz'),
    'float64': ('value',),
}
"""The built-in types that hold named numbers, and their names; empty where a parameter says."""

DIAGNOSTICS = 'diagnostic_array'

WORDS = (
    'string', 'bool', 'int8', 'uint8', 'int32', DIAGNOSTICS, 'franka_robot_state', 'servo_status',
    'speed_scaling',
)  # fmt: skip
"""The built-in types that hold a text or a status."""

GROUP = 'seq_harness.inputs'
"""The entry points by which other packages add types of inputs."""


def added_types() -> tuple[str, ...]:
    """Return the types that installed packages add, in order of their names."""
    return tuple(sorted({entry.name for entry in entry_points(group=GROUP)}))


INPUT_TYPES = (*CAMERAS, *NAMES, *WORDS, *added_types())
"""Every type of input that is known here."""

"""Recordings that a test makes, and parameters and policies that fit them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
import io
import math
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer
from rosbags.typesys import get_typestore, Stores
from seq_harness.contract import Actions

STORE = get_typestore(Stores.ROS2_JAZZY)
MS, S = 1_000_000, 1_000_000_000
START_NS = 1_700_000_000 * S
JOINTS = ('j1', 'j2')
JOINT_STATE = 'sensor_msgs/msg/JointState'
COMPRESSED = 'sensor_msgs/msg/CompressedImage'

Message = tuple[str, str, int, Any]
"""A topic, its type, a log time in ns, and a message."""


def header(stamp_ns: int) -> Any:
    """Return a header stamped so."""
    sec, nanosec = divmod(stamp_ns, S)
    stamp = STORE.types['builtin_interfaces/msg/Time'](sec=sec, nanosec=nanosec)
    return STORE.types['std_msgs/msg/Header'](stamp=stamp, frame_id='')


def joint_state(
    log_ns: int, stamp_ns: int | None = None, position: Sequence[float] | None = None
) -> Message:
    """Return a joint state of a slow motion, stamped 1 ms before it was logged."""
    phase = (log_ns - START_NS) / 1e9
    values = position or [0.1 * math.sin(phase), 0.1 * math.cos(phase) - 0.1]
    message = STORE.types[JOINT_STATE](
        header=header(log_ns - MS if stamp_ns is None else stamp_ns),
        name=list(JOINTS),
        position=np.array(values),
        velocity=np.zeros(0),
        effort=np.zeros(0),
    )
    return '/joint_states', JOINT_STATE, log_ns, message


def frame(
    log_ns: int, shade: int, form: str = 'jpeg', size: tuple[int, int] = (64, 48)
) -> Message:
    """Return a JPEG of so many pixels in one shade of grey."""
    out = io.BytesIO()
    Image.new('RGB', size, (shade, shade, shade)).save(out, 'JPEG')
    data = np.frombuffer(out.getvalue(), np.uint8)
    message = STORE.types[COMPRESSED](header=header(log_ns - 5 * MS), format=form, data=data)
    return '/front/compressed', COMPRESSED, log_ns, message


def motion(seconds: float = 2.0, hz: int = 100, camera_hz: int = 0) -> list[Message]:
    """Return a motion of two joints, and frames of a camera if wanted, in order of log time."""
    made = [joint_state(START_NS + i * S // hz) for i in range(round(seconds * hz))]
    frames = round(seconds * camera_hz)
    made += [frame(START_NS + i * S // camera_hz + 3 * MS, i % 256) for i in range(frames)]
    return sorted(made, key=lambda message: message[2])


def write(
    path: Path,
    messages: Sequence[Message],
    plugin: StoragePlugin = StoragePlugin.MCAP,
    compression: CompressionMode | None = None,
) -> Path:
    """Write a recording."""
    writer = Writer(path, version=9, storage_plugin=plugin)
    if compression is not None:
        writer.set_compression(compression, CompressionFormat.ZSTD)
    with writer:
        known: dict[tuple[str, str], Any] = {}
        for topic, kind, log_ns, message in messages:
            if (topic, kind) not in known:
                known[topic, kind] = writer.add_connection(topic, kind, typestore=STORE)
            data = bytes(STORE.serialize_cdr(message, kind))
            writer.write(known[topic, kind], log_ns, data)
    return path


def parameters(camera: bool = False, **changes: Any) -> dict[str, Any]:
    """Return parameters that read such a recording; `__` in a changed name is a dot."""
    values: dict[str, Any] = {
        'preview': False,
        'rate_hz': 20.0,
        'input_names': ['state', 'front'] if camera else ['state'],
        'inputs.state.topic': 'joint_states',
        'inputs.state.type': 'joint_state',
        'inputs.state.joints': list(JOINTS),
        'inputs.state.max_age_s': 0.5,
        'channel_names': ['arm'],
        'channels.arm.topic': 'commands',
        'channels.arm.type': 'float64_multi_array',
        'channels.arm.joints': list(JOINTS),
        'channels.arm.state': 'state',
        'channels.arm.lower': [-1.0, -1.0],
        'channels.arm.upper': [1.0, 1.0],
        'channels.arm.max_velocity': [10.0, 10.0],
    }
    if camera:
        values['inputs.front.topic'] = 'front/compressed'
        values['inputs.front.type'] = 'compressed_image'
    values.update({name.replace('__', '.'): value for name, value in changes.items()})
    return values


class Follow:
    """Answer rows that go on from the state that was seen, and remember what that was."""

    actions = Actions(key='actions', hz=20.0, open_loop_horizon=8)

    def __init__(self, rows: int = 8, on_infer: Callable[[], None] = lambda: None) -> None:
        self._rows = rows
        self._on_infer = on_infer
        self.seen: list[Mapping[str, Any]] = []

    def infer(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """Answer one chunk."""
        self._on_infer()
        self.seen.append(inputs)
        state = np.asarray(inputs['state'], np.float32)
        steps = np.arange(self._rows, dtype=np.float32)[:, None]
        return {'actions': state[None] + 0.001 * steps}

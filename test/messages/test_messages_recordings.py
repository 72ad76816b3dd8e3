"""Recordings of real robots, where they lie beside the repository."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rosbags.highlevel import AnyReader
from rosbags.typesys import get_typestore, Stores
from seq_harness.messages.images import decode_compressed, decode_image
from seq_harness.messages.joints import joint_vector, JointsFault, JointsRefused
from seq_harness.messages.setpoints import read_joint_trajectory

BAGS = Path(__file__).parents[3] / 'shared' / 'bags'


def _first(folder: str, topic: str) -> Any:
    """Return the first message of `topic`, or skip where the recording is not at hand."""
    path = BAGS / folder
    if not path.exists():
        pytest.skip(f'the recording {folder} is not beside this repository')
    with AnyReader([path], default_typestore=get_typestore(Stores.ROS2_JAZZY)) as reader:
        wanted = [c for c in reader.connections if c.topic == topic]
        connection, _, data = next(iter(reader.messages(wanted)))
        return reader.deserialize(data, connection.msgtype)


def test_the_joints_of_a_real_arm_are_put_in_order() -> None:
    message = _first('lbr_med7_hold', '/joint_states')
    names = [f'lbr_joint_{n}' for n in range(7)]
    assert list(message.name) != names
    vector = joint_vector(message, names)
    assert vector[0] == message.position[list(message.name).index('lbr_joint_0')]
    assert joint_vector(message, names, 'effort').shape == (7,)


def test_a_recording_without_effort_reports_it_absent() -> None:
    message = _first('zero_stamp_joints', '/joint_states')
    with pytest.raises(JointsRefused) as refused:
        joint_vector(message, ['joint_7'], 'effort')
    assert refused.value.fault is JointsFault.ABSENT


def test_a_real_depth_frame_that_says_mono16_keeps_its_range() -> None:
    pixels = decode_image(_first('realsense_d435_depth', '/device_0/sensor_0/Depth_0/image/data'))
    assert pixels.shape == (480, 640)
    assert pixels.dtype == np.uint16
    assert pixels.max() > 255


def test_a_raw_and_a_compressed_frame_of_one_camera_look_alike() -> None:
    raw = decode_image(_first('lbr_hold_plus_camera', '/camera/color/image_raw'))
    packed = decode_compressed(
        _first('lbr_hold_plus_camera', '/camera/color/image_raw/compressed')
    )
    assert raw.shape == packed.shape == (480, 640, 3)
    np.testing.assert_allclose(raw.mean(axis=(0, 1)), packed.mean(axis=(0, 1)), atol=20)


def test_a_recorded_chunk_names_its_joints_and_its_times_rise() -> None:
    names, points = read_joint_trajectory(
        _first('lbr_handguided_wristcam_chunks', '/arm_controller/joint_trajectory')
    )
    assert names == tuple(f'lbr_joint_{n}' for n in range(7))
    times = [point.time_from_start_ns for point in points]
    assert len(points) == 16
    assert times == sorted(set(times))

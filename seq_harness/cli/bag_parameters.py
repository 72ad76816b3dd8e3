"""Parameters of a harness that fit a recording: what it reads, and a preview of what it holds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from seq_harness.bags.reading import Bag
from seq_harness.bags.records import BagError
from seq_harness.sim.kinematics import JOINT_NAMES

JOINT_STATE = 'sensor_msgs/msg/JointState'
IMAGES = {
    'sensor_msgs/msg/Image': 'image',
    'sensor_msgs/msg/CompressedImage': 'compressed_image',
}

MAX_AGE_S = 2.0
FAR = 1e4
"""Limits that bound nothing, in rad: a preview moves nothing, and wheels turn without end."""


def parameters_for(path: Path) -> tuple[dict[str, Any], bool]:
    """
    Return parameters that read a recording, and whether it is one of the simulated arm.

    The JointState topic with the most messages is the state of one channel, which is only
    previewed; the image topic with the most messages is a camera.

    Raises
    ------
    BagError
        The recording cannot be read, or holds no joint state.

    """
    with Bag(path) as bag:
        busiest = sorted(bag.topics, key=lambda topic: -topic.count)
        states = [topic.name for topic in busiest if topic.type == JOINT_STATE]
        if not states:
            held = ', '.join(f'{topic.name} ({topic.type})' for topic in busiest)
            raise BagError(f'{path} holds no {JOINT_STATE}; it holds {held}')
        _, message = next(iter(bag.messages(states[:1])))
    joints = [str(name) for name in message.name]
    cameras = [(topic.name, IMAGES[topic.type]) for topic in busiest if topic.type in IMAGES]
    camera = cameras[0] if cameras else None
    return _parameters(states[0], joints, camera), tuple(joints) == JOINT_NAMES and bool(cameras)


def _parameters(topic: str, joints: list[str], camera: tuple[str, str] | None) -> dict[str, Any]:
    inputs: dict[str, Mapping[str, Any]] = {
        'state': {
            'topic': topic,
            'type': 'joint_state',
            'joints': joints,
            'max_age_s': MAX_AGE_S,
        }
    }
    if camera is not None:
        inputs['front'] = {'topic': camera[0], 'type': camera[1], 'max_age_s': MAX_AGE_S}
    channel = {
        'topic': 'commands',
        'type': 'float64_multi_array',
        'joints': joints,
        'state': 'state',
        'lower': [-FAR] * len(joints),
        'upper': [FAR] * len(joints),
        'max_velocity': [FAR] * len(joints),
        'max_start_distance': FAR,
    }
    return {
        'preview': True,
        'input_names': sorted(inputs),
        'inputs': inputs,
        'channel_names': ['arm'],
        'channels': {'arm': channel},
    }

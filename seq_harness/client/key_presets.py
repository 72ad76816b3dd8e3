"""The observations that openpi's own policies read, by the name of their data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SQUARE = {'width': 224, 'height': 224, 'resize': 'pad', 'filter': 'bilinear'}
"""The frames of every openpi policy."""


def _frame(own: str, **more: Any) -> dict[str, Any]:
    return {'from': own, 'camera': SQUARE, **more}


PRESETS: Mapping[str, Mapping[str, Any]] = {
    'droid': {
        'observation/exterior_image_1_left': _frame('exterior'),
        'observation/wrist_image_left': _frame('wrist'),
        'observation/joint_position': {'from': 'joints', 'length': 7},
        'observation/gripper_position': {'from': 'gripper', 'length': 1},
        'prompt': 'prompt',
    },
    'libero': {
        'observation/image': _frame('front'),
        'observation/wrist_image': _frame('wrist'),
        'observation/state': {'from': 'state', 'length': 8},
        'prompt': 'prompt',
    },
    'aloha': {
        'state': {'from': 'state', 'length': 14},
        'images': {
            'cam_high': _frame('cam_high', layout='chw'),
            'cam_left_wrist': _frame('cam_left_wrist', layout='chw'),
            'cam_right_wrist': _frame('cam_right_wrist', layout='chw'),
        },
        'prompt': 'prompt',
    },
}
"""Server's key to what it holds, as `server_keys` would say it; `from` names own keys."""

_ALOHA_ARM = (
    'waist', 'shoulder', 'elbow', 'forearm_roll', 'wrist_angle', 'wrist_rotate', 'gripper',
)  # fmt: skip

PRESET_COLUMNS: Mapping[str, tuple[str, ...]] = {
    'droid': (*(f'joint_{i}' for i in range(1, 8)), 'gripper'),
    'libero': ('x', 'y', 'z', 'rx', 'ry', 'rz', 'gripper'),
    'aloha': tuple(f'{side}_{joint}' for side in ('left', 'right') for joint in _ALOHA_ARM),
}
"""Names of the columns of the rows that these policies answer, in order."""

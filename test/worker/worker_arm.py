"""A robot arm's policy that the tests serve, and what is sent to it."""

from __future__ import annotations

import base64
import io
from typing import Any

import numpy as np
from PIL import Image
from seq_harness.contract.arm import ActionContract, ObservationContract
from seq_harness.contract.camera import Camera
from seq_harness.contract.images import encode_depth

ACTION: dict[str, Any] = {
    'robot': 'two_link',
    'action_space': 'joint_absolute',
    'action_dim': 2,
    'control_frequency_hz': 20.0,
    'bounds': [(-1.0, 1.0), (-2.0, 2.0)],
}


class Arm:
    """Answer what the test says, and keep what was read."""

    def __init__(self, answer: Any = None, **contract: Any) -> None:
        self.action = ActionContract.model_validate({**ACTION, **contract})
        self.observation = ObservationContract(
            cameras={'front': Camera(width=8, height=6, resize='pad', filter='bilinear')},
            proprio={'joint_positions': 2},
            state={'force': 3},
        )
        self.answer = [[0.1, 0.2], [0.3, 0.4]] if answer is None else answer
        self.reads: list[Any] = []

    def infer(self, inputs: Any) -> Any:
        self.reads.append(inputs)
        return self.answer


def image(width: int = 8, height: int = 6, kind: str = 'JPEG') -> str:
    out = io.BytesIO()
    Image.fromarray(np.full((height, width, 3), 90, np.uint8)).save(out, kind)
    return base64.b64encode(out.getvalue()).decode()


def depth(width: int = 8, height: int = 6) -> str:
    return encode_depth(np.full((height, width), 1.5))


def observation(**changed: Any) -> dict[str, Any]:
    return {
        'images': [{'view': 'front', 'data': image()}],
        'proprioception': {'joint_positions': [0.0, 0.5]},
        'instruction': 'stack the cups',
        'state': {'force': [1, 2, 3]},
        **changed,
    }


def frames(count: int = 1, **frame: Any) -> list[dict[str, Any]]:
    return [{'view': 'front', 'data': image(), **frame} for _ in range(count)]

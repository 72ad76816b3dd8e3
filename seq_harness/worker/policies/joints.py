"""What the joint-space policies share: the state they read and the columns they write."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from seq_harness.contract.wire import KEY_OBSERVATIONS

STATE = 'state'
"""The key of the joint positions."""


def joint_names(joints: int) -> list[str] | None:
    """Name that many columns joint_1, joint_2, ...; none for 0, any number of them."""
    return [f'joint_{i + 1}' for i in range(joints)] or None


def newest_state(inputs: dict[str, Any], columns: list[str] | None) -> npt.NDArray[np.float32]:
    """
    Return the joint positions of the newest observation, float32 [joints].

    Raises
    ------
    ValueError
        There are none, or not one for each of `columns`.

    """
    observation = inputs[KEY_OBSERVATIONS][-1]
    if STATE not in observation:
        raise ValueError(f'the observation holds {sorted(observation)}; {STATE!r} was expected')
    state = np.asarray(observation[STATE], np.float32)
    if state.ndim != 1 or (columns is not None and len(state) != len(columns)):
        raise ValueError(
            f'{STATE!r} has shape {list(state.shape)}; [{len(columns or [])}] was expected: start '
            'the policy with joints= the number of joints'
        )
    return state

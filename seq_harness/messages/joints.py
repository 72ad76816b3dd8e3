"""Joint values of sensor_msgs/JointState by name, in any order and from any part of the arm."""

from __future__ import annotations

from collections.abc import Sequence
import math
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from seq_harness.messages.refusals import JointsFault, JointsRefused

Field: TypeAlias = Literal['position', 'velocity', 'effort']

__all__ = ['Field', 'JointsFault', 'JointsRefused', 'joint_values', 'joint_vector']


def joint_vector(
    message: Any, names: Sequence[str], field: Field = 'position'
) -> NDArray[np.float64]:
    """
    Return the values of `names`, in that order, as float64 [len(names)].

    Joints that are not asked for may be anything.

    Raises
    ------
    JointsRefused
        When the field is absent (empty, G2), holds fewer values than names, lacks a joint, names
        one twice, or holds a value that is not finite (G1).

    """
    values = joint_values(message, names, field)
    missing = [name for name in names if name not in values]
    if missing:
        raise JointsRefused(
            JointsFault.MISSING,
            f'expected the joints {", ".join(names)}; {", ".join(missing)} missing from '
            f'{", ".join(message.name) or "a message without names"}',
        )
    return np.array([values[name] for name in names], np.float64)


def joint_values(
    message: Any, names: Sequence[str], field: Field = 'position'
) -> dict[str, float]:
    """
    Return the values of those of `names` that the message holds (G3), name to value.

    Raises
    ------
    JointsRefused
        As `joint_vector` does, but for a missing joint.

    """
    values, named = getattr(message, field), message.name
    wanted = set(names)
    held = [(place, name) for place, name in enumerate(named) if name in wanted]
    if held and not len(values):
        raise JointsRefused(JointsFault.ABSENT, f'the message holds no {field}')
    if len(values) < len(named):
        raise JointsRefused(
            JointsFault.TOO_SHORT,
            f'{len(named)} joints are named, with {len(values)} values of {field}',
        )
    found = {name: float(values[place]) for place, name in held}
    if len(found) < len(held):
        raise JointsRefused(JointsFault.AMBIGUOUS, f'a joint is named twice in {", ".join(named)}')
    bad = [f'{name} = {value}' for name, value in found.items() if not math.isfinite(value)]
    if bad:
        raise JointsRefused(
            JointsFault.NOT_FINITE, f'expected finite values of {field}, got {", ".join(bad)}'
        )
    return found

"""Which joints must be seen to move where they are commanded to, and what watches over that."""

from __future__ import annotations

import math

import numpy as np
from seq_harness.playback.freezing import Moving
from seq_harness.settings import ChannelSettings, JointSettings, Settings
from seq_harness.settings.joint_parameters import METRES

FOLLOWED = ('position', 'angle', 'delta', 'velocity')
"""The kinds of which it is known where they lead; an effort may only press."""

PLACES = ('position', 'angle', 'delta', 'pose')
"""The kinds that say where to be."""

HELD = ('gripper_command', 'gripper_action', 'parallel_gripper_action', 'twist_stamped')
"""Types of which it is not: a gripper holds an object, and a twist is no joint's."""

GRIPPERS = ('gripper', 'finger', 'jaw')
"""Parts of the names of joints that may be held by an object, beside those with `open_closed`."""

BOUNDS = {'rad': 0.05, 'm': 0.01}
"""How far a joint may be commanded away before it must be seen to move."""


def moving_channels(settings: Settings) -> dict[str, tuple[str, Moving]]:
    """Return by channel the input that measures it, and the joints that must be seen to move."""
    mapped = {item.name: item for item in settings.joints}
    found = {}
    for item in settings.channels:
        if item.kind in FOLLOWED and item.type not in HELD and item.state:
            moving = _moving(item, mapped)
            if np.isfinite(moving.bounds).any():
                found[item.name] = item.state, moving
    return found


def unwatched(settings: Settings) -> list[str]:
    """Say which channels of positions play on, unnoticed, while their robot does not follow."""
    if any(item.is_status for item in settings.inputs):
        return []
    mapped = {item.name: item for item in settings.joints}
    return [
        f'channels.{item.name} has no max_tracking_error, and no input is a status: an arm that '
        'was stopped by its own safety is commanded on, and catches up at once when it is '
        'released; set one of them'
        for item in settings.channels
        if item.kind in PLACES
        and item.type not in HELD
        and not item.max_tracking_error
        and not all(_held(joint, mapped.get(joint)) for joint in item.joints)
    ]


def _moving(channel: ChannelSettings, mapped: dict[str, JointSettings]) -> Moving:
    units = tuple(_unit(mapped.get(joint)) for joint in channel.joints)
    bounds = [
        math.inf if _held(joint, mapped.get(joint)) else BOUNDS[unit]
        for joint, unit in zip(channel.joints, units, strict=True)
    ]
    return Moving(channel.joints, np.array(bounds), units)


def _unit(joint: JointSettings | None) -> str:
    return 'm' if joint is not None and joint.unit in METRES else 'rad'


def _held(name: str, joint: JointSettings | None) -> bool:
    if joint is not None and joint.open_closed:
        return True
    return any(part in name.lower() for part in GRIPPERS)

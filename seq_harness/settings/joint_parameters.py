"""The parameters of one joint: what the policy calls it by, against what ROS does."""

from __future__ import annotations

from dataclasses import dataclass

from seq_harness.settings.parameter import Kind, Parameter, SettingsError

UNITS = {'rad': 1.0, 'deg': 0.017453292519943295, 'turn': 6.283185307179586, 'm': 1.0,
         'cm': 0.01, 'mm': 0.001}  # fmt: skip
"""Unit of a policy's values to how much one of it is in rad or m, which ROS has (REP 103)."""

METRES = ('m', 'cm', 'mm')
"""The units of joints that slide."""

JOINT = (
    Parameter(
        'unit', Kind.STRING, 'rad', 'The unit of the policy; ROS has rad and m.',
        choices=tuple(UNITS),
    ),
    Parameter(
        'sign', Kind.INTEGER, 1, 'Whether the policy counts the joint as ROS does, 1, or the '
        'other way round, -1.', -1, 1,
    ),
    Parameter(
        'offset', Kind.DOUBLE, 0.0, 'Where the zero of the policy lies for ROS, in rad or m.',
    ),
    Parameter(
        'continuous', Kind.BOOL, False, 'The joint turns without end: the policy reads it within '
        'half a turn of its zero.',
    ),
    Parameter(
        'open_closed', Kind.DOUBLE_ARRAY, (), 'For a gripper: what ROS calls open and closed, in '
        'rad or m, whichever is larger; replaces unit, sign and offset.',
    ),
    Parameter(
        'policy_open_closed', Kind.DOUBLE_ARRAY, (0.0, 1.0), 'For a gripper: what the policy '
        'calls open and closed.',
    ),
)  # fmt: skip


@dataclass(frozen=True)
class JointSettings:
    """How a policy's values of one joint and those of ROS belong together."""

    name: str
    unit: str
    sign: int
    offset: float
    continuous: bool
    open_closed: tuple[float, ...]
    policy_open_closed: tuple[float, ...]


def checked_joint(joint: JointSettings) -> JointSettings:
    """
    Return `joint` if its parameters go together.

    Raises
    ------
    SettingsError
        A sign of 0, or open and closed that are not two different numbers.

    """
    prefix = f'joints.{joint.name}'
    if not joint.sign:
        raise SettingsError(f"parameter '{prefix}.sign' must be 1 or -1; got 0")
    if not joint.open_closed:
        return joint
    for member in ('open_closed', 'policy_open_closed'):
        ends = getattr(joint, member)
        if len(ends) != 2 or ends[0] == ends[1]:
            raise SettingsError(
                f"parameter '{prefix}.{member}' must be two different numbers, open and closed; "
                f'got {list(ends)}'
            )
    if joint.continuous:
        raise SettingsError(
            f"parameter '{prefix}.continuous' must be false for a gripper, which 'open_closed' "
            'makes of the joint'
        )
    return joint

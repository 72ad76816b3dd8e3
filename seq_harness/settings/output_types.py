"""What controllers take: the types of channels, and which kinds of values each may carry."""

from __future__ import annotations

FLOAT64_MULTI_ARRAY, JOINT_TRAJECTORY = 'float64_multi_array', 'joint_trajectory'

RATES = ('velocity', 'effort')
"""The kinds that move on by themselves."""

_JOINTS = ('position', 'angle', 'velocity', 'effort', 'delta', 'binary')

OUTPUT_KINDS: dict[str, tuple[str, ...]] = {
    FLOAT64_MULTI_ARRAY: (*_JOINTS, 'pose'),
    JOINT_TRAJECTORY: ('position', 'angle', 'delta', 'binary'),
    'joint_state': _JOINTS,
    'pose_stamped': ('pose',),
    'twist_stamped': ('velocity',),
    'joint_jog': ('velocity', 'delta'),
    'float64': _JOINTS,
    'gripper_command': ('position', 'binary'),
    'gripper_action': ('position', 'binary'),
    'parallel_gripper_action': ('position', 'binary'),
}
"""Type to the kinds of channels that it can carry."""

ACTIONS = {
    'gripper_action': 'control_msgs/action/GripperCommand',
    'parallel_gripper_action': 'control_msgs/action/ParallelGripperCommand',
}
"""The types whose values are goals, and the action of each; their topic is the action's name."""

WIDTHS = {
    'pose_stamped': 7,
    'twist_stamped': 6,
    'float64': 1,
    'gripper_command': 1,
    'gripper_action': 1,
}
"""Type to the number of values that a message of it holds."""

POSE_WIDTHS = {'lower': 3, 'upper': 3, 'max_velocity': 2}
"""Of a pose: a workspace box in m, and speeds in m/s and rad/s."""

POSE_COLUMNS = (6, 7, 9)
"""How many columns of a policy make a pose: by a rotation of 3 numbers, of 4, or of 6."""

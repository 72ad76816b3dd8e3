"""The parameters of one command output."""

from __future__ import annotations

from seq_harness.settings.output_types import OUTPUT_KINDS
from seq_harness.settings.parameter import Kind, Parameter
from seq_harness.settings.play_parameters import PLAY_CHANNEL

CHANNEL = (
    Parameter('topic', Kind.STRING, None, 'The command topic of the controller.', is_topic=True),
    Parameter(
        'type', Kind.STRING, None, 'The message the controller takes. A gripper_command and a '
        'joint_jog need control_msgs.', choices=tuple(OUTPUT_KINDS),
    ),
    Parameter(
        'joints', Kind.STRING_ARRAY, None, 'The joints commanded, in the order of the controller; '
        'for a pose the names of x, y, z, qx, qy, qz, qw, for a twist those of its six rates.',
    ),
    Parameter(
        'columns', Kind.STRING_ARRAY, (), 'The columns of the policy for these joints, by name; '
        'empty takes the names of the joints.',
    ),
    Parameter(
        'state', Kind.STRING, '', 'The input that measures these joints: first rows are bounded '
        'from it. Only velocities and efforts may go without.',
    ),
    Parameter(
        'lower', Kind.DOUBLE_ARRAY, None, 'Lowest position of each joint, in rad or m; for a pose '
        'that of x, y and z.',
    ),
    Parameter(
        'upper', Kind.DOUBLE_ARRAY, None, 'Highest position of each joint, in rad or m; for a '
        'pose that of x, y and z.',
    ),
    Parameter(
        'max_velocity', Kind.DOUBLE_ARRAY, None, 'Fastest change between two rows of each joint, '
        'in rad/s or m/s; for a pose two, in m/s and rad/s.', 0.0,
    ),
    Parameter(
        'max_start_distance', Kind.DOUBLE, 0.2, 'Largest distance of a first row from the '
        'measured position, in rad or m.', 0.0,
    ),
    Parameter(
        'time_from_start_s', Kind.DOUBLE, 0.0, 'For joint_trajectory: when a row is to be '
        'reached, in seconds after it is sent; 0 takes one row period.', 0.0, 60.0,
    ),
    Parameter(
        'frame', Kind.STRING, 'base_link', 'For a pose, twist or joint_jog: the frame that its '
        'header names.',
    ),
    Parameter(
        'max_effort', Kind.DOUBLE, 0.0, 'For grippers: the most effort to close with, in N or Nm; '
        'a parallel_gripper_action leaves 0 to the gripper, the others send it, and some grippers '
        'take it for no force.', 0.0,
    ),
    Parameter(
        'goal_change', Kind.DOUBLE, 0.002, 'For gripper actions: how far a value must be from the '
        'last goal for a new goal to be sent, in m or rad.', 0.0,
    ),
    Parameter(
        'controller_state', Kind.STRING, '', 'For joint_trajectory: the topic on which the '
        'controller publishes its state, by which a trajectory that it does not take is noticed; '
        'empty for none. Needs control_msgs.', is_topic=True,
    ),
    *PLAY_CHANNEL,
)  # fmt: skip

"""The parameters of what may keep the robot from moving, besides its inputs."""

from __future__ import annotations

from seq_harness.settings.parameter import Kind, Parameter

SAFETY = (
    Parameter(
        'stop_topic', Kind.STRING, '', 'A std_msgs/Bool whose true ends the episode and refuses '
        'others until ~/reset_fault; empty for none.', is_topic=True,
    ),
    Parameter(
        'require_heartbeat', Kind.BOOL, False, 'Take silence on stop_topic for a stop too.',
    ),
    Parameter(
        'stop_timeout_s', Kind.DOUBLE, 0.5, 'For require_heartbeat: how long stop_topic may be '
        'silent, in seconds.', 0.02, 60.0,
    ),
    Parameter(
        'deadman_topic', Kind.STRING, '', 'A std_msgs/Bool that must be true while anything '
        'moves; letting go ends the episode. Empty for none.', is_topic=True,
    ),
    Parameter(
        'deadman_timeout_s', Kind.DOUBLE, 0.5, 'How long deadman_topic may be silent, in seconds.',
        0.02, 60.0,
    ),
    Parameter(
        'require_watchdog', Kind.BOOL, False, 'Start an episode only while a watchdog process '
        'watches this node, and end it when that is gone; once this node is dead or frozen the '
        'watchdog sends zero to every channel of velocities or efforts.',
    ),
    Parameter(
        'manual_commands', Kind.BOOL, False, 'Take std_msgs/Float64MultiArray commands by hand on '
        '~/manual/<channel>, in the order of its joints; they pass the guard.',
    ),
    Parameter(
        'on_time_jump', Kind.STRING, 'end', 'Under use_sim_time: a clock that goes back, or on by '
        'more than 1 s at once, ends the episode, or drops what is held and asks afresh.',
        choices=('end', 'reanchor'),
    ),
)  # fmt: skip

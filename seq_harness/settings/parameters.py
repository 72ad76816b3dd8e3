"""The parameters of a harness: their names, types, ranges and meaning."""

from __future__ import annotations

from seq_harness.settings.channel_parameters import CHANNEL
from seq_harness.settings.input_parameters import INPUT
from seq_harness.settings.input_types import COMPRESSED_IMAGE, IMAGE, JOINT_STATE
from seq_harness.settings.output_types import FLOAT64_MULTI_ARRAY, JOINT_TRAJECTORY
from seq_harness.settings.parameter import Kind, Parameter, SettingsError
from seq_harness.settings.play_parameters import PLAY
from seq_harness.settings.record_parameters import RECORD
from seq_harness.settings.safety_parameters import SAFETY
from seq_harness.settings.server_parameters import SERVER
from seq_harness.settings.worker_parameters import WORKER

__all__ = [
    'CHANNEL',
    'COMPRESSED_IMAGE',
    'FLOAT64_MULTI_ARRAY',
    'GENERAL',
    'IMAGE',
    'INPUT',
    'JOINT_STATE',
    'JOINT_TRAJECTORY',
    'Kind',
    'Parameter',
    'SettingsError',
]

GENERAL = (
    *WORKER,
    *SERVER,
    Parameter(
        'autostart', Kind.BOOL, True, 'Configure and activate the node by itself; false leaves '
        'that to a lifecycle manager. An episode starts only by ~/start.',
    ),
    Parameter(
        'preview', Kind.BOOL, True, 'Publish setpoints under ~/preview/ instead of to the '
        'controllers: nothing moves.',
    ),
    Parameter(
        'rate_hz', Kind.DOUBLE, 20.0, 'Rows and observation steps a second where the policy '
        'declares none.', 0.01, 1000.0,
    ),
    Parameter(
        'episode_s', Kind.DOUBLE, 0.0, 'An episode ends with deadline this long after its first '
        'round with all required inputs, whether or not a chunk has come, in seconds; 0 for no '
        'deadline.', 0.0, 86400.0,
    ),
    Parameter(
        'inputs_timeout_s', Kind.DOUBLE, 5.0, 'How long a start waits for a worker, and an '
        'episode for the first message of every required input, in seconds.', 0.0, 3600.0,
    ),
    Parameter(
        'max_camera_spread_s', Kind.DOUBLE, 0.0, 'Frames of different cameras whose stamps lie '
        'further apart make the older one stale, in seconds; 0 for no bound.', 0.0, 60.0,
    ),
    Parameter(
        'robot_description', Kind.STRING, '', 'The topic of a URDF whose limits bound the joints '
        'of the channels too, such as /robot_description; empty for none.', is_topic=True,
    ),
    Parameter(
        'on_other_publisher', Kind.STRING, 'stop', 'What another publisher on a command topic '
        'does: it has a start refused and ends the episode (stop), has a start refused (refuse), '
        'or is told (warn).', choices=('stop', 'refuse', 'warn'),
    ),
    *PLAY,
    *SAFETY,
    *RECORD,
    Parameter(
        'instruction', Kind.STRING, '', 'The instruction of the first episode; ~/instruction '
        'replaces it.',
    ),
    Parameter(
        'on_instruction', Kind.STRING, 'next_act', 'What a new instruction does to an episode '
        'that is under way: the next act carries it, or the policy is asked at once.',
        choices=('next_act', 'replan'),
    ),
    Parameter(
        'layers', Kind.STRING, '', 'The layers around the player, as a JSON list from top to '
        'bottom with one entry for the player itself; empty for the player alone.',
    ),
    Parameter(
        'instruction_key', Kind.STRING, 'prompt', 'The observation key of the instruction; empty '
        'to send none.',
    ),
    Parameter(
        'rt_priority', Kind.INTEGER, 20, 'SCHED_FIFO priority of the thread that publishes '
        'setpoints, where the system grants it; 0 for off. A controller manager has 50.', 0, 49,
    ),
    Parameter(
        'niceness', Kind.INTEGER, -10, 'Niceness of the process, where the system grants it and '
        'our own main runs the node; the thread that publishes asks for 10 less where it has '
        'no SCHED_FIFO. 0 leaves both as they are.', -20, 0,
    ),
    Parameter(
        'input_names', Kind.STRING_ARRAY, None, 'The inputs of an observation; inputs.<name>.* '
        'describes each.',
    ),
    Parameter(
        'channel_names', Kind.STRING_ARRAY, None, 'The command outputs; channels.<name>.* '
        'describes each.',
    ),
    Parameter(
        'mapped_joints', Kind.STRING_ARRAY, (), 'The joints that the policy counts otherwise than '
        'ROS does, in inputs and channels alike; joints.<name>.* describes each.',
    ),
)  # fmt: skip

"""The parameters of servers that declare nothing: their keys, their rows, their habits."""

from __future__ import annotations

from seq_harness.settings.parameter import Kind, Parameter

SERVER = (
    Parameter(
        'server_preset', Kind.STRING, '', 'For openpi+ws:// and its kin: the keys that a server '
        'of this data reads, made of own keys of the names that docs/servers.md lists; empty '
        'sends the own keys as they are.', choices=('', 'droid', 'libero', 'aloha'),
    ),
    Parameter(
        'server_keys', Kind.STRING, '', "What each of the server's keys holds, over the preset, "
        'as a JSON object such as {"observation/image": {"from": "front", "camera": {"width": '
        '224, "height": 224, "resize": "pad", "filter": "bilinear"}}, "state": ["arm", '
        '"gripper"]}; null leaves a key out.',
    ),
    Parameter(
        'server_columns', Kind.STRING_ARRAY, (), "The columns of the server's rows, by name and "
        "in its order; empty takes the preset's, else those of the channels, in their order.",
    ),
    Parameter(
        'server_rows_key', Kind.STRING, '', 'Where an answer holds its rows; empty looks for '
        'actions, action or a bare array.',
    ),
    Parameter(
        'server_width', Kind.INTEGER, 0, 'How wide rows are that the server pads, such as 32: '
        'the columns are the first of them, and the rest is dropped. 0 for no padding, where rows '
        'of another width than the columns are refused.', 0, 1024,
    ),
    Parameter(
        'server_keeps_state', Kind.BOOL, True, 'The policy may remember its episode: a connection '
        'that is lost after an answer, or closed because an answer took too long, ends the '
        'episode with policy_state_lost. Set it false only for a policy that reads one '
        'observation and remembers nothing: then the next question goes over another.',
    ),
    Parameter(
        'server_action_space', Kind.STRING, 'joint_position', 'For roboarena+ws://: what the rows '
        'must be; a server that announces another is refused.',
        choices=(
            'joint_position', 'joint_velocity', 'cartesian_position', 'cartesian_velocity',
        ),
    ),
    Parameter(
        'server_first_camera', Kind.INTEGER, 1, 'For roboarena+ws://: the number of the first '
        'exterior camera in its key; some servers count from 0.', 0, 1,
    ),
)  # fmt: skip

"""What a harness says on its topics, as messages of a recording that a test makes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
import json
from typing import Any

import numpy as np
from support.recordings import header, JOINTS, Message, S, STORE

FLOATS = 'std_msgs/msg/Float64MultiArray'
TRAJECTORY = 'trajectory_msgs/msg/JointTrajectory'
STRING = 'std_msgs/msg/String'
DIAGNOSTICS = 'diagnostic_msgs/msg/DiagnosticArray'


def command(log_ns: int, values: Sequence[float], topic: str = '/arm/commands') -> Message:
    """Return a setpoint of a forward controller."""
    layout = STORE.types['std_msgs/msg/MultiArrayLayout'](dim=[], data_offset=0)
    message = STORE.types[FLOATS](layout=layout, data=np.array(values, np.float64))
    return topic, FLOATS, log_ns, message


def trajectory(
    log_ns: int,
    rows: Sequence[Sequence[float]],
    frame_id: str = '',
    topic: str = '/harness/chunk',
    hz: float = 20.0,
    joints: Sequence[str] = JOINTS,
) -> Message:
    """Return a chunk, as a harness shows it on ~/chunk, or a trajectory for a controller."""
    duration = STORE.types['builtin_interfaces/msg/Duration']
    empty = np.zeros(0)
    points = [
        STORE.types['trajectory_msgs/msg/JointTrajectoryPoint'](
            positions=np.array(row, np.float64),
            velocities=empty,
            accelerations=empty,
            effort=empty,
            time_from_start=duration(sec=0, nanosec=round(number * S / hz)),
        )
        for number, row in enumerate(rows)
    ]
    head = header(log_ns)
    head.frame_id = frame_id
    message = STORE.types[TRAJECTORY](header=head, joint_names=list(joints), points=points)
    return topic, TRAJECTORY, log_ns, message


def said(log_ns: int, what: Mapping[str, Any] | str, topic: str = '/harness/episode') -> Message:
    """Return a text, or JSON as on ~/episode."""
    text = what if isinstance(what, str) else json.dumps(what)
    return topic, STRING, log_ns, STORE.types[STRING](data=text)


def diagnosed(log_ns: int, level: int, message: str) -> Message:
    """Return diagnostics of one part of a node."""
    status = STORE.types['diagnostic_msgs/msg/DiagnosticStatus'](
        level=level, name='harness: worker', message=message, hardware_id='', values=[]
    )
    array = STORE.types[DIAGNOSTICS](header=header(log_ns), status=[status])
    return '/diagnostics', DIAGNOSTICS, log_ns, array

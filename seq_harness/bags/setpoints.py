"""The setpoints of a replay: the messages a controller would get, as arrays and as a hash."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping
from dataclasses import dataclass
import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt
from rosbags.typesys import get_typestore, Stores
from seq_harness.messages.setpoints import (
    fill_float64_multi_array,
    fill_joint_trajectory,
    TrajectoryPoint,
)
from seq_harness.outputs import Output, Outputs
from seq_harness.playback.whole import Trajectory
from seq_harness.settings import ChannelSettings

FLOAT64_MULTI_ARRAY = 'float64_multi_array'
STORE = get_typestore(Stores.ROS2_JAZZY)
_TYPES = STORE.types
_ARRAY = 'std_msgs/msg/Float64MultiArray'
_TRAJECTORY = 'trajectory_msgs/msg/JointTrajectory'


@dataclass(frozen=True)
class Setpoints:
    """What one channel's controller was told, in order; N values of J joints."""

    joints: tuple[str, ...]
    t_ns: npt.NDArray[np.int64]
    """When each was sent, in the recording's time, [N]."""
    due_ns: npt.NDArray[np.int64]
    """When each is to hold, [N]: as sent, or later for the points of a trajectory."""
    values: npt.NDArray[np.float64]
    """[N, J], in the unit of the channel: rad, m, or those a second."""

    def __len__(self) -> int:
        return len(self.t_ns)


class _Channel:
    """Keeps the setpoints of one channel as they come."""

    def __init__(self, item: ChannelSettings, period_ns: int) -> None:
        self.item = item
        self._reach_ns = round(item.time_from_start_s * 1e9) or period_ns
        self._t_ns = array('q')
        self._due_ns = array('q')
        self._values = array('d')

    def encoded(self, value: Any) -> tuple[Any, bytes]:
        """Return the value, and the message that carries it, serialised."""
        if self.item.type == FLOAT64_MULTI_ARRAY:
            return value, _serialised(_multi_array(value), _ARRAY)
        message = _trajectory_message()
        points = self._points(value)
        types = (
            _TYPES['trajectory_msgs/msg/JointTrajectoryPoint'],
            _TYPES['builtin_interfaces/msg/Duration'],
        )
        fill_joint_trajectory(message, *types, self.item.joints, points)
        return value, _serialised(message, _TRAJECTORY)

    def keep(self, value: Any, t_ns: int) -> None:
        points = value.points if isinstance(value, Trajectory) else ((t_ns, value),)
        for due_ns, row in points:
            self._t_ns.append(t_ns)
            self._due_ns.append(due_ns)
            self._values.extend(float(number) for number in row)

    def setpoints(self) -> Setpoints:
        joints = self.item.joints
        values = np.array(self._values, np.float64).reshape(-1, len(joints))
        t_ns, due_ns = np.array(self._t_ns, np.int64), np.array(self._due_ns, np.int64)
        return Setpoints(joints, t_ns, due_ns, values)

    def _points(self, value: Any) -> list[TrajectoryPoint]:
        if not isinstance(value, Trajectory):
            return [TrajectoryPoint(tuple(value), self._reach_ns)]
        return [
            TrajectoryPoint(tuple(row), max(0, due_ns - value.sent_ns) + self._reach_ns)
            for due_ns, row in value.points
        ]


class SetpointLog:
    """
    Take the place of the controllers, and keep what they are told.

    The hash is the SHA-256 of every setpoint's channel, instant and serialised message.
    """

    def __init__(
        self, channels: tuple[ChannelSettings, ...], period_ns: int, now_ns: Callable[[], int]
    ) -> None:
        self._channels = {item.name: _Channel(item, period_ns) for item in channels}
        self._now_ns = now_ns
        self._hash = hashlib.sha256()
        self.outputs = Outputs(
            {
                name: Output(channel.encoded, self._publisher(name, channel))
                for name, channel in self._channels.items()
            }
        )

    @property
    def digest(self) -> str:
        """Return the hash so far, in hex."""
        return self._hash.hexdigest()

    def setpoints(self) -> Mapping[str, Setpoints]:
        """Return what was sent so far, by channel."""
        return {name: channel.setpoints() for name, channel in self._channels.items()}

    def _publisher(self, name: str, channel: _Channel) -> Callable[[tuple[Any, bytes]], None]:
        def publish(encoded: tuple[Any, bytes]) -> None:
            value, data = encoded
            t_ns = self._now_ns()
            self._hash.update(b'%s\0%d\0%d\0' % (name.encode(), t_ns, len(data)))
            self._hash.update(data)
            channel.keep(value, t_ns)

        return publish


def _multi_array(value: Any) -> Any:
    layout = _TYPES['std_msgs/msg/MultiArrayLayout'](dim=[], data_offset=0)
    message = _TYPES[_ARRAY](layout=layout, data=np.zeros(0))
    fill_float64_multi_array(message, value)
    return message


def _trajectory_message() -> Any:
    stamp = _TYPES['builtin_interfaces/msg/Time'](sec=0, nanosec=0)
    header = _TYPES['std_msgs/msg/Header'](stamp=stamp, frame_id='')
    return _TYPES[_TRAJECTORY](header=header, joint_names=[], points=[])


def _serialised(message: Any, kind: str) -> bytes:
    return bytes(STORE.serialize_cdr(message, kind))

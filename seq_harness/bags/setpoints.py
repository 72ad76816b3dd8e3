"""The setpoints of a replay: the messages a controller would get, as arrays and as a hash."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping
from dataclasses import dataclass
import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt
from seq_harness.bags.blanks import serialised
from seq_harness.bags.commands import commanding
from seq_harness.outputs import Output, Outputs
from seq_harness.playback.whole import Trajectory
from seq_harness.settings import ChannelSettings


@dataclass(frozen=True)
class Setpoints:
    """What one channel's controller was told, in order; N values of J joints."""

    joints: tuple[str, ...]
    t_ns: npt.NDArray[np.int64]
    """When each was sent, in the recording's time, [N]."""
    due_ns: npt.NDArray[np.int64]
    """When each is to hold, [N]: as sent, or later for the points of a trajectory."""
    values: npt.NDArray[np.float64]
    """[N, J], in the unit of the channel: rad, m, or those a second; poses are [N, 7]."""

    def __len__(self) -> int:
        return len(self.t_ns)


class _Channel:
    """Keeps the setpoints of one channel as they come."""

    def __init__(self, item: ChannelSettings, period_ns: int, now_ns: Callable[[], int]) -> None:
        self._item = item
        self._encode = commanding(item, period_ns, now_ns)
        self._t_ns = array('q')
        self._due_ns = array('q')
        self._values = array('d')

    def encoded(self, value: Any) -> tuple[Any, bytes]:
        """Return the value, and the message that carries it, serialised."""
        return value, serialised(self._encode(value))

    def keep(self, value: Any, t_ns: int) -> None:
        points = value.points if isinstance(value, Trajectory) else ((t_ns, value),)
        for due_ns, row in points:
            self._t_ns.append(t_ns)
            self._due_ns.append(due_ns)
            self._values.extend(float(number) for number in row)

    def setpoints(self) -> Setpoints:
        t_ns, due_ns = np.array(self._t_ns, np.int64), np.array(self._due_ns, np.int64)
        # A pose has seven values, whatever its joints are.
        width = len(self._values) // len(t_ns) if len(t_ns) else len(self._item.joints)
        values = np.array(self._values, np.float64).reshape(len(t_ns), width)
        return Setpoints(self._item.joints, t_ns, due_ns, values)


class SetpointLog:
    """
    Take the place of the controllers, and keep what they are told.

    The hash is the SHA-256 of every setpoint's channel, instant and serialised message.
    """

    def __init__(
        self,
        channels: tuple[ChannelSettings, ...],
        period_ns: int,
        now_ns: Callable[[], int],
        stamp_ns: Callable[[], int] | None = None,
    ) -> None:
        """`stamp_ns` is the clock that stamps messages, if it is not `now_ns` itself."""
        stamp = stamp_ns or now_ns
        self._channels = {item.name: _Channel(item, period_ns, stamp) for item in channels}
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

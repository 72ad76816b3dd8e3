"""The messages of one topic of a recording as numbers over time."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from seq_harness.bags.records import Topic
from seq_harness.bags.report.data import Floats, Lines
from seq_harness.bags.report.splicing import Plan, spliced

JOINT_STATE = 'sensor_msgs/msg/JointState'
FLOATS = 'std_msgs/msg/Float64MultiArray'
TRAJECTORY = 'trajectory_msgs/msg/JointTrajectory'


class Numbers:
    """What one topic said: a row a message, by names where its messages have some."""

    named = True
    """Whether the messages name their values."""

    def __init__(self, topic: Topic) -> None:
        self.topic = topic
        self._columns: dict[str, int] = {}
        self._log_ns = array('q')
        self._places = array('q')  # of each value: its row, and its column
        self._lines = array('q')
        self._values = array('d')

    def __len__(self) -> int:
        return len(self._log_ns)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names that came, in order of their first coming."""
        return tuple(self._columns)

    @property
    def width(self) -> int:
        """Return the most values of one message."""
        return len(self._columns)

    def take(self, message: Any, log_ns: int) -> None:
        """Take in a message."""
        self._put(log_ns, message.name, message.position)

    def lines(self, names: Sequence[str], start_ns: int) -> Lines:
        """Return the values of some names, or of as many columns where none are named."""
        t_s = (np.array(self._log_ns, np.int64) - start_ns) / 1e9
        table = np.full((len(t_s), max(1, len(self._columns))), np.nan)
        table[np.array(self._lines, np.int64), np.array(self._places, np.int64)] = self._values
        columns = [self._columns.get(name, place) for place, name in enumerate(names)]
        held = [place if place < table.shape[1] else 0 for place in columns]
        return Lines(tuple(names), t_s, table[:, held])

    def plans(self, names: Sequence[str], start_ns: int) -> Iterator[tuple[str, Floats, Floats]]:
        """Yield the label, instants and rows of each message that plans ahead; here none does."""
        yield from ()

    def _put(self, log_ns: int, names: Sequence[str], values: Sequence[float]) -> None:
        row = len(self._log_ns)
        self._log_ns.append(log_ns)
        for name, value in zip(names, values, strict=False):
            self._lines.append(row)
            self._places.append(self._columns.setdefault(str(name), len(self._columns)))
            self._values.append(value)


class _Unnamed(Numbers):
    named = False

    def take(self, message: Any, log_ns: int) -> None:
        self._put(log_ns, [f'value {number}' for number in range(len(message.data))], message.data)


class _Trajectories(Numbers):
    """Rows ahead of time, each message in force until the next."""

    def __init__(self, topic: Topic) -> None:
        super().__init__(topic)
        self._plans: list[tuple[int, str, tuple[str, ...], Floats, Floats]] = []

    def take(self, message: Any, log_ns: int) -> None:
        points = [each for each in message.points if len(each.positions)]
        names = tuple(str(name) for name in message.joint_names)
        if not points or any(len(each.positions) != len(names) for each in points):
            return
        self._put(log_ns, names, points[0].positions)
        offsets = [each.time_from_start for each in points]
        after_s = np.array([each.sec + each.nanosec / 1e9 for each in offsets], np.float64)
        values = np.array([each.positions for each in points], np.float64)
        label = str(message.header.frame_id)
        label = f'the chunk of {label}' if label.startswith('step-') else (
            f'trajectory {len(self._plans) + 1}')  # fmt: skip
        self._plans.append((log_ns, label, names, after_s, values))

    def lines(self, names: Sequence[str], start_ns: int) -> Lines:
        held: list[Plan] = [(t_s, values) for _, t_s, values in self.plans(names, start_ns)]
        return spliced(tuple(names), held)

    def plans(self, names: Sequence[str], start_ns: int) -> Iterator[tuple[str, Floats, Floats]]:
        for log_ns, label, joints, after_s, values in self._plans:
            if set(names) <= set(joints):
                columns = [joints.index(name) for name in names]
                yield label, (log_ns - start_ns) / 1e9 + after_s, values[:, columns]


_KINDS: dict[str, type[Numbers]] = {
    JOINT_STATE: Numbers,
    FLOATS: _Unnamed,
    TRAJECTORY: _Trajectories,
}


def numbers_of(topic: Topic) -> Numbers | None:
    """Return what takes in a topic's messages; None for a type that holds no joints."""
    kind = _KINDS.get(topic.type)
    return None if kind is None else kind(topic)

"""A whole chunk becomes one trajectory message."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from seq_harness.playback.whole import Trajectory
from seq_harness.ros import topics
from support.robots import MS, S, settings_of


def test_g40_points_are_reached_their_row_after_it_is_due() -> None:
    settings = settings_of(channels__arm__type='joint_trajectory', channels__arm__horizon='chunk')
    publisher: Any = SimpleNamespace(publish=lambda message: None)
    encode = topics.output(publisher, settings.channels[0], 100 * MS).encode
    rows = [np.array([value, -value]) for value in (0.1, 0.2, 0.3)]
    due = (5 * S - 20 * MS, 5 * S + 80 * MS, 5 * S + 180 * MS)
    message = encode(Trajectory(5 * S, tuple(zip(due, rows, strict=True))))
    times = [
        point.time_from_start.sec * S + point.time_from_start.nanosec for point in message.points
    ]
    assert times == [100 * MS, 180 * MS, 280 * MS]
    assert [list(point.positions) for point in message.points] == [list(row) for row in rows]
    assert list(message.joint_names) == ['j1', 'j2']

"""Whether the robot follows what it is commanded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from seq_harness.playback.kinds import Kinds
from seq_harness.playback.record import Record
from seq_harness.playback.rotations import Vector

PLACE_AND_TURN = ('place', 'turn')


class Tracking:
    """Find a channel that has been too far from its command for too long."""

    def __init__(
        self,
        max_error: Mapping[str, Vector],
        for_ns: int,
        kinds: Kinds | None = None,
        joints: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        """
        Take the bounds by channel, per joint and in its unit; a pose has one of place and turn.

        `for_ns` is how long more is borne; `joints` are the names of a channel's.
        """
        self._max_error = dict(max_error)
        self._joints = dict(joints or {})
        self._for_ns = for_ns
        self._kinds = kinds or Kinds()
        self._since: dict[str, int] = {}

    def fault(self, record: Record, measured: Mapping[str, Vector], t: int) -> str | None:
        """Say which channel does not follow; None when all do."""
        for name, bound in self._max_error.items():
            last = record.last.get(name)
            if last is None or name not in measured:
                self._since.pop(name, None)
                continue
            error = self._kinds[name].distance(measured[name], last.value)
            if (error <= bound).all():
                self._since.pop(name, None)
                continue
            since = self._since.setdefault(name, t)
            if t - since >= self._for_ns:
                at = int(np.argmax(error - bound))
                return (
                    f'{self._named(name, at, error.size)} is {error[at]:.6g} from its command, '
                    f'beyond {bound[at]:.6g} '
                    f'for {(t - since) / 1e9:g} s'
                )
        return None

    def _named(self, channel: str, at: int, size: int) -> str:
        """Return what a distance is of, for people: a joint, or the place or turn of a pose."""
        joints = self._joints.get(channel)
        if joints is None:
            return f'{channel}[{at}]'
        name = joints[at] if len(joints) == size else f'the {PLACE_AND_TURN[at]}'
        return f'{name} of {channel}'

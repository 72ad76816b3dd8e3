"""Whether the robot follows what it is commanded."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from seq_harness.playback.kinds import Kinds
from seq_harness.playback.record import Record
from seq_harness.playback.rotations import Vector


class Tracking:
    """Find a channel that has been too far from its command for too long."""

    def __init__(
        self, max_error: Mapping[str, Vector], for_ns: int, kinds: Kinds | None = None
    ) -> None:
        """`max_error` is per joint, in the channel's unit; `for_ns` how long more is borne."""
        self._max_error = dict(max_error)
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
                    f'{name}[{at}] is {error[at]:.6g} from its command, beyond {bound[at]:.6g} '
                    f'for {(t - since) / 1e9:g} s'
                )
        return None

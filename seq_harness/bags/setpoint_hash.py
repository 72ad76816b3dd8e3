"""What setpoints are compared by, wherever they come from."""

from __future__ import annotations

import hashlib

from seq_harness.bags.record_format import Setpoint


class SetpointHash:
    """The SHA-256 of every setpoint's channel, due instant and message, in their order."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self.count = 0

    @property
    def digest(self) -> str:
        """Return the hash so far, in hex."""
        return self._hash.hexdigest()

    def add(self, setpoint: Setpoint, data: bytes) -> None:
        """Take the next setpoint, and its message in CDR."""
        due = b'none' if setpoint.due_ns is None else b'%d' % setpoint.due_ns
        self._hash.update(b'%s\0%s\0%d\0' % (setpoint.channel.encode(), due, len(data)))
        self._hash.update(data)
        self.count += 1

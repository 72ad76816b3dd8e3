"""What arrives on a websocket: messages are taken at once, and the library reads the rest."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from seq_harness.contract.websocket import (
    BINARY,
    Cut,
    Cutter,
    FIN,
    MOST_CONTROL_BYTES,
    PING,
    PONG,
)


class Inlet:
    """
    Hand whole binary messages to `take`, in the order in which they came, and without a task.

    The library behind `handler` gets what `take` does not want now, pings and pongs, and from the
    first frame on that is none of these, all that comes.
    """

    def __init__(
        self, handler: asyncio.Protocol, most_bytes: int, take: Callable[[bytes], bool]
    ) -> None:
        """`take` tells whether it took a message, which has at most `most_bytes`."""
        self._handler = handler
        self._take = take
        self._cutter = Cutter(most_bytes)
        self._cuts = True
        self._with_library = 0  # messages that it has not returned yet

    def arrived(self, data: bytes) -> None:
        """Take what arrived."""
        if not self._cuts:
            self._handler.data_received(data)
            return
        for frame in self._cutter.cut(data):
            if not (self._cuts and self._is_taken(frame)):
                self._handler.data_received(frame.raw)
        if not self._cuts and (rest := self._cutter.take_rest()):
            self._handler.data_received(rest)

    def returned(self) -> None:
        """Note that the library returned a message."""
        self._with_library = max(0, self._with_library - 1)

    def _is_taken(self, frame: Cut) -> bool:
        if frame.is_whole and frame.first == FIN | BINARY:
            if not self._with_library and self._take(frame.data):
                return True
            self._with_library += 1
        elif not (frame.is_whole and _is_call(frame)):
            self._cuts = False
        return False


def _is_call(frame: Cut) -> bool:
    short = len(frame.raw) <= frame.head_bytes + MOST_CONTROL_BYTES
    return short and frame.first in (FIN | PING, FIN | PONG)

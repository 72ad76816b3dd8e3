"""Messages as the masked frames that a websocket client sends, each made in one copy."""

from __future__ import annotations

from collections.abc import Iterable
import secrets
import struct
from sys import byteorder

import numpy as np
from websockets.frames import Opcode

FIN = 0x80
MASKED = 0x80
MEDIUM, LONG = 126, 127
"""What stands for the length of a frame where that takes two bytes, or eight."""

ROOM = 16
"""Where the data begin in the buffer: the longest head fits before them, and words are whole."""

WORD_BYTES = 8

KEPT_BYTES = 4 << 20
"""The largest buffer that is used again."""


class Framer:
    """
    Make frames of whole binary messages, each with a mask of its own (RFC 6455, 5.2 and 5.3).

    The library's own way copies a message three times more, and what does not fit the processor's
    cache any longer costs an act more than that. A frame lasts until the next one is made.
    """

    def __init__(self) -> None:
        self._buffer = bytearray(1 << 16)

    def frame(self, pieces: Iterable[bytes | memoryview]) -> memoryview:
        """Return the frame whose data are the pieces, one after another."""
        data = [*pieces]
        length = sum(map(len, data))
        buffer = self._of_size(ROOM + length + WORD_BYTES)
        view = memoryview(buffer)
        end = ROOM
        for piece in data:
            begin, end = end, end + len(piece)
            view[begin:end] = piece
        mask = secrets.token_bytes(4)
        words = np.frombuffer(buffer, np.uint64, -(-length // WORD_BYTES), ROOM)
        np.bitwise_xor(words, np.uint64(int.from_bytes(mask * 2, byteorder)), out=words)
        head = _head(length) + mask
        begin = ROOM - len(head)
        view[begin:ROOM] = head
        return view[begin:end]

    def _of_size(self, nbytes: int) -> bytearray:
        if len(self._buffer) >= nbytes:
            return self._buffer
        buffer = bytearray(nbytes)
        if nbytes <= KEPT_BYTES:
            self._buffer = buffer
        return buffer


def _head(length: int) -> bytes:
    first = FIN | Opcode.BINARY
    if length < MEDIUM:
        return struct.pack('!BB', first, MASKED | length)
    if length < 1 << 16:
        return struct.pack('!BBH', first, MASKED | MEDIUM, length)
    return struct.pack('!BBQ', first, MASKED | LONG, length)

"""The frames of a websocket (RFC 6455, 5.2): cut from what comes, and begun."""

from __future__ import annotations

import struct
from typing import NamedTuple

try:
    from websockets.speedups import apply_mask as apply_mask
except ImportError:
    from websockets.utils import apply_mask as apply_mask

HEAD_END = b'\r\n\r\n'
"""What ends the head of a handshake, of the request and of the answer."""

FIN = 0x80
TEXT, BINARY, PING, PONG = 0x1, 0x2, 0x9, 0xA
"""What a frame is, of what we tell apart."""

MOST_CONTROL_BYTES = 125
"""The data of a ping or a pong."""

MASKED = 0x80
MASK_BYTES = 4
MEDIUM, LONG = 126, 127
"""What stands for the length of a frame where that takes two bytes, or eight."""


def head_of(length: int, *, masked: bool) -> bytes:
    """Return how a frame begins that is one binary message of so many bytes; no mask is in it."""
    mark = MASKED if masked else 0
    if length < MEDIUM:
        return struct.pack('!BB', FIN | BINARY, mark | length)
    if length < 1 << 16:
        return struct.pack('!BBH', FIN | BINARY, mark | MEDIUM, length)
    return struct.pack('!BBQ', FIN | BINARY, mark | LONG, length)


class Cut(NamedTuple):
    """One frame as it came."""

    raw: bytes
    head_bytes: int
    is_whole: bool
    """Whether it came to its end; one that is too long does not."""

    @property
    def first(self) -> int:
        """Return the byte that says what the frame is, and whether it ends a message."""
        return self.raw[0]

    @property
    def is_masked(self) -> bool:
        """Tell whether it is masked, as a client's is and a server's is not."""
        return self.raw[1] >= MASKED

    @property
    def data(self) -> bytes:
        """Return what is behind the head, without the mask."""
        raw, behind = self.raw, self.head_bytes
        if raw[1] < MASKED:
            return raw[behind:]
        return apply_mask(memoryview(raw)[behind:], raw[behind - MASK_BYTES : behind])


class Cutter:
    """
    Cut what comes of a peer into its frames, wherever it was parted on its way.

    A frame of more than `most_bytes` is not waited for: what came of it is passed on as it is.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._held = bytearray()  # a frame that is not whole yet
        self._needed = 0  # how many bytes of it make it whole, as far as that is known

    def cut(self, received: bytes) -> list[Cut]:
        """Return the frames that are whole by now, in order."""
        extent = _extent(received) if not self._held else None
        if extent is not None and sum(extent) == len(received) and extent[1] <= self._most_bytes:
            return [Cut(received, extent[0], is_whole=True)]
        self._held += received
        frames = []
        while len(self._held) >= self._needed:
            extent = _extent(self._held)
            if extent is None:
                break
            is_too_long = extent[1] > self._most_bytes
            self._needed = len(self._held) if is_too_long else sum(extent)
            if len(self._held) < self._needed:
                break
            frames.append(Cut(bytes(self._held[: self._needed]), extent[0], not is_too_long))
            del self._held[: self._needed]
            self._needed = 0
        return frames

    def take_rest(self) -> bytes:
        """Let go of a frame that is not whole, and return what came of it."""
        rest = bytes(self._held)
        self._held.clear()
        self._needed = 0
        return rest


def _extent(begun: bytes | bytearray) -> tuple[int, int] | None:
    """Return the bytes of a frame's head and of its data; None before the head is whole."""
    if len(begun) < 2:
        return None
    length = begun[1] & ~MASKED
    head_bytes = 2 if length < MEDIUM else 4 if length == MEDIUM else 10
    masked = MASK_BYTES if begun[1] & MASKED else 0
    if len(begun) < head_bytes + masked:
        return None
    if length >= MEDIUM:
        length = int.from_bytes(begun[2:head_bytes], 'big')
    return head_bytes + masked, length

"""Messages as the masked frames that a websocket client sends (RFC 6455, 5.2 and 5.3)."""

from __future__ import annotations

from collections.abc import Sequence
import os

from seq_harness.contract.websocket import apply_mask, head_of, MASK_BYTES


def frame(pieces: Sequence[bytes | memoryview]) -> tuple[bytes, bytes]:
    """Return the head and the data of the frame whose message the pieces make, masked anew."""
    data, mask = b''.join(pieces), os.urandom(MASK_BYTES)
    return head_of(len(data), masked=True) + mask, apply_mask(data, mask)

"""Messages of the websocket binding: three entries of one map, the number of the request first."""

from __future__ import annotations

from functools import lru_cache

from seq_harness.contract.msgpack import pack
from seq_harness.contract.wire import KEY_BODY, KEY_ID


@lru_cache(maxsize=128)
def around_number(key: str, value: str | int) -> tuple[bytes, bytes]:
    """Return what of a message stands before its number, and between that and its body."""
    whole = pack({KEY_ID: 0, key: value, KEY_BODY: None})
    before = 1 + len(pack(KEY_ID))
    return whole[:before], whole[before + 1 : -1]

"""Bodies of requests, put together from parts that are packed once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

import msgpack  # type: ignore[import-untyped]
from seq_harness.client.posts import Post
from seq_harness.contract import wire
from seq_harness.contract.msgpack import pack
from seq_harness.contract.obs_schedule import Keys
from seq_harness.playback.session import Observation

_packed_key = lru_cache(maxsize=256)(pack)
"""The same few keys stand in every body."""


@lru_cache(maxsize=256)
def _map_head(entries: int) -> bytes:
    head: bytes = msgpack.Packer().pack_map_header(entries)
    return head


def pack_observation(observation: Observation, keys: Keys) -> bytes:
    """
    Pack an observation, or those of `keys` that it has; their values are made here.

    Raises
    ------
    MsgpackError
        A value is of a type that no body carries.
    Exception
        Whatever making a value raises.

    """
    chosen = observation if keys is None else [key for key in keys if key in observation]
    return pack({key: observation[key] for key in chosen})


def map_of(parts: Mapping[str, bytes]) -> bytes:
    """Put a map together from its keys and their packed values."""
    return b''.join(pieces_of(parts))


def pieces_of(parts: Mapping[str, bytes]) -> Iterator[bytes]:
    """Iterate over what, one after another, makes a map of keys and their packed values."""
    yield _map_head(len(parts))
    for key, value in parts.items():
        yield _packed_key(key)
        yield value


def list_of(parts: Iterable[bytes]) -> bytes:
    """Put a list together from its packed items."""
    items = list(parts)
    return b''.join((msgpack.Packer().pack_array_header(len(items)), *items))


def observe_parts(post: Post) -> dict[str, bytes]:
    """Make the body of a post."""
    return {
        wire.KEY_EPISODE_ID: pack(post.episode_id),
        wire.KEY_FRAMES: list_of(
            map_of({wire.KEY_SEQ: pack(seq), wire.KEY_INPUTS: payload})
            for seq, payload in post.frames
        ),
        wire.KEY_SKIPPED: pack(list(post.skipped)),
    }

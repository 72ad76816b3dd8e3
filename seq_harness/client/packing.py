"""Bodies of requests, put together from parts that are packed once."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import msgpack  # type: ignore[import-untyped]
from seq_harness.client.posts import Post
from seq_harness.client.transport import Part, Parts, Pieces
from seq_harness.contract import wire
from seq_harness.contract.msgpack import pack, pack_pieces
from seq_harness.contract.obs_schedule import Keys
from seq_harness.playback.session import Observation

packed_name = lru_cache(maxsize=256)(pack)
"""Pack a text that stands in many bodies: a key, or what an episode is called."""


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
    return b''.join(observation_pieces(observation, keys))


def observation_pieces(observation: Observation, keys: Keys) -> Pieces:
    """
    Pack an observation as `pack_observation` does, in pieces.

    Those of large arrays are the arrays' own memory, which nobody may change until they are sent.

    Raises
    ------
    MsgpackError
        A value is of a type that no body carries.
    Exception
        Whatever making a value raises.

    """
    chosen = [key for key in (observation if keys is None else keys) if key in observation]
    pieces: list[bytes | memoryview] = [_map_head(len(chosen))]
    for key in chosen:
        pieces.append(packed_name(key))
        pieces += pack_pieces(observation[key])
    return tuple(pieces)


def size_of(part: Part) -> int:
    """Return the bytes of a part."""
    return len(part) if isinstance(part, bytes) else sum(map(len, part))


def joined(part: Part) -> bytes:
    """Return a part in one piece."""
    return part if isinstance(part, bytes) else b''.join(part)


def map_of(parts: Parts) -> bytes:
    """Put a map together from its keys and their packed values."""
    return b''.join(pieces_of(parts))


def pieces_of(parts: Parts) -> list[bytes | memoryview]:
    """List what, one after another, makes a map of keys and their packed values."""
    pieces: list[bytes | memoryview] = [_map_head(len(parts))]
    for key, value in parts.items():
        pieces.append(packed_name(key))
        if isinstance(value, bytes):
            pieces.append(value)
        else:
            pieces += value
    return pieces


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

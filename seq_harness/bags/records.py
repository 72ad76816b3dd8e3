"""What a recording is made of: topics, and messages as they crossed the wire."""

from __future__ import annotations

from dataclasses import dataclass

PADDING = (0, 4, 8)
"""Bytes that serialisers of ROS leave behind a message: they reckon its size before they write."""


class BagError(Exception):
    """A recording that cannot be read or written; says where and why."""


@dataclass(frozen=True)
class Offered:
    """The quality of service that a topic was offered with, as far as replay needs it."""

    reliable: bool = True
    latched: bool = False
    """Whether late subscribers were given the last messages (transient local)."""
    depth: int = 10


@dataclass(frozen=True)
class Topic:
    """One topic of a recording."""

    name: str
    type: str
    """Such as `sensor_msgs/msg/JointState`."""
    count: int = 0
    """How many messages it holds, as far as is known."""
    offered: Offered | None = None
    """None when the recording does not say."""


@dataclass(frozen=True)
class Record:
    """One message, still serialised."""

    topic: str
    type: str
    log_ns: int
    """When the recorder took it, in ns of its clock."""
    data: bytes
    """CDR, with its four bytes of header."""

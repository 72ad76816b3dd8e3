"""The messages that controllers would get, of rosbags' own classes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from seq_harness.bags.blanks import blank, message_class
from seq_harness.messages.commands import encoder, Library
from seq_harness.settings import ChannelSettings

ROSBAGS = Library(blank=lambda kind: partial(blank, kind), made_of=message_class)


def commanding(
    item: ChannelSettings, period_ns: int, now_ns: Callable[[], int]
) -> Callable[[Any], Any]:
    """
    Return what makes the message that carries a channel's value, as a node makes it.

    What it returns raises `SetpointRefused` for a value that cannot be sent.
    """
    time = message_class('builtin_interfaces/msg/Time')

    def stamp() -> Any:
        sec, nanosec = divmod(now_ns(), 1_000_000_000)
        return time(sec=sec, nanosec=nanosec)

    return encoder(item, period_ns, ROSBAGS, stamp)

"""Commands become setpoints of the controllers that are there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
import logging
from typing import Any

from seq_harness.playback.session import Commands

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Output:
    """One controller: how a channel's value becomes a message, and where that goes."""

    encode: Callable[[Any], Any]
    publish: Callable[[Any], None]


@dataclass(frozen=True)
class Encoded:
    """The messages of one round, made before any is published."""

    messages: tuple[tuple[Output, Any], ...]


class Outputs:
    """Encode all channels of a round, then publish them; used by the paced thread alone."""

    def __init__(self, outputs: Mapping[str, Output]) -> None:
        self._outputs = outputs
        self.unknown: Counter[str] = Counter()
        """Commands for channels that this robot lacks, by channel: dropped and counted (R45)."""

    def wrapped(self, wrap: Callable[[str, Output], Output]) -> Outputs:
        """Return these outputs, each as `wrap` makes it of its channel's name and of itself."""
        return Outputs({name: wrap(name, output) for name, output in self._outputs.items()})

    def encode(self, commands: Commands) -> Encoded:
        """Make every message; a failure leaves nothing published."""
        made = []
        for channel, value in commands.items():
            output = self._outputs.get(channel)
            if output is None:
                if not self.unknown[channel]:
                    logger.warning('commands for %r are dropped: no such channel here', channel)
                self.unknown[channel] += 1
            else:
                made.append((output, output.encode(value)))
        return Encoded(tuple(made))

    @staticmethod
    def publish(encoded: Encoded) -> None:
        """Send the messages of one round, in the order of the commands."""
        for output, message in encoded.messages:
            output.publish(message)

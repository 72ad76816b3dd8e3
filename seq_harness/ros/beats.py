"""What a harness and its watchdog say to each other, as JSON in std_msgs/String."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
import json
from typing import Any

from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy

HEARTBEAT, STANDING = 'heartbeat', 'watchdog'
"""The topics below the name of the harness: what it says, and what its watchdog says."""

BEAT_QOS = QoSProfile(
    history=HistoryPolicy.KEEP_LAST,
    depth=1,
    reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.VOLATILE,
)


class BeatRefused(ValueError):
    """A beat that cannot be read; says what came."""


@dataclass(frozen=True)
class Watched:
    """A command output that is to be zeroed, with what its messages need."""

    topic: str
    """The full name."""
    type: str
    joints: tuple[str, ...]
    kind: str
    frame: str
    max_effort: float = 0.0
    time_from_start_s: float = 0.0


@dataclass(frozen=True)
class Beat:
    """What a harness says of itself, over and over."""

    instance: str
    """Which run of which process it is."""
    episode: int
    moving: bool
    """Whether its commands may move the robot now, so that silence would let it go on."""
    period_s: float
    """How long a row lasts."""
    channels: tuple[Watched, ...]

    def text(self) -> str:
        """Return it as it crosses the topic."""
        return json.dumps(asdict(self), separators=(',', ':'))

    @classmethod
    def read(cls, text: str) -> Beat:
        """
        Read what `text` wrote.

        Raises
        ------
        BeatRefused
            It is no beat, or of another version.

        """
        try:
            fields = json.loads(text)
            channels = tuple(_watched(item) for item in fields.pop('channels'))
            return cls(**fields, channels=channels)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise BeatRefused(
                f'expected a beat of a harness, got {text[:80]!r}: {error}'
            ) from None


@dataclass(frozen=True)
class Standing:
    """What a watchdog says of itself, over and over."""

    name: str
    """The full name of its node."""
    watches: str
    """The instance of the harness whose channels it can keep at zero; empty for none."""
    holds: str
    """The instance whose channels it keeps at zero; empty for none."""
    episode: int
    """The episode that it ended so."""
    timeout_s: float
    """After how long a silence it acts."""
    endpoints: tuple[str, ...]
    """Its publishers on the command topics, by their identifiers in hex."""

    def text(self) -> str:
        """Return it as it crosses the topic."""
        return json.dumps(asdict(self), separators=(',', ':'))

    @classmethod
    def read(cls, text: str) -> Standing:
        """
        Read what `text` wrote.

        Raises
        ------
        BeatRefused
            It is not what a watchdog says, or of another version.

        """
        try:
            fields = json.loads(text)
            return cls(**{**fields, 'endpoints': tuple(fields['endpoints'])})
        except (ValueError, TypeError, KeyError) as error:
            raise BeatRefused(f'expected a watchdog, got {text[:80]!r}: {error}') from None


def _watched(fields: dict[str, Any]) -> Watched:
    return Watched(**{**fields, 'joints': tuple(fields['joints'])})


def zeros(channel: Watched) -> Sequence[float]:
    """Return the value that stops what a channel moves."""
    return (0.0,) * len(channel.joints)

"""What a harness and its watchdog say to each other, as JSON in std_msgs/String."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
import json
from typing import Annotated, ClassVar, TypeAlias, TypeVar

from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter, ValidationError
from rclpy.exceptions import InvalidTopicNameException
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy
from rclpy.validate_full_topic_name import validate_full_topic_name
from seq_harness.messages.commands import COMMANDS
from seq_harness.settings.output_types import RATES

HEARTBEAT, STANDING = 'heartbeat', 'watchdog'
"""The topics below the name of the harness: what it says, and what its watchdog says."""

BEAT_QOS = QoSProfile(
    history=HistoryPolicy.KEEP_LAST,
    depth=1,
    reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.VOLATILE,
)


T = TypeVar('T')

MOST_BYTES = 1 << 18
"""A longer text is neither a beat nor a watchdog's."""

# What comes may be of another version, or of anybody: what is not known is left, what is wrong
# is refused.
_STRICT = ConfigDict(strict=True, extra='ignore', allow_inf_nan=False)


class BeatRefused(ValueError):
    """A beat that cannot be read; says what came."""


def _topic(name: str) -> str:
    try:
        validate_full_topic_name(name)
    except InvalidTopicNameException:
        raise ValueError(f'expected the full name of a topic, got {name[:80]!r}') from None
    return name


def _command(kind: str) -> str:
    if kind not in COMMANDS:
        raise ValueError(f'expected a type of {", ".join(COMMANDS)}, got {kind[:40]!r}')
    return kind


def _rate(kind: str) -> str:
    if kind not in RATES:
        raise ValueError(f'expected one of {", ".join(RATES)}, got {kind[:40]!r}')
    return kind


Topic: TypeAlias = Annotated[str, AfterValidator(_topic)]
Command: TypeAlias = Annotated[str, AfterValidator(_command)]
Rate: TypeAlias = Annotated[str, AfterValidator(_rate)]
Joints: TypeAlias = Annotated[tuple[str, ...], Field(min_length=1)]
Seconds: TypeAlias = Annotated[float, Field(ge=0.0, le=3600.0)]
Duration: TypeAlias = Annotated[float, Field(gt=0.0, le=3600.0)]


@dataclass(frozen=True)
class Watched:
    """A command output that is to be zeroed, with what its messages need."""

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    topic: Topic
    """The full name."""
    type: Command
    joints: Joints
    kind: Rate
    frame: str
    max_effort: float = 0.0
    time_from_start_s: Seconds = 0.0


@dataclass(frozen=True)
class Beat:
    """What a harness says of itself, over and over."""

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    instance: str
    """Which run of which process it is."""
    episode: int
    moving: bool
    """Whether its commands may move the robot now, so that silence would let it go on."""
    period_s: Duration
    """How long a row lasts."""
    channels: tuple[Watched, ...]
    ends: bool = False
    """Whether it is the last word of a harness that ends in good order."""

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
        return _read(_BEATS, text, 'a beat of a harness')


@dataclass(frozen=True)
class Standing:
    """What a watchdog says of itself, over and over."""

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    name: str
    """The full name of its node."""
    watches: str
    """The instance of the harness whose channels it can keep at zero; empty for none."""
    holds: str
    """The instance whose channels it keeps at zero; empty for none."""
    episode: int
    """The episode that it ended so."""
    timeout_s: Duration
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
        return _read(_STANDINGS, text, 'a watchdog')


_BEATS, _STANDINGS = TypeAdapter(Beat), TypeAdapter(Standing)


def _read(kind: TypeAdapter[T], text: str, expected: str) -> T:
    if len(text) > MOST_BYTES:
        raise BeatRefused(f'expected {expected}, got {len(text)} characters: {text[:40]!r}...')
    try:
        return kind.validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = '.'.join(map(str, first['loc']))
        raise BeatRefused(
            f'expected {expected}, got {text[:80]!r}: {place + ": " if place else ""}'
            f'{first["msg"]}'
        ) from None


def zeros(channel: Watched) -> Sequence[float]:
    """Return the value that stops what a channel moves."""
    return (0.0,) * len(channel.joints)

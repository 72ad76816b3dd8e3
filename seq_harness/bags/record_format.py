"""
What an exact record of a harness holds: an MCAP, one topic and one dataclass for each kind.

The kinds of `KINDS` are JSON with their schemas; setpoints, frames and inputs are beside that
messages of ROS in CDR, so that the tools that read bags show them. Instants named `*_ns` are on
the playback clock unless they say `ros`; an MCAP's own log times are ROS time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

VERSION = 1
"""Of the format; a reader refuses a higher one."""

RECORDED = 'recorded'
"""The playback clock of a record that a replay made."""

RULES = 2
"""
Of playback and the loop; raised whenever the same readings make other setpoints.

A record is replayed exactly by its own rules alone.
"""

PREFIX = 'record/'
"""The topics of what is JSON begin with it."""

SETPOINT_TOPIC = 'setpoint/'
"""Followed by the channel: the message as it was published; its sequence is `Setpoint.number`."""

FRAME_TOPIC = 'frame/'
"""
Followed by an observation key: `sensor_msgs/msg/CompressedImage`, as an act sent it.

Its sequence is the act's number; what was sent raw is a JPEG here.
"""

INPUT_TOPIC = 'input/'
"""
Followed by an input: what a round saw of it; its sequence is `Sample.serial`.

Numbers are `sensor_msgs/msg/JointState`, whose positions they are; images, where all of them are
recorded, are in their own type, as they arrived.
"""


@dataclass(frozen=True)
class Clocks:
    """Both clocks, read together; once a second."""

    t_ns: int
    """The playback clock: steady on a robot."""
    ros_ns: int
    """ROS time."""


@dataclass(frozen=True)
class Begin:
    """What the record is of; its first message."""

    format: int
    clocks: Clocks
    period_ns: int
    """From one row to the next."""
    versions: dict[str, str]
    """Of the package, Python, numpy, and the distribution of ROS."""
    settings: dict[str, Any]
    """All parameters, as they were checked and bounded; `record_values.settings_of` reads them."""
    declaration: dict[str, Any]
    """What the policy declares, as it crosses the worker wire."""
    instruction: str
    images: str
    """What is recorded of images: `none`, `acts` or `all`."""
    playback_clock: str
    """`steady`, `simulated`, or `recorded` in a replay."""
    rules: int = 1
    """By which it was played (`RULES`); the first had no number."""


@dataclass(frozen=True)
class EpisodeChange:
    """A new state of the harness."""

    t_ns: int
    number: int
    """The episode's number, from 1."""
    state: str
    """As the harness names it: `waiting_for_inputs`, `running`, `paused`, `taken_over`, `idle`."""
    reason: str
    """Why the episode ended; empty while it goes on."""
    figures: dict[str, Any]
    """The figures of an episode that ended; empty while it goes on."""


@dataclass(frozen=True)
class Arrived:
    """A message that came, whether or not a round saw it."""

    t_ns: int
    ros_ns: int
    input: str
    topic: str
    sequence: int | None
    """The number that its publisher gave it, if that is known."""
    verdict: str
    """As the inputs name it: `accepted`, `restamped`, `refused`, ..."""
    reason: str


@dataclass(frozen=True)
class Still:
    """Since when the numbers of one publisher have been the same to the bit."""

    topic: str
    names: list[str]
    since_ns: int
    messages: int
    """How many of them have come since then, each with a stamp of its own."""
    steps: dict[str, float]
    """The smallest change that was seen of each; left out of numbers that just changed."""


@dataclass(frozen=True)
class Sample:
    """A value of an input that a round saw first; rounds name it by its serial."""

    serial: int
    """From 1, over all inputs."""
    input: str
    stamp_ros_ns: int
    """The message's stamp, in ROS time."""
    born_ns: int
    """When it was made: its arrival less its age at arrival."""
    value: Any
    """Numbers by name, a word, or None for an image."""
    sha256: str = ''
    """Of an image's bytes as they arrived, in hex; empty for others, and where none is taken."""
    bytes: int = 0
    """How many those are."""
    proven: bool = True
    """False while nothing shows that a clock far from ours runs on."""
    doubt: str = ''
    """What is wrong with its stamps, where they make it older than its arrival."""
    form: str = ''
    """Of an image: its encoding and size."""
    still: list[Still] = field(default_factory=list)
    """Of numbers: for how long those of each publisher have been the same."""


@dataclass(frozen=True)
class Round:
    """
    One round, and all that it read from outside; rounds are numbered from 0 in the whole record.

    A record is replayed by giving the same readings to the same code.
    """

    number: int
    ended: str
    """The reason of the close that this was, in place of a round; empty for a round."""
    woken: list[str]
    """
    What woke the loop since the round before, in order: `answer`, `request`, `input`.

    Empty where its instant came.
    """
    prepared_ns: int | None
    """The instant for which the loop made ready before it; None where it did not."""
    clock_ns: list[int]
    """Every reading of the playback clock, in order; the first is when the round began."""
    snapshots: list[dict[str, int | None]]
    """
    Every look at the inputs, in order: input to serial, as far as it changed since the last look.

    None where the input has no value any more.
    """
    reads: dict[str, list[tuple[int, Any]]]
    """
    What else was read, by what was asked: pairs of the how manyth of all in this round, and what.

    Left out are answers that say nothing is new: no request, nothing visible, no failure.
    """
    resume_ns: int | None
    """When it wanted to be called again; None for a close."""
    asked: int = 0
    """How much else was read, what is left out of `reads` included."""

    @property
    def start_ns(self) -> int:
        """Return when it began."""
        return self.clock_ns[0] if self.clock_ns else 0


@dataclass(frozen=True)
class Ask:
    """A question that a round put to the policy."""

    act: int
    """From 0, over the whole record."""
    round: int
    t_ns: int
    """The instant of the round, which is the step's."""


@dataclass(frozen=True)
class Sent:
    """One value of the observation that an act sent."""

    key: str
    kind: str
    """`text`, `jpeg`, `png`, or the element type of an array, such as `float32`."""
    shape: tuple[int, ...]
    """Of an array; empty otherwise."""
    bytes: int
    sha256: str
    """Of those bytes, in hex."""
    value: Any = None
    """A text, or the numbers of a small array."""


@dataclass(frozen=True)
class Answer:
    """What came of an act; written when it is there, before a round can see it."""

    act: int
    step: int | None
    """The number of the step that was asked about; None where none was sent."""
    request_id: str
    """As the worker wire names the act; empty on other wires."""
    began_ns: int
    """When the inference began to run, and when it was over."""
    ended_ns: int
    sent: list[Sent]
    chunk: dict[str, Any] | None
    """The rows as they came to the player (`record_values.chunk_of`); None where none came."""
    error: dict[str, str] | None
    """The failure in place of rows: `type`, `text`, and `cause` of a refused chunk."""
    handler_ms: float | None = None
    """The worker's own part of the time, where it says so: its queue and the inference."""


@dataclass(frozen=True)
class Setpoint:
    """One message to a controller; its bytes are on `SETPOINT_TOPIC`."""

    number: int
    """From 0, over all channels."""
    round: int
    channel: str
    topic: str
    due_ns: int | None
    """When its row was due; None for what is no row: a stop, a hold, a manual command."""
    sent_ns: int
    """When it had been published."""
    sampled_ns: int | None
    """The instant of the observation that its row answers."""
    values: list[float]
    """The command's numbers; of a trajectory, those of its points in order."""


@dataclass(frozen=True)
class Request:
    """What somebody asked of the loop."""

    t_ns: int
    name: str
    """`start`, `stop`, `withhold`, `hold`, `resume`, `replan`, `restart` or `command`."""
    detail: str
    """The reason of a stop, or the kind of a hold; else empty."""
    accepted: bool
    reason: str
    """Why it was refused."""


@dataclass(frozen=True)
class Notice:
    """What is wrong with an input or an output, or that it is well again."""

    t_ns: int
    name: str
    verdict: str
    reason: str
    """Empty once it is well again."""


@dataclass(frozen=True)
class End:
    """The end of a record that was closed; a killed process leaves none."""

    t_ns: int
    hash: str
    """The SHA-256 of every setpoint's channel, due instant and message, in hex."""
    setpoints: int
    written: dict[str, int]
    """Topic to messages."""
    dropped: dict[str, int]
    """Kind to what could not be written; the hash is of all setpoints only without any here."""


KINDS: Mapping[str, type[Any]] = {
    f'{PREFIX}begin': Begin,
    f'{PREFIX}clocks': Clocks,
    f'{PREFIX}episode': EpisodeChange,
    f'{PREFIX}arrived': Arrived,
    f'{PREFIX}sample': Sample,
    f'{PREFIX}round': Round,
    f'{PREFIX}ask': Ask,
    f'{PREFIX}answer': Answer,
    f'{PREFIX}setpoint': Setpoint,
    f'{PREFIX}request': Request,
    f'{PREFIX}notice': Notice,
    f'{PREFIX}end': End,
}
"""Topic to what its messages are."""

TOPICS: Mapping[type[Any], str] = {kind: topic for topic, kind in KINDS.items()}


@dataclass(frozen=True)
class Payload:
    """A message of ROS in a record: a setpoint, a frame or an input as it arrived."""

    topic: str
    type: str
    sequence: int
    log_ros_ns: int
    data: bytes = field(repr=False)
    """CDR, with its four bytes of header."""

"""What the observation stream takes and gives: its limits, figures, jobs and posts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import NamedTuple

from seq_harness.contract.limits import MAX_STREAM_BYTES, MAX_STREAM_FRAMES
from seq_harness.contract.obs_schedule import Keys
from seq_harness.playback.session import Observation


class WhenBehind(Enum):
    """What becomes of an observation that comes while the upload is behind."""

    WAIT = 'wait'
    """It is not taken: the robot pauses its steps, and nothing is lost."""
    DROP_OLDEST = 'drop_oldest'
    """The oldest one that is not sent is dropped for it, and declared skipped."""


@dataclass(frozen=True)
class StreamLimits:
    """What the robot holds of one episode's observations."""

    unsent_frames: int = 512
    unsent_bytes: int = 32 * 2**20
    references: int = 64
    """Observations that nobody wants, as far as is known; they are held undecoded."""
    post_bytes: int = 8 * 2**20
    """Bytes of the frames of one post, unless a single frame has more."""
    frame_bytes: int = MAX_STREAM_BYTES
    """The largest frame that the worker takes in one message."""
    kept_frames: int = MAX_STREAM_FRAMES
    kept_bytes: int = MAX_STREAM_BYTES
    """What is held for a resend of frames that have landed: as much as a worker keeps."""


@dataclass(frozen=True)
class StreamFigures:
    """What the stream has done in one episode; immutable."""

    posts: int = 0
    posted: int = 0
    """Frames that the worker answered for."""
    posted_bytes: int = 0
    skipped: int = 0
    """Numbers declared as never to be sent."""
    dropped: int = 0
    """Frames given up because the upload was behind."""
    refused: int = 0
    """Frames that the worker refused for good, or that could not be packed."""
    full: int = 0
    """How often an observation was not taken because the stream was full."""
    resent: int = 0
    """Frames queued again, for a worker that lacked them."""
    restarts: int = 0
    """How often the episode began anew on a worker that did not know it."""
    short_of_keys: int = 0
    """Frames that an early ask read after they had been sent with fewer keys."""
    failures: int = 0
    """Posts that were not answered."""
    backlog: int = 0
    """Frames that are not sent yet."""
    backlog_bytes: int = 0


class Tally:
    """Counts what the stream does."""

    def __init__(self) -> None:
        self.figures = StreamFigures()

    def count(self, **more: int) -> None:
        """Add to the figures of these names."""
        now = {name: getattr(self.figures, name) + value for name, value in more.items() if value}
        if now:
            self.figures = replace(self.figures, **now)


@dataclass(frozen=True)
class Job:
    """An observation for the encoder to pack."""

    number: int
    observation: Observation
    keys: Keys


@dataclass(frozen=True)
class Post:
    """One request to the worker's observe method; numbers as the worker counts them."""

    generation: int
    episode_id: str
    frames: tuple[tuple[int, bytes], ...]
    skipped: tuple[int, ...]
    numbers: tuple[int, ...]
    """The frames and the skipped, as the robot counts them."""

    @property
    def nbytes(self) -> int:
        """Return the bytes of its frames."""
        return sum(len(payload) for _, payload in self.frames)


class Question(NamedTuple):
    """How an act names its observation to the worker."""

    generation: int
    episode_id: str
    seq: int
    number: int
    """The same as the robot counts."""


class Resend(Enum):
    """What became of a worker's wish for earlier observations."""

    QUEUED = 'queued'
    """They go out again, and the act depends on them."""
    BEGUN_ANEW = 'begun anew'
    """The worker has forgotten what no act can read any more, and with it the episode."""

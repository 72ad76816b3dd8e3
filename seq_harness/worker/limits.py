"""What a worker allows: how much it keeps, how long it waits."""

from dataclasses import dataclass

from seq_harness.contract.limits import (
    EPISODE_IDLE_S,
    MAX_MESSAGE_BYTES,
    MAX_STREAM_BYTES,
    MAX_STREAM_FRAMES,
    MAX_WORKER_STREAM_BYTES,
    STREAM_WAIT_S,
)


@dataclass(frozen=True)
class Limits:
    """The bounds of one worker; the defaults are the contract's where it names one."""

    stream_frames: int = MAX_STREAM_FRAMES
    """Observations kept for one episode; also the most frames, or skips, of one post."""
    stream_bytes: int = MAX_STREAM_BYTES
    """Bytes of the observations kept for one episode."""
    worker_bytes: int = MAX_WORKER_STREAM_BYTES
    """Bytes of the observations kept over all episodes."""
    stream_wait_s: float = STREAM_WAIT_S
    """The longest an act waits for the observations before it."""
    episode_idle_s: float = EPISODE_IDLE_S
    """An episode without an act for this long is ended."""
    message_bytes: int = MAX_MESSAGE_BYTES
    """The largest message or body that is read."""
    message_values: int = 1 << 18
    """The most values in one body, not counting what lies inside arrays."""
    skipped: int = 1 << 16
    """Numbers declared skipped that one episode may hold."""
    episodes: int = 1024
    """Episodes open at a time."""
    acts: int = 256
    """Acts taken and not yet answered, over all clients."""
    act_bytes: int = MAX_WORKER_STREAM_BYTES
    """Bytes of the bodies of those acts."""
    connections: int = 512
    """Connections that were let in and are open at a time."""
    strangers: int = 256
    """Connections beside those that made no request yet that was let in."""
    stranger_s: float = 10.0
    """How long such a connection may be silent."""
    arriving_bytes: int = 256 << 20
    """Bytes of messages that have begun to arrive, over all connections; twice as much as one
    message may have, where that is more."""
    connection_requests: int = 64
    """Requests of one connection that may be unanswered at a time."""

    @property
    def episode_idle_ns(self) -> int:
        """Return the idle time of an episode in ns."""
        return round(self.episode_idle_s * 1e9)

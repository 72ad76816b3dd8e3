"""The numbers that both sides of the worker wire hold to."""

CONTRACT_VERSION = '0.5.25'
"""The contract these models follow."""

MAX_STREAM_FRAMES = 1024
"""Observations that a worker keeps for one episode."""

MAX_STREAM_BYTES = 64 * 2**20
"""Bytes of those observations, one episode."""

MAX_WORKER_STREAM_BYTES = 2**30
"""Bytes of the observations of all episodes of one worker."""

STREAM_WAIT_S = 10.0
"""The longest an act waits for the observations before it, in seconds."""

MAX_STREAMS = 64
"""Keys that one declaration names."""

MAX_WINDOW = 256
"""Offsets of one key's window."""

MAX_KEY_LENGTH = 128
"""Characters in the key of an observation or of an answer."""

MAX_EPISODE_ID = 256
"""Characters in an episode's id."""

MAX_IO_LENGTH = 4000
"""Characters in the free text that describes inputs and outputs."""

MAX_PARAMS = 32
"""Inference parameters that one policy declares."""

MAX_MESSAGE_BYTES = 64 * 2**20
"""Bytes of one message, unless a side is configured otherwise."""

MAX_DEPTH = 64
"""Levels below the top of a msgpack body."""

MAX_DIMENSIONS = 64
"""Dimensions of an array on the wire."""

MAX_CONTAINERS = 2**18
"""Lists and maps in one msgpack body: each costs 60 to 80 bytes here and may cost one there."""

MAX_VALUES = 2**18
"""Separate values in one body of any length; an array, a text or bytes is one."""

BYTES_A_VALUE = 8
"""A longer body may hold one value for this many of its bytes: each costs as many to refer to."""

EPISODE_IDLE_S = 300
"""Seconds without an act after which a worker ends an episode that does not say."""


def most_values(nbytes: int) -> int:
    """Return how many separate values a body of `nbytes` may hold."""
    return max(MAX_VALUES, nbytes // BYTES_A_VALUE)

"""The parts of a policy's code that a worker can call."""

from enum import IntFlag


class SeqFlags(IntFlag):
    """One bit for each call; the values are those of the wire."""

    WARMUP = 1
    LOAD = 2
    PLAN = 4
    SHUTDOWN = 8
    INFER = 16
    ON_EPISODE = 1024
    SETUP = 4096
    SCORE = 16384
    RESET = 32768
    CHECK = 65536
    OBSERVE = 131072
    STEP = 262144
    SAMPLE = 524288

"""How the C library keeps the memory of camera frames, which only a process of our own may set."""

from __future__ import annotations

import ctypes
import ctypes.util

# glibc's mallopt parameters: camera frames are reused instead of mapped and unmapped each time,
# and in one heap for all threads, for `give_back` can shrink no other.
_MALLOC = ((-3, 268_435_456), (-1, 536_870_912), (-2, 33_554_432), (-8, 1))


def keep_large_blocks() -> bool:
    """Tell malloc to keep blocks of a camera frame's size; return whether the system could."""
    try:
        mallopt = ctypes.CDLL(ctypes.util.find_library('c')).mallopt
    except (OSError, AttributeError):
        return False
    return all(mallopt(parameter, value) == 1 for parameter, value in _MALLOC)


def give_back() -> None:
    """
    Give back to the system what is kept and free; takes some milliseconds.

    Without it the heap stays as large as the most that an episode ever needed at once.
    """
    try:
        trim = ctypes.CDLL(ctypes.util.find_library('c')).malloc_trim
    except (OSError, AttributeError):
        return
    trim(0)

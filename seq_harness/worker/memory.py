"""How the C library keeps the memory of messages, which only a process of our own may set."""

from __future__ import annotations

import ctypes
import ctypes.util

# glibc's M_MMAP_THRESHOLD, M_TRIM_THRESHOLD and M_TOP_PAD, in bytes.
_KEEP = ((-3, 32 << 20), (-1, 64 << 20), (-2, 4 << 20))


def keep_large_blocks() -> bool:
    """
    Tell malloc to use the memory of a message again; return whether the system could.

    By default each message of more than 128 KB is mapped, faulted in page by page, and unmapped,
    which takes longer than all else that a worker does with it.
    """
    try:
        mallopt = ctypes.CDLL(ctypes.util.find_library('c')).mallopt
    except (OSError, AttributeError):
        return False
    return all(mallopt(parameter, value) == 1 for parameter, value in _KEEP)

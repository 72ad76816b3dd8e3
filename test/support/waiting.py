"""Waiting for another process, with a deadline."""

from __future__ import annotations

from collections.abc import Callable
import os
from pathlib import Path
import threading
import time

PATIENCE_S = 60.0
"""How long a test waits for what must come: it ends a hang, and judges no speed."""

AT_ONCE_S = 10.0
"""Within it comes, on a busy machine too, what must not wait for something that takes longer."""


def wait_for(condition: Callable[[], bool], within_s: float, what: str) -> None:
    """Return once `condition` holds; fail, naming what was waited for, after `within_s`."""
    end = time.monotonic() + within_s
    never = threading.Event()
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f'{what} did not come within {within_s:g} s')
        never.wait(0.01)


def socket_inodes(pid: int) -> set[str]:
    """Return the inodes of the sockets that a process holds."""
    links = [os.readlink(path) for path in Path(f'/proc/{pid}/fd').iterdir()]
    return {link[len('socket:[') : -1] for link in links if link.startswith('socket:[')}

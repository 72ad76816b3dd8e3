"""Waiting for another process, with a deadline."""

from __future__ import annotations

from collections.abc import Callable
import os
from pathlib import Path
import socket
import threading
import time


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


def free_port() -> int:
    """Return a TCP port of the loopback address that nobody listens on."""
    with socket.socket() as found:
        found.bind(('127.0.0.1', 0))
        port: int = found.getsockname()[1]
        return port

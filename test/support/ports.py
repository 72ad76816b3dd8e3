"""TCP ports that nobody else on this machine takes, not even between a server and the next."""

from __future__ import annotations

import fcntl
from functools import cache
import itertools
import os
from pathlib import Path
import socket
import tempfile

BLOCKS, BLOCK = 80, 100
"""How many processes may have ports at once, and how many each has."""


def free_port() -> int:
    """
    Return a port of the loopback address that nobody listens on.

    It is one of a block that this process has for its life. None is one that the system gives to
    whoever names none, so that no connection has it either.
    """
    ports, turns = _own_ports()
    for _ in range(BLOCK):
        port = ports[next(turns) % BLOCK]
        if _is_free(port):
            return port
    raise RuntimeError(f'expected a free port in {ports}, found all in use')


@cache
def _own_ports() -> tuple[range, itertools.count[int]]:
    """Reserve a block, by a lock that is kept until the process ends."""
    first_given = int(Path('/proc/sys/net/ipv4/ip_local_port_range').read_text().split()[0])
    folder = Path(tempfile.gettempdir()) / f'test_ports-{os.getuid()}'
    folder.mkdir(exist_ok=True)
    for attempt in range(BLOCKS):
        block = (os.getpid() + attempt) % BLOCKS
        lock = os.open(folder / str(block), os.O_CREAT | os.O_WRONLY)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            continue
        first = first_given - (block + 1) * BLOCK
        return range(first, first + BLOCK), itertools.count()
    raise RuntimeError(f'expected ports for one of {BLOCKS} processes, found all in use')


def _is_free(port: int) -> bool:
    with socket.socket() as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind(('127.0.0.1', port))
        except OSError:
            return False
    return True

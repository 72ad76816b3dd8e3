"""ROS domains that nobody else on this machine has."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
import fcntl
import os
from pathlib import Path
import re
import tempfile

DOMAINS = 101
"""Above it, the ports of a domain meet those that Linux gives to outgoing connections."""


@contextmanager
def reserved_domain() -> Iterator[int]:
    """
    Reserve a domain from 1 to 101 until the context ends.

    The scripts reserve theirs by a lock on the same files.
    """
    folder = Path(tempfile.gettempdir()) / f'ros_domains-{os.getuid()}'
    folder.mkdir(exist_ok=True)
    for attempt in range(DOMAINS):
        domain = (os.getpid() + attempt) % DOMAINS + 1
        with (folder / str(domain)).open('w') as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            if domain not in _domains_with_ports():
                yield domain
                return
    raise RuntimeError(f'expected a free ROS domain from 1 to {DOMAINS}, found all in use')


def _domains_with_ports() -> set[int]:
    """List the domains with a participant: RTPS counts their ports from 7400 + 250 * domain."""
    ports = (
        re.fullmatch(r'fast(?:rtps|dds)_port(\d+)', path.name)
        for path in Path('/dev/shm').glob('fast*_port*')
    )
    return {(int(port[1]) - 7400) // 250 for port in ports if port}

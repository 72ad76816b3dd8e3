"""The processes that tests start, found by a variable that they inherit."""

from __future__ import annotations

from collections.abc import Iterator
import os
from pathlib import Path
import select
import signal
import time


class Leftovers:
    """Processes that carry a variable in their environment, whatever their parent or group."""

    def __init__(self, mark: str) -> None:
        self.mark = mark

    def end(self, patience_s: float) -> list[str]:
        """
        Wait for them to end; kill those that do not.

        Returns the command lines of the killed.
        """
        deadline = time.monotonic() + patience_s
        killed = []
        for pid in self._running():
            command = _read(pid, 'cmdline').replace(b'\0', b' ').decode(errors='replace')
            if not _ends(pid, deadline):
                os.kill(pid, signal.SIGKILL)
                killed.append(f'{pid} {command.strip()}')
        return killed

    def _running(self) -> Iterator[int]:
        """List them, without this process."""
        assignment = f'{self.mark}=1'.encode()
        for folder in Path('/proc').glob('[0-9]*'):
            pid = int(folder.name)
            if pid != os.getpid() and assignment in _read(pid, 'environ').split(b'\0'):
                yield pid


def _read(pid: int, name: str) -> bytes:
    """Read one of a process's files; a process that is gone has none."""
    try:
        return Path(f'/proc/{pid}/{name}').read_bytes()
    except OSError:
        return b''


def _ends(pid: int, deadline: float) -> bool:
    """Wait for a process to end, until the deadline."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        poller = select.poll()
        poller.register(handle, select.POLLIN)
        return bool(poller.poll(max(0.0, deadline - time.monotonic()) * 1000))
    finally:
        os.close(handle)

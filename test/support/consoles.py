"""Commands of this package on consoles that nobody reads, and in sessions that end."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
import fcntl
import json
import os
from pathlib import Path
import select
import signal
import subprocess
import sys
import time
from types import TracebackType

from seq_harness.cli.children import Children

PIPE_BYTES = 4096
NODES = ('harness', 'watchdog')
"""What is started on the console; all else writes to a log."""

# Starts what it is told to, one command a line; on a terminal of its own, or with SIGHUP ignored.
_LEADER = """
import fcntl, json, os, signal, subprocess, sys, termios
if sys.argv[1] != 'launch':
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
if sys.argv[1] == 'nohup':
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
for line in os.fdopen(int(sys.argv[2])):
    os.write(int(sys.argv[3]), b'%d\\n' % subprocess.Popen(json.loads(line)).pid)
"""


class FullPipe:
    """A pipe of 4 KiB that is full, and that nobody reads before `read`."""

    def __init__(self) -> None:
        self._read, self.write = os.pipe()
        fcntl.fcntl(self.write, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        os.write(self.write, b'.' * PIPE_BYTES)

    def __enter__(self) -> FullPipe:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._read)
        os.close(self.write)

    def read(self, until: str, within_s: float) -> str:
        """Read until a text has come."""
        found, end = b'', time.monotonic() + within_s
        while until.encode() not in found:
            ready, _, _ = select.select([self._read], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                raise AssertionError(f'{until!r} did not come within {within_s:g} s')
            found += os.read(self._read, 65536)
        return found.decode()


class OnConsole(Children):
    """Children of which the nodes write to a descriptor."""

    def __init__(self, logs: Path, console: int) -> None:
        super().__init__(logs)
        self._console = Path(f'/proc/self/fd/{console}')

    def log(self, name: str) -> Path:
        return self._console if name in NODES else super().log(name)

    def tail(self, name: str) -> str:
        return '' if name in NODES else super().tail(name)


class Session(Children):
    """
    Children of which the nodes are those of another process: of a `shell` on a terminal.

    With `nohup` that has SIGHUP ignored; a `launch` has no terminal.
    """

    def __init__(self, logs: Path, leader: str = 'shell') -> None:
        super().__init__(logs)
        self._pidfds: dict[str, tuple[int, int]] = {}
        self._terminal, theirs = os.openpty()
        commands, self._commands = os.pipe()
        self._pids, pids = os.pipe()
        self._leader = subprocess.Popen(
            [sys.executable, '-c', _LEADER, leader, str(commands), str(pids)],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            pass_fds=[commands, pids],
            start_new_session=True,
        )
        for end in (theirs, commands, pids):
            os.close(end)

    def __enter__(self) -> Session:
        return self

    def start(self, name: str, command: Sequence[str]) -> None:
        if name not in NODES:
            super().start(name, command)
            return
        line = json.dumps([sys.executable, '-m', 'seq_harness.cli.main', *command]) + '\n'
        os.write(self._commands, line.encode())
        pid = int(os.read(self._pids, 16))
        self._pidfds[name] = pid, os.pidfd_open(pid)

    def pid(self, name: str) -> int:
        return self._pidfds[name][0] if name in NODES else super().pid(name)

    def ended(self, name: str) -> int | None:
        """Return 0 for a node that ended, whatever its status: nobody here is its parent."""
        if name not in NODES:
            return super().ended(name)
        ended, _, _ = select.select([self._pidfds[name][1]], [], [], 0)
        return 0 if ended else None

    def tail(self, name: str) -> str:
        return '' if name in NODES else super().tail(name)

    def hang_up(self) -> float:
        """Close the terminal, as a window or an ssh link that goes does; return when."""
        os.close(self._terminal)
        self._terminal = -1
        return time.monotonic()

    def kill_leader(self) -> float:
        """Kill the process that started the nodes; return when."""
        self._leader.kill()
        self._leader.wait()
        return time.monotonic()

    def end(self) -> dict[str, int]:
        for pid, pidfd in self._pidfds.values():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            select.select([pidfd], [], [])
            os.close(pidfd)
        self._pidfds = {}
        self._leader.kill()
        self._leader.wait()
        for end in (self._terminal, self._commands, self._pids):
            with suppress(OSError):
                os.close(end)
        return super().end()

"""The standard streams of a process that must never wait for whoever reads them."""

from __future__ import annotations

import atexit
from contextlib import suppress
import fcntl
import os
from pathlib import Path
import subprocess
import sys

from seq_harness.ros import console_writer
from seq_harness.ros.console_writer import COUNT_BYTES, LAST_S

PIPE_BYTES = 1 << 20
"""What a burst may hold before the writer reads it."""

ENDS_WITHIN_S = 0.1
"""How much longer than the last lines the writer takes to end."""


class Console:
    """
    Lead what this process prints, the middleware too, to a writer of its own.

    A full pipe, a stopped terminal or a dead one holds up the writer alone (G49). Of the streams
    that were inherited nothing is changed, as others share them.
    """

    def __init__(self) -> None:
        """Take the streams over; where no writer can be started they stay as they are."""
        _open_closed()
        self._given: dict[int, int] = {}  # each stream as it was
        self._writer: subprocess.Popen[bytes] | None = None
        self._count = os.memfd_create('lost lines')
        for stream in (sys.stdout, sys.stderr):
            _flush(stream)
        different = _different()
        pipes = {fd: os.pipe() for fd in different}
        try:
            self._writer = subprocess.Popen(
                _command(self._count, {read: fd for fd, (read, _) in pipes.items()}),
                stdin=subprocess.DEVNULL,
                pass_fds=[self._count, *(read for read, _ in pipes.values())],
                # A terminal's signals, and its end, are for others.
                start_new_session=True,
            )
        except OSError as error:
            print(f'the console is written to directly: {error}', file=sys.stderr)
        else:
            if os.isatty(2):
                # What colours its lines sees a pipe from now on.
                os.environ.setdefault('RCUTILS_COLORIZED_OUTPUT', '1')
            for fd, alike in different.items():
                self._lead(alike, pipes[fd][1])
            # A traceback that ends the process comes before that.
            atexit.register(self.close)
        finally:
            for ends in pipes.values():
                for end in ends:
                    os.close(end)

    @property
    def lost(self) -> int:
        """How many lines nobody read."""
        return int.from_bytes(os.pread(self._count, COUNT_BYTES, 0), 'little')

    def close(self) -> None:
        """Wait for the last lines, `LAST_S` at most, and give the streams back; at exit too."""
        if self._writer is None:
            return
        for stream in (sys.stdout, sys.stderr):
            _flush(stream)
        try:
            nothing = os.open(os.devnull, os.O_WRONLY)
        except OSError:
            # No descriptor is left: the end of the process closes the pipes all the same.
            return
        for fd in self._given:
            os.dup2(nothing, fd)
        os.close(nothing)
        with suppress(subprocess.TimeoutExpired):
            self._writer.wait(LAST_S + ENDS_WITHIN_S)
        # One that took not even these would hold up whoever prints next.
        takes, self._writer = self._writer.poll() == 0, None
        for fd, given in self._given.items():
            if takes:
                os.dup2(given, fd)
            os.close(given)
        self._given = {}

    def _lead(self, streams: list[int], pipe: int) -> None:
        """Let `streams` end in a pipe that loses what does not fit, and makes nobody wait."""
        os.set_blocking(pipe, False)
        with suppress(OSError):
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        for fd in streams:
            self._given[fd] = os.dup(fd)
            os.dup2(pipe, fd)


def _open_closed() -> None:
    """Let nothing else become a standard stream that was closed: lines would go there."""
    for fd in (0, 1, 2):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def _different() -> dict[int, list[int]]:
    """Group the streams by where they lead, so that the order of their lines stays."""
    found: dict[tuple[int, int], list[int]] = {}
    for fd in (1, 2):
        status = os.fstat(fd)
        found.setdefault((status.st_dev, status.st_ino), []).append(fd)
    return {alike[0]: alike for alike in found.values()}


def _command(count: int, pipes: dict[int, int]) -> list[str]:
    program = str(Path(console_writer.__file__))
    pairs = [f'{read}:{fd}' for read, fd in pipes.items()]
    # It needs no package, so it starts at once.
    return [sys.executable, '-I', '-S', program, str(count), *pairs]


def _flush(stream: object) -> None:
    with suppress(AttributeError, OSError, ValueError):
        stream.flush()  # type: ignore[attr-defined]

"""Consoles of a process that go wrong: one that nobody reads, and one that is gone."""

from __future__ import annotations

from contextlib import suppress
import fcntl
import os
from pathlib import Path
import select
import termios
import threading
from typing import Any


class Console:
    """A pipe, or a terminal, that is read into a file until it is blocked or hung up."""

    def __init__(self, log: Path, terminal: bool = False) -> None:
        """Open it; a `terminal` becomes that of the process that is started with `options`."""
        self._terminal = terminal
        self._log = log
        self._near, self._far = os.openpty() if terminal else os.pipe()
        self._pausing = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    @property
    def options(self) -> dict[str, Any]:
        """Give the options of Popen."""
        given: dict[str, Any] = {'stdout': self._far, 'stderr': self._far}
        if not self._terminal:
            return given

        def take_terminal() -> None:
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        more = {'stdin': self._far, 'start_new_session': True, 'preexec_fn': take_terminal}
        return {**given, **more}

    def block(self) -> None:
        """Read no more, and leave no room for a byte."""
        self._pausing.set()
        self._thread.join()
        # Another description of the same end, so that the process's own still blocks.
        path = os.ttyname(self._far) if self._terminal else f'/proc/self/fd/{self._far}'
        filler = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)
        with suppress(BlockingIOError):
            for size in (4096, 1):
                with suppress(BlockingIOError):
                    while True:
                        os.write(filler, b'.' * size)
        os.close(filler)

    def hang_up(self) -> None:
        """Be gone, as a terminal whose window is closed, or a reader that ended."""
        self._pausing.set()
        self._thread.join()
        for end in (self._far, self._near):
            os.close(end)

    def _read(self) -> None:
        with self._log.open('ab', buffering=0) as log, suppress(OSError):
            while not self._pausing.is_set():
                if select.select([self._near], [], [], 0.05)[0]:
                    log.write(os.read(self._near, 1 << 16))

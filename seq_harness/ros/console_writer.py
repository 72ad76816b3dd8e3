"""
Write to the streams of a console what another process prints, which never waits for it.

Run as a program of its own, as `console.py` does: console_writer.py COUNT READ:WRITE ..., each a
descriptor. It ends with what it reads from, however the process that prints ends: with 0 once all
is written, and with 1 where the console takes no more for `LAST_S`.
"""

from __future__ import annotations

from collections import deque
import os
import select
import signal
import sys
import threading
import time

KEPT_BYTES = 1 << 20
"""How much waits for a console that takes nothing; then the oldest is lost."""

LAST_S = 0.8
"""How long the last lines may take once the process that prints has ended."""

READ_BYTES, COUNT_BYTES = 65536, 8


class Lost:
    """Lines that no console took, counted where the process that prints can read it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = threading.Lock()
        self._lines = 0  # under _lock

    def add(self, lines: int) -> None:
        """Count more of them; from any thread."""
        with self._lock:
            self._lines += lines
            os.pwrite(self._descriptor, self._lines.to_bytes(COUNT_BYTES, 'little'), 0)


class Stream:
    """One stream of the console: `put` never waits, and a thread of its own writes."""

    def __init__(self, descriptor: int, lost: Lost) -> None:
        self._descriptor = descriptor
        self._lost = lost
        self._changed = threading.Condition()
        self._waiting: deque[bytes] = deque()  # under _changed
        self._bytes = 0  # likewise: how much waits
        self._unsaid = 0  # likewise: lost lines that the console was not told of
        self._writes = False  # likewise
        threading.Thread(target=self._run, daemon=True).start()

    def put(self, text: bytes) -> None:
        """Write `text` when the console takes it; the oldest is lost where too much waits."""
        with self._changed:
            self._waiting.append(text)
            self._bytes += len(text)
            while self._bytes > KEPT_BYTES:
                self._lose(self._waiting.popleft())
            self._changed.notify_all()

    def drained(self, until: float) -> bool:
        """Wait until all is written, but for no longer; tell whether it is."""
        with self._changed:
            return self._changed.wait_for(
                lambda: not self._waiting and not self._writes, until - time.monotonic()
            )

    def _run(self) -> None:
        line_end = b''  # what a line that was begun lacks
        while True:
            with self._changed:
                self._writes = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._waiting)
                text, unsaid = self._waiting.popleft(), self._unsaid
                self._bytes -= len(text)
                self._writes, self._unsaid = True, 0
            said = line_end + b'[console] %d lines were lost here: nobody read them\n' % unsaid
            try:
                self._write(said + text if unsaid else text)
                line_end = b'' if text.endswith(b'\n') else b'\n'
            except OSError:
                # It may be gone for ever, or take the next line.
                with self._changed:
                    self._bytes += len(text)
                    self._unsaid += unsaid
                    self._lose(text)

    def _lose(self, text: bytes) -> None:
        lines = text.count(b'\n')
        self._bytes -= len(text)
        self._unsaid += lines
        self._lost.add(lines)

    def _write(self, text: bytes) -> None:
        while text:
            try:
                text = text[os.write(self._descriptor, text) :]
            except BlockingIOError:
                # Others share this descriptor, and set it so.
                select.select([], [self._descriptor], [])


def main(arguments: list[str]) -> int:
    """Copy each stream until its end."""
    # Only the end of the process that prints ends this one.
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    count, *pairs = arguments
    lost = Lost(int(count))
    streams = {int(read): Stream(int(write), lost) for read, _, write in map(_parted, pairs)}
    ready = select.poll()
    for read in streams:
        ready.register(read, select.POLLIN)
    going = set(streams)
    while going:
        for read, _ in ready.poll():
            text = os.read(read, READ_BYTES)
            if text:
                streams[read].put(text)
            else:
                ready.unregister(read)
                going.discard(read)
    until = time.monotonic() + LAST_S
    return 0 if all(stream.drained(until) for stream in streams.values()) else 1


def _parted(pair: str) -> tuple[str, str, str]:
    return pair.partition(':')


if __name__ == '__main__':
    # A thread that waits for its console keeps nobody.
    os._exit(main(sys.argv[1:]))

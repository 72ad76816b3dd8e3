"""The act of an episode that goes on, and the end of the episode around it."""

from __future__ import annotations

from collections.abc import Callable
import threading

from seq_harness.client.cancel import Cancel
from seq_harness.playback.uplink import Retired


class Running:
    """Know the one act that goes on, and whether the episode was closed; for any thread."""

    def __init__(self, let_go: Callable[[], None] = lambda: None) -> None:
        """`let_go` is called once: when the episode is closed, and no act is inside any more."""
        self._let_go = let_go
        self._lock = threading.Lock()  # held for a few assignments
        self._act: Cancel | None = None  # under _lock
        self._closed = False  # under _lock

    @property
    def closed(self) -> bool:
        """Tell whether the episode was closed."""
        with self._lock:
            return self._closed

    def act(self) -> _ActBlock:
        """
        Run an act within the block; what it gives is set when the act is given up.

        Raises
        ------
        Retired
            The episode is closed.

        """
        return _ActBlock(self)

    def retire(self) -> None:
        """Give up the act that goes on, if one does (R56)."""
        with self._lock:
            act = self._act
        if act is not None:
            act.set()

    def close(self) -> None:
        """Let no further act begin, and give up the one that goes on."""
        with self._lock:
            is_first, self._closed = not self._closed, True
            act = self._act
        if act is not None:
            act.set()
        elif is_first:
            self._let_go()

    def _begin(self) -> Cancel:
        with self._lock:
            if self._closed:
                raise Retired('the episode is closed')
            self._act = cancel = Cancel()
        return cancel

    def _end(self) -> None:
        with self._lock:
            self._act = None
            is_last = self._closed
        if is_last:
            self._let_go()


class _ActBlock:
    """The block inside which an act runs."""

    __slots__ = ('_running',)

    def __init__(self, running: Running) -> None:
        self._running = running

    def __enter__(self) -> Cancel:
        return self._running._begin()

    def __exit__(self, *raised: object) -> None:
        self._running._end()

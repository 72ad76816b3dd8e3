"""One request to give up, seen by whoever waits: on an event, a connection or a condition."""

from __future__ import annotations

from collections.abc import Callable
import threading


class Cancel:
    """Set once, from any thread; wakes every wait that it guards at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # held for a few assignments
        self._is_set = False  # written under _lock
        self._guards: dict[_Calling, None] = {}  # under _lock

    def set(self) -> None:
        """Give up: wake all waits, and call what was registered, once each."""
        with self._lock:
            guards = [] if self._is_set else [*self._guards]
            self._is_set = True
        for guard in guards:
            guard.callback()

    def is_set(self) -> bool:
        """Tell whether it was set."""
        return self._is_set

    def wait(self, seconds: float) -> bool:
        """Sleep for `seconds` or until it is set; tell whether it is."""
        woken = threading.Event()
        with self.calling(woken.set):
            return woken.wait(max(0.0, seconds))

    def calling(self, callback: Callable[[], None]) -> _Calling:
        """Call `callback` from the thread that sets it, if that happens inside the block."""
        return _Calling(self, callback)


class _Calling:
    """The block inside which a callback is called."""

    __slots__ = ('_cancel', 'callback')

    def __init__(self, cancel: Cancel, callback: Callable[[], None]) -> None:
        self._cancel = cancel
        self.callback = callback

    def __enter__(self) -> None:
        cancel = self._cancel
        with cancel._lock:
            cancel._guards[self] = None
            was_set = cancel._is_set
        if was_set:
            self.callback()

    def __exit__(self, *raised: object) -> None:
        with self._cancel._lock:
            del self._cancel._guards[self]

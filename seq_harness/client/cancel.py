"""One request to give up, seen by whoever waits: on an event, a connection or a condition."""

from __future__ import annotations

from collections.abc import Callable
import threading


class Cancel:
    """Set once, from any thread; wakes every wait that it guards at once."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._lock = threading.Lock()  # held for a few assignments
        self._callbacks: dict[int, Callable[[], None]] = {}  # under _lock
        self._next_key = 0  # under _lock

    def set(self) -> None:
        """Give up: wake all waits, and call what was registered, once each."""
        with self._lock:
            callbacks = list(self._callbacks.values()) if not self._event.is_set() else []
            self._event.set()
        for callback in callbacks:
            callback()

    def is_set(self) -> bool:
        """Tell whether it was set."""
        return self._event.is_set()

    def wait(self, seconds: float) -> bool:
        """Sleep for `seconds` or until it is set; tell whether it is."""
        return self._event.wait(max(0.0, seconds))

    def calling(self, callback: Callable[[], None]) -> _Calling:
        """Call `callback` from the thread that sets it, if that happens inside the block."""
        return _Calling(self, callback)

    def _register(self, callback: Callable[[], None]) -> int:
        with self._lock:
            self._next_key += 1
            key = self._next_key
            self._callbacks[key] = callback
            was_set = self._event.is_set()
        if was_set:
            callback()
        return key

    def _forget(self, key: int) -> None:
        with self._lock:
            del self._callbacks[key]


class _Calling:
    """The block inside which a callback is called."""

    __slots__ = ('_callback', '_cancel', '_key')

    def __init__(self, cancel: Cancel, callback: Callable[[], None]) -> None:
        self._cancel = cancel
        self._callback = callback

    def __enter__(self) -> None:
        self._key = self._cancel._register(self._callback)

    def __exit__(self, *raised: object) -> None:
        self._cancel._forget(self._key)

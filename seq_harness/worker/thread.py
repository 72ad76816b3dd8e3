"""The one thread that runs the policy's code."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
import queue
import threading
from typing import Any, TypeVar

T = TypeVar('T')


class PolicyThread:
    """
    Run calls one after another, in the order they came, on one thread of their own.

    The thread is a daemon: a call that never returns does not keep the process alive.
    """

    def __init__(self) -> None:
        self._calls: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name='policy', daemon=True)
        self._thread.start()

    def submit(self, call: Callable[[], T]) -> Future[T]:
        """Queue `call`; the future can be cancelled until it starts."""
        future: Future[T] = Future()
        self._calls.put(lambda: _settle(future, call))
        return future

    def close(self, timeout_s: float) -> bool:
        """Stop after what is queued; tell whether the thread ended within `timeout_s`."""
        self._calls.put(None)
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while (call := self._calls.get()) is not None:
            call()
            del call


def _settle(future: Future[Any], call: Callable[[], Any]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = call()
    except BaseException as error:
        future.set_exception(error)
    else:
        future.set_result(result)

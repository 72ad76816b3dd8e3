"""The one thread that runs the policy's code."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
import queue
import threading
from typing import Any, TypeVar

T = TypeVar('T')


class Job:
    """One call that waits for the policy's thread, runs there, and tells how it went."""

    def __init__(self, call: Callable[[], Any], done: Callable[[Any], None]) -> None:
        self._call: Callable[[], Any] | None = call
        self._done = done
        self._lock = threading.Lock()  # held for an assignment
        self._open = True  # under _lock: neither begun nor cancelled

    def cancel(self) -> bool:
        """Give the call up unless it has begun; tell whether it never runs."""
        return self._claim()

    def run(self) -> None:
        """Run the call, unless it was given up."""
        call, self._call = self._call, None
        if call is not None and self._claim():
            self._done(call())

    def _claim(self) -> bool:
        with self._lock:
            was_open, self._open = self._open, False
        return was_open


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

    def start(self, call: Callable[[], T], done: Callable[[T], None]) -> Job:
        """
        Queue `call`, which raises nothing; `done` takes its outcome, on this thread.

        It costs an act half of what a future does.
        """
        job = Job(call, done)
        self._calls.put(job.run)
        return job

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

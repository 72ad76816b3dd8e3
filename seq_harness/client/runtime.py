"""Where inferences run: one thread, calls in order, answers kept for whoever started them."""

from __future__ import annotations

from collections.abc import Callable
import contextvars
import logging
import queue
import threading
import time
from traceback import TracebackException
from types import TracebackType
from typing import Any, Generic, TypeVar

from seq_harness.playback.answer import Answer, NotAnswered
from seq_harness.playback.uplink import Retired

T = TypeVar('T')

CLOSE_WITHIN_S = 5.0
"""How long closing waits for calls that are still running, unless told otherwise (R57)."""

MAX_UNREAD = 16
"""Failures that wait for a reader; of more, the oldest reaches the log at once."""

log = logging.getLogger(__name__)


class RuntimeClosed(RuntimeError):
    """The runtime is closed: the call was never run, or may not be started."""


class Runtime:
    """
    Run calls one after another on a thread of its own (R61, R62, R63, R66).

    `start` and `retire` return at once and may be called from any thread. Use it as a context
    manager, or call `close`, which is where failures that nobody read reach the log (R38).
    """

    def __init__(self, name: str = 'runtime', close_within_s: float = CLOSE_WITHIN_S) -> None:
        self._name = name
        self._close_within_s = close_within_s
        self._lock = threading.Lock()  # held for a few assignments, never during a call
        self._closed = False  # under _lock
        self._abandoned: list[_Worker] = []  # under _lock
        self._failed: list[_Call[Any]] = []  # under _lock
        self._worker = _Worker(self, name)  # replaced under _lock

    def start(
        self, fn: Callable[..., T], *args: Any, on_done: Callable[[], None] | None = None
    ) -> Answer[T]:
        """
        Queue `fn(*args)` under a copy of the caller's context variables; return at once.

        `on_done` is called on the runtime's thread once the answer is there, so it must only wake
        somebody.

        Raises
        ------
        RuntimeClosed
            After `close`.

        """
        call = _Call(fn, args, on_done, contextvars.copy_context())
        with self._lock:
            if self._closed:
                raise RuntimeClosed('no call can be started: the runtime is closed')
            self._worker.calls.put(call)
        return call

    def retire(self) -> None:
        """
        Give up every call started so far, so that the next one meets a free thread (R56).

        A running call goes on by itself until `reap` or `close`; a queued one is never run.
        """
        fresh = _Worker(self, self._name)
        with self._lock:
            given_up = fresh if self._closed else self._worker
            self._worker = self._worker if self._closed else fresh
            given_up.retired = True
            self._abandoned.append(given_up)
        given_up.drop_queued()

    def reap(self, within_s: float = 0.0) -> int:
        """Wait up to `within_s` for given-up calls; return how many are still running."""
        deadline = time.monotonic() + within_s
        with self._lock:
            waiting = list(self._abandoned)
        for worker in waiting:
            worker.join(deadline)
        with self._lock:
            self._abandoned = [worker for worker in self._abandoned if worker.running()]
            return len(self._abandoned)

    def close(self) -> None:
        """
        Cancel queued calls, wait for running ones within the bound, log unread failures.

        The bound is `close_within_s`; what still runs after it is named in the log and left to a
        daemon thread. Closing again does nothing.
        """
        with self._lock:
            if self._closed:
                return
            self._closed = True
            worker = self._worker
            worker.retired = True
            self._abandoned.append(worker)
        worker.drop_queued()
        left = self.reap(self._close_within_s)
        if left:
            log.error(
                '%d call(s) of %s still run %.1f s after closing and were left behind',
                left,
                self._name,
                self._close_within_s,
            )
        with self._lock:
            failed, self._failed = self._failed, []
        for call in failed:
            call.log_if_unread(self._name)

    def __enter__(self) -> Runtime:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _claim(self, worker: _Worker) -> bool:
        """Tell whether `worker` may still run what it took from its queue."""
        with self._lock:
            return not worker.retired

    def _keep_failure(self, call: _Call[Any]) -> None:
        """Hold a failed call until somebody reads it or the runtime closes (R38)."""
        with self._lock:
            unread = [kept for kept in (*self._failed, call) if not kept.read]
            spare = len(unread) if self._closed else max(0, len(unread) - MAX_UNREAD)
            self._failed = unread[spare:]
        for oldest in unread[:spare]:
            oldest.log_if_unread(self._name)


class _Call(Generic[T]):
    """One started call, and its outcome."""

    def __init__(
        self,
        fn: Callable[..., T],
        args: tuple[Any, ...],
        on_done: Callable[[], None] | None,
        context: contextvars.Context,
    ) -> None:
        self._fn: Callable[..., T] | None = fn
        self._args = args
        self._on_done = on_done
        self._context = context
        self._value: T | None = None  # written by the runtime's thread, before _done
        self._error: BaseException | None = None  # written by the runtime's thread, before _done
        self._trace: TracebackException | None = None  # of _error; the runtime's thread's
        self._done = False
        self.read = False  # written by the reader

    def done(self) -> bool:
        """Tell whether the outcome is there."""
        return self._done

    def result(self) -> T:
        """Return the outcome, or raise what the call raised."""
        if not self._done:
            raise NotAnswered('the call is still going on: ask done() first')
        self.read = True
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value]

    def run(self) -> bool:
        """Run the call; tell whether it failed other than by being given up."""
        try:
            self._value = self._context.run(self._fn, *self._args)  # type: ignore[arg-type]
        except BaseException as error:
            if not isinstance(error, Retired):
                self._trace = TracebackException.from_exception(error, lookup_lines=False)
            _drop_frames(error)
            self._error = error
        return self._trace is not None

    def cancel(self) -> None:
        """Settle a call that will never run."""
        self._error = RuntimeClosed('the call was given up before it ran')
        self.settle()

    def settle(self) -> None:
        """Publish the outcome and wake whoever waits for it."""
        self._fn, self._args = None, ()
        self._done = True
        if self._on_done is None:
            return
        try:
            self._on_done()
        except Exception:
            log.exception('the callback of a finished call failed')

    def log_if_unread(self, name: str) -> None:
        """Log the failure at ERROR unless somebody read it or asked for it (R38, R58)."""
        if not self.read and self._trace is not None:
            told = ''.join(self._trace.format()).rstrip()
            log.error('a call of %s failed and nobody read it:\n%s', name, told)


class _Worker:
    """One thread with the calls it is to run; given up, it ends after the one it runs."""

    def __init__(self, runtime: Runtime, name: str) -> None:
        self.calls: queue.SimpleQueue[_Call[Any] | None] = queue.SimpleQueue()
        self.retired = False  # under the runtime's lock
        self._runtime = runtime
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while self._serve_next():
            pass  # no local may name the last call while the next is waited for

    def _serve_next(self) -> bool:
        """Run the next call; tell whether there may be another."""
        call = self.calls.get()
        if call is None:
            return False
        if not self._runtime._claim(self):
            call.cancel()
        else:
            if call.run():
                self._runtime._keep_failure(call)
            call.settle()
        return True

    def drop_queued(self) -> None:
        """Cancel what was not begun and let the thread end."""
        while True:
            try:
                call = self.calls.get_nowait()
            except queue.Empty:
                break
            if call is not None:
                call.cancel()
        self.calls.put(None)

    def join(self, deadline: float) -> None:
        """Wait until the thread ends or `deadline`, on the monotonic clock, passes."""
        if self._thread is not threading.current_thread():
            self._thread.join(max(0.0, deadline - time.monotonic()))

    def running(self) -> bool:
        """Tell whether the thread is still inside a call."""
        return self._thread.is_alive() and self._thread is not threading.current_thread()


def _drop_frames(error: BaseException) -> None:
    """Let an error and its causes hold nothing of what was worked on where they were raised."""
    chain: list[BaseException] = [error]
    for link in chain:
        link.__traceback__ = None
        more = (link.__cause__, link.__context__)
        chain.extend(e for e in more if e is not None and not any(e is seen for seen in chain))

"""Connect on a thread of its own, for looking up a name cannot be interrupted."""

from __future__ import annotations

from collections.abc import Callable
import logging
import ssl
import threading
import time
from typing import Generic, Protocol, TypeVar

from seq_harness.client.cancel import Cancel
from seq_harness.client.endpoint import Endpoint
from seq_harness.client.transport import HandshakeRefused, Unreachable

log = logging.getLogger('seq_harness.client')


class Opened(Protocol):
    """What can be ended again."""

    def abort(self) -> None:
        """End it at once."""


C = TypeVar('C', bound=Opened)


def opened(endpoint: Endpoint, make: Callable[[float], C], within_s: float, cancel: Cancel) -> C:
    """
    Return what `make` connects by its deadline, or give up when `cancel` is set.

    Raises
    ------
    Unreachable
        Nobody answered, or `cancel` was set.
    HandshakeRefused
        The peer cannot be trusted, or refused to speak to us.

    """
    opening: _Opening[C] = _Opening(endpoint, make, within_s)
    with cancel.calling(opening.give_up):
        return opening.result()


class _Opening(Generic[C]):
    """A connection that is being made."""

    def __init__(self, endpoint: Endpoint, make: Callable[[float], C], within_s: float) -> None:
        self._endpoint = endpoint
        self._make = make
        self._within_s = within_s
        self._ready = threading.Event()
        self._lock = threading.Lock()  # held for a few assignments
        self._given_up = False  # under _lock
        self._made: C | None = None  # under _lock
        self._error: Exception = Unreachable('connecting was given up')  # under _lock
        threading.Thread(target=self._run, name='connect', daemon=True).start()

    def give_up(self) -> None:
        with self._lock:
            self._given_up = True
            made = self._made
        self._ready.set()
        if made is not None:
            made.abort()

    def result(self) -> C:
        if not self._ready.wait(self._within_s):
            self.give_up()
            raise Unreachable(f'{self._endpoint} did not answer within {self._within_s:.1f} s')
        with self._lock:
            if self._made is None or self._given_up:
                raise self._error
            return self._made

    def _run(self) -> None:
        made: C | None = None
        error: Exception | None = None
        try:
            made = self._make(time.monotonic() + self._within_s)
        except Exception as caught:
            error = self._explained(caught)
            if error is not caught:
                error.__cause__ = caught
        with self._lock:
            self._made = made
            self._error = error or self._error
            late = self._given_up
        self._ready.set()
        if late and made is not None:
            made.abort()

    def _explained(self, error: Exception) -> Exception:
        """Turn what went wrong into what can be done about it."""
        if isinstance(error, (Unreachable, HandshakeRefused)):
            return error
        if isinstance(error, TimeoutError):
            told = f'{self._endpoint} did not answer within {self._within_s:.1f} s'
            return Unreachable(told)
        if isinstance(error, ssl.SSLError):
            return HandshakeRefused(f'{self._endpoint} could not be trusted: {error}')
        if isinstance(error, OSError):
            return Unreachable(f'{self._endpoint}: {error}')
        log.error('connecting to %s failed', self._endpoint, exc_info=error)
        return HandshakeRefused(f'connecting to {self._endpoint} failed: {error}')

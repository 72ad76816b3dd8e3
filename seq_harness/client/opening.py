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

    def close(self) -> None:
        """Release it."""


C = TypeVar('C', bound=Opened)

Make = Callable[[float, Cancel], C]
"""Connects by a deadline on the monotonic clock, or until it is given up."""


def opened(endpoint: Endpoint, make: Make[C], within_s: float, cancel: Cancel) -> C:
    """
    Return what `make` connects within `within_s` seconds, or give up when `cancel` is set.

    What is connected later than that is closed.

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
    """A connection that is being made, for one asker, who takes what came of it once."""

    def __init__(self, endpoint: Endpoint, make: Make[C], within_s: float) -> None:
        self._endpoint = endpoint
        self._make = make
        self._within_s = within_s
        self._ready = threading.Event()
        self._cancel = Cancel()  # set when nobody waits any more
        self._lock = threading.Lock()  # held for a few assignments
        self._taken = False  # under _lock: the asker has gone
        self._made: C | None = None  # under _lock
        self._error: Exception | None = None  # under _lock
        threading.Thread(target=self._run, name='connect', daemon=True).start()

    def give_up(self) -> None:
        self._cancel.set()
        self._ready.set()

    def result(self) -> C:
        if not self._ready.wait(self._within_s):
            self.give_up()
            told = f'{self._endpoint} did not answer within {self._within_s:.1f} s'
        else:
            told = 'connecting was given up'
        with self._lock:
            self._taken = True
            made, self._made = self._made, None
            error, self._error = self._error, None
        given_up = self._cancel.is_set()
        if made is not None and not given_up:
            return made
        if made is not None:
            _end(made)
        try:
            raise Unreachable(told) if given_up or error is None else error
        finally:
            del error  # which would hold this frame, and with it itself

    def _run(self) -> None:
        try:
            made = self._make(time.monotonic() + self._within_s, self._cancel)
        except Exception as caught:
            self._failed(caught)
        else:
            self._succeeded(made)
        self._ready.set()

    def _succeeded(self, made: C) -> None:
        with self._lock:
            late = self._taken
            self._made = None if late else made
        if late:
            _end(made)

    def _failed(self, caught: Exception) -> None:
        error = self._explained(caught)
        if error is not caught:
            error.__cause__ = caught
        with self._lock:
            self._error = None if self._taken else error

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


def _end(made: Opened) -> None:
    """Close what nobody uses, without a goodbye."""
    made.abort()
    made.close()

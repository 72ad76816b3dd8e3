"""One connection that is made when it is needed, and made again after it was lost."""

from __future__ import annotations

from collections.abc import Callable
import threading
from typing import Generic, Protocol, TypeVar

from seq_harness.client.cancel import Cancel
from seq_harness.client.transport import Unreachable


class Closable(Protocol):
    """What can be held; `is_open` may be called from any thread."""

    @property
    def is_open(self) -> bool:
        """Tell whether it was still open when it was last heard of."""

    def close(self) -> None:
        """Say goodbye and end it."""


C = TypeVar('C', bound=Closable)


class Held(Generic[C]):
    """
    Hold one connection to a peer.

    Any thread may ask for it, and one is made at a time; one thread at a time uses it.
    """

    def __init__(
        self,
        peer: object,
        make: Callable[[float, Cancel], C],
        *,
        serves: Callable[[C], bool] = lambda held: True,
        failing_tells: bool = True,
    ) -> None:
        """
        Hold nothing yet; `str(peer)` names who is connected to.

        `serves` tells whether one that is open is still the right one. With `failing_tells` an
        attempt that failed by itself tells that the peer is gone, even after we gave one up.
        """
        self._peer = peer
        self._make = make
        self._serves = serves
        self._failing_tells = failing_tells
        self._lock = threading.Lock()  # held for a few assignments
        self._changed = threading.Condition(self._lock)
        self._connection: C | None = None  # under _lock
        self._opening = False  # under _lock
        self._opened = 0  # under _lock
        self._given_up = False  # under _lock

    @property
    def is_open(self) -> bool:
        """Tell whether the connection was still open when it was last heard of."""
        with self._lock:
            held = self._connection
        return held is not None and held.is_open

    @property
    def given_up(self) -> bool:
        """Tell whether we ended the last connection ourselves, which tells nothing of the peer."""
        with self._lock:
            return self._given_up

    @property
    def reaches(self) -> bool:
        """Tell whether the peer is there, as far as is known."""
        return self.given_up or self.is_open

    @property
    def opened(self) -> int:
        """Count the connections that were made."""
        with self._lock:
            return self._opened

    def at_hand(self) -> C | None:
        """Return the connection if it is there to be used; None where one is to be made first."""
        with self._lock:
            held = self._connection
            if held is None or self._opening or not held.is_open:
                return None
        return held if self._serves(held) else None

    def connection(self, within_s: float, cancel: Cancel) -> C:
        """
        Return the connection, made anew where it is needed.

        Raises
        ------
        Unreachable
            Another thread has not made it in time.
        Exception
            Whatever making it raises.

        """
        with cancel.calling(self._wake), self._changed:
            self._changed.wait_for(lambda: not self._opening or cancel.is_set(), within_s)
            if self._opening:
                raise Unreachable(f'{self._peer} is still being connected to')
            held = self._connection
            if held is not None and held.is_open and self._serves(held):
                return held
            self._opening = True
        made = None
        try:
            if held is not None:
                held.close()
            made = self._make(within_s, cancel)
        finally:
            self._done_opening(made, cancel.is_set())
        return made

    def give_up(self, connection: C) -> None:
        """Note that we are ending a connection ourselves."""
        with self._lock:
            if self._connection is connection:
                self._given_up = True

    def drop(self, connection: C) -> None:
        """End a connection, so that the next one is made anew."""
        connection.close()
        with self._lock:
            if self._connection is connection:
                self._connection = None

    def close(self) -> None:
        """Say goodbye and end the connection."""
        with self._lock:
            held, self._connection = self._connection, None
            self._given_up = False
        if held is not None:
            held.close()

    def _done_opening(self, made: C | None, cancelled: bool) -> None:
        with self._lock:
            self._opening = False
            self._connection = made
            self._opened += made is not None
            failed = self._failing_tells and not cancelled
            self._given_up = self._given_up and made is None and not failed
            self._changed.notify_all()

    def _wake(self) -> None:
        with self._lock:
            self._changed.notify_all()

"""A connection that is made when it is needed, and made again after it was lost."""

from __future__ import annotations

from collections.abc import Callable
import threading

from seq_harness.client.cancel import Cancel
from seq_harness.client.transport import (
    AnswerTimedOut,
    Connection,
    ConnectionLost,
    HandshakeRefused,
    NotReady,
    Reply,
    Route,
    Unreachable,
)
from seq_harness.client.verdict import judge, Verdict

OPEN_S = 5.0
"""How long one attempt to connect and to be greeted may take."""

Hello = Callable[[Connection, Cancel], Reply]
"""The first request on a new connection; its answer names the worker process."""


class Link:
    """
    Hold one connection to a worker, greeted before anybody uses it.

    Any thread may ask for the connection, and one is made at a time; one thread at a time uses
    it. `close` may be called from any.
    """

    def __init__(self, route: Route, hello: Hello) -> None:
        self._route = route
        self._hello = hello
        self._changed = threading.Condition()  # held for a few assignments
        self._connection: Connection | None = None  # under _changed
        self._opening = False  # under _changed
        self._opened = 0  # under _changed
        self._given_up = False  # under _changed

    @property
    def is_open(self) -> bool:
        """Tell whether the connection was still open when it was last heard of."""
        with self._changed:
            return self._connection is not None and self._connection.is_open

    @property
    def reaches(self) -> bool:
        """Tell whether the worker is there, as far as is known: a connection given up tells so."""
        with self._changed:
            return self._given_up or self.is_open

    @property
    def opened(self) -> int:
        """Count the connections that were made."""
        with self._changed:
            return self._opened

    def at_hand(self) -> Connection | None:
        """Return the connection if it is there to be used; None where one is to be made first."""
        with self._changed:
            held = self._connection
            if held is None or self._opening or not held.is_open:
                return None
        return held if self._route.leads_to(held) else None

    def connection(self, within_s: float, cancel: Cancel) -> Connection:
        """
        Return the connection, made anew where it is needed.

        Raises
        ------
        NotReady, Unreachable
            No connection was made; trying again may help.
        HandshakeRefused
            Trying again will not help.

        """
        within_s = min(within_s, OPEN_S)
        with cancel.calling(self._wake), self._changed:
            self._changed.wait_for(lambda: not self._opening or cancel.is_set(), within_s)
            if self._opening:
                raise Unreachable(f'{self._route} is still being connected to')
            held = self._connection
            if held is not None and held.is_open and self._route.leads_to(held):
                return held
            self._opening = True
        made = None
        try:
            if held is not None:
                held.close()
            made = self._open(within_s, cancel)
        finally:
            self._done_opening(made, cancel.is_set())
        return made

    def give_up(self, connection: Connection) -> None:
        """Note that we are ending a connection ourselves, which tells nothing of the worker."""
        with self._changed:
            if self._connection is connection:
                self._given_up = True

    def drop(self, connection: Connection) -> None:
        """End a connection that failed, so that the next one is made anew."""
        connection.close()
        self._route.failed()
        with self._changed:
            if self._connection is connection:
                self._connection = None

    def renew(self, connection: Connection, give_back: bool = False) -> bool:
        """
        End a connection that the worker no longer serves, and look for the worker anew.

        Tells whether there is anybody who knows where it is; if not, the worker's word stands.
        """
        if not self._route.renew(give_back):
            return False
        self.drop(connection)
        return True

    def close(self) -> None:
        """Say goodbye and end the connection."""
        with self._changed:
            held, self._connection = self._connection, None
            self._given_up = False
        if held is not None:
            held.close()

    def _open(self, within_s: float, cancel: Cancel) -> Connection:
        connection = self._route.open(within_s, cancel)
        try:
            connection.instance = self._greet(connection, cancel)
        except BaseException:
            connection.close()
            self._route.failed()
            raise
        return connection

    def _done_opening(self, made: Connection | None, cancelled: bool) -> None:
        with self._changed:
            self._opening = False
            self._connection = made
            self._opened += made is not None
            self._given_up = self._given_up and made is None and cancelled
            self._changed.notify_all()

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _greet(self, connection: Connection, cancel: Cancel) -> str:
        try:
            reply = self._hello(connection, cancel)
        except (ConnectionLost, AnswerTimedOut) as error:
            raise Unreachable(f'{self._route}: {error}') from error
        judgement = judge(reply)
        if judgement.verdict in (Verdict.WARMING, Verdict.BUSY, Verdict.NO_PLACE, Verdict.AWAY):
            raise NotReady(judgement.text, judgement.retry_after_s or 0.0)
        if judgement.verdict is not Verdict.ANSWERED:
            raise HandshakeRefused(f'{self._route} refused to serve: {judgement.text}')
        if reply.instance is None:
            raise HandshakeRefused(f'{self._route} does not name its instance')
        return reply.instance

"""A connection that is made when it is needed, and made again after it was lost."""

from __future__ import annotations

from collections.abc import Callable
import threading

from seq_harness.client.cancel import Cancel
from seq_harness.client.endpoint import Endpoint
from seq_harness.client.verdict import judge, Verdict
from seq_harness.client.websocket import (
    AnswerTimedOut,
    Connection,
    ConnectionLost,
    HandshakeRefused,
    open_connection,
    Reply,
    Unreachable,
)

OPEN_S = 5.0
"""How long one attempt to connect and to be greeted may take."""

Hello = Callable[[Connection, Cancel], Reply]
"""The first request on a new connection; its answer names the worker process."""


class NotReady(Unreachable):
    """The worker is there, and does not serve its policy yet."""

    def __init__(self, text: str, retry_after_s: float) -> None:
        super().__init__(text)
        self.retry_after_s = retry_after_s


class Link:
    """
    Hold one connection to a worker, greeted before anybody uses it.

    Any thread may ask for the connection, and one is made at a time; one thread at a time uses
    it. `close` may be called from any.
    """

    def __init__(self, endpoint: Endpoint, hello: Hello) -> None:
        self._endpoint = endpoint
        self._hello = hello
        self._changed = threading.Condition()  # held for a few assignments
        self._connection: Connection | None = None  # under _changed
        self._opening = False  # under _changed
        self._opened = 0  # under _changed

    @property
    def is_open(self) -> bool:
        """Tell whether the connection was still open when it was last heard of."""
        with self._changed:
            return self._connection is not None and self._connection.is_open

    @property
    def opened(self) -> int:
        """Count the connections that were made."""
        with self._changed:
            return self._opened

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
                raise Unreachable(f'{self._endpoint} is still being connected to')
            if self._connection is not None and self._connection.is_open:
                return self._connection
            self._opening = True
        made = None
        try:
            made = self._open(within_s, cancel)
        finally:
            self._done_opening(made)
        return made

    def drop(self, connection: Connection) -> None:
        """End a connection that failed, so that the next one is made anew."""
        connection.abort()
        with self._changed:
            if self._connection is connection:
                self._connection = None

    def close(self) -> None:
        """Say goodbye and end the connection."""
        with self._changed:
            held, self._connection = self._connection, None
        if held is not None:
            held.close()

    def _open(self, within_s: float, cancel: Cancel) -> Connection:
        connection = open_connection(self._endpoint, within_s, cancel)
        try:
            connection.instance = self._greet(connection, cancel)
        except BaseException:
            connection.abort()
            raise
        return connection

    def _done_opening(self, made: Connection | None) -> None:
        with self._changed:
            self._opening = False
            self._connection = made
            self._opened += made is not None
            self._changed.notify_all()

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _greet(self, connection: Connection, cancel: Cancel) -> str:
        try:
            reply = self._hello(connection, cancel)
        except (ConnectionLost, AnswerTimedOut) as error:
            raise Unreachable(f'{self._endpoint}: {error}') from error
        judgement = judge(reply)
        if judgement.verdict in (Verdict.WARMING, Verdict.BUSY, Verdict.AWAY):
            raise NotReady(judgement.text, judgement.retry_after_s or 0.0)
        if judgement.verdict is not Verdict.ANSWERED:
            raise HandshakeRefused(f'{self._endpoint} refused to serve: {judgement.text}')
        if reply.instance is None:
            raise HandshakeRefused(f'{self._endpoint} does not name its instance')
        return reply.instance

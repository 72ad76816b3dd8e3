"""The connection to a worker, greeted before anybody uses it."""

from __future__ import annotations

from collections.abc import Callable

from seq_harness.client.cancel import Cancel
from seq_harness.client.held import Held
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


class Link(Held[Connection]):
    """One connection to a worker, wherever the route leads."""

    def __init__(self, route: Route, hello: Hello) -> None:
        super().__init__(route, self._open, serves=route.leads_to)
        self._route = route
        self._hello = hello

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
        return super().connection(min(within_s, OPEN_S), cancel)

    def drop(self, connection: Connection) -> None:
        """End a connection that failed, so that the next one is made anew."""
        self._route.failed()
        super().drop(connection)

    def renew(self, connection: Connection, give_back: bool = False) -> bool:
        """
        End a connection that the worker no longer serves, and look for the worker anew.

        Tells whether there is anybody who knows where it is; if not, the worker's word stands.
        """
        if not self._route.renew(give_back):
            return False
        self.drop(connection)
        return True

    def _open(self, within_s: float, cancel: Cancel) -> Connection:
        connection = self._route.open(within_s, cancel)
        try:
            connection.instance = self._greet(connection, cancel)
        except BaseException:
            connection.close()
            self._route.failed()
            raise
        return connection

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

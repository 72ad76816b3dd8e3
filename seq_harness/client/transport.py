"""What every binding of the wire offers to the acts and to the observation stream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from seq_harness.client.cancel import Cancel

Pieces = tuple[bytes | memoryview, ...]
"""A packed value in pieces, which one after another make it."""

Part = bytes | Pieces

Parts = Mapping[str, Part]
"""A body as its keys and their packed values, which are packed once."""


class Unreachable(Exception):
    """No connection was made, and trying again may help."""


class NotReady(Unreachable):
    """The worker is there, and does not serve its policy yet."""

    def __init__(self, text: str, retry_after_s: float) -> None:
        super().__init__(text)
        self.retry_after_s = retry_after_s


class HandshakeRefused(Exception):
    """The peer will not speak to us, and trying again will not help; says why."""


class ConnectionLost(Exception):
    """The connection ended before the answer; `sent` tells whether the request was out."""

    def __init__(self, reason: str, sent: bool) -> None:
        super().__init__(reason)
        self.sent = sent


class AnswerTimedOut(Exception):
    """No answer came in time; the connection is closed, so that it cannot come late."""


class Reply(NamedTuple):
    """What a worker answered."""

    status: int
    body: Mapping[str, Any]
    instance: str | None = None
    """The worker process that answered, where it says so."""

    @property
    def ok(self) -> bool:
        """Tell whether it is a success."""
        return 200 <= self.status < 300


class Connection(Protocol):
    """
    An open connection to a worker, used by one thread at a time.

    `abort`, `is_open` and `is_silent` alone may be called from any thread.
    """

    instance: str
    """The worker process it leads to, once that is known."""
    formats: frozenset[str]
    """What the worker says that it reads; the websocket reads all that its client sends."""

    @property
    def is_open(self) -> bool:
        """Tell whether the connection was still open when it was last heard of."""

    @property
    def is_silent(self) -> bool:
        """Tell whether the worker answers no ping while an answer is waited for."""

    def call(
        self,
        method: str,
        parts: Parts,
        within_s: float,
        cancel: Cancel,
        request_id: str | None = None,
    ) -> Reply:
        """
        Send a request and wait for its answer; `request_id` names an act over every retry.

        Raises
        ------
        ConnectionLost
            The connection ended first, or `cancel` was set.
        AnswerTimedOut
            No answer came within `within_s`, in seconds.
        ValueError
            The worker reads no body that could carry the parts.

        """

    def abort(self) -> None:
        """End the connection at once; whoever waits on it is told."""

    def close(self) -> None:
        """Say goodbye and end the connection."""


class Route(Protocol):
    """The way to a worker; its text shows no secret."""

    def open(self, within_s: float, cancel: Cancel) -> Connection:
        """
        Connect within `within_s` seconds, or until `cancel` is set.

        Raises
        ------
        Unreachable
            No connection was made; trying again may help.
        HandshakeRefused
            Trying again will not help.

        """

    def leads_to(self, connection: Connection) -> bool:
        """Tell whether a connection made before still goes where the way leads now."""

    def failed(self) -> None:
        """Note that a connection failed: the worker may be elsewhere by now."""

    def renew(self, give_back: bool) -> bool:
        """
        Ask for the way anew at the next opening; tell whether there is anybody to ask.

        With `give_back` the place that was held is released first.
        """

    def close(self) -> None:
        """Give back the place that was held, if any."""

"""Opening a session with a positronic server, over as many attempts as its refusals are worth."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
import socket
import ssl
import time
from typing import Any

from seq_harness.client.cancel import Cancel
from seq_harness.client.endpoint import Endpoint
from seq_harness.client.notices import Notices
from seq_harness.client.positronic_session import open_session, Session, SessionEndpoint
from seq_harness.client.refusals import StatusRefused
from seq_harness.client.transport import HandshakeRefused, NotReady, Unreachable
from seq_harness.playback.uplink import WorkerLost
from websockets.exceptions import InvalidHandshake

FIRST_WAIT_S = 1.0
LAST_WAIT_S = 30.0
"""How long to wait before the next attempt: from the first to the last, doubling."""

FORBIDDEN_ATTEMPTS = 3
"""A server that is starting and one that refuses the token both answer 403."""

PROGRESS_S = 10.0
"""How often it is said that a server is waited for."""

FORBIDDEN = 403


class Refusal(Enum):
    """What an attempt that failed says about the server."""

    COLD = 'cold'
    """It is starting: try again until the deadline."""
    SILENT = 'silent'
    """Nobody answered: try again until the deadline."""
    FORBIDDEN = 'forbidden'
    """It is starting, or refuses the token: try a few times."""
    FINAL = 'final'
    """Trying again will not help."""


def refusal_of(error: Exception) -> Refusal:
    """Tell what a failed attempt says about the server."""
    cause = error.__cause__
    if isinstance(cause, socket.gaierror):
        gone = cause.errno in (socket.EAI_NONAME, getattr(socket, 'EAI_NODATA', None))
        return Refusal.FINAL if gone else Refusal.SILENT
    if isinstance(error, StatusRefused):
        return Refusal.FORBIDDEN if error.status == FORBIDDEN else Refusal.FINAL
    if isinstance(error, NotReady):
        return Refusal.COLD
    if isinstance(error, Unreachable):
        return Refusal.SILENT
    if isinstance(cause, ssl.SSLError):
        untrusted = isinstance(cause, ssl.SSLCertVerificationError)
        return Refusal.FINAL if untrusted else Refusal.SILENT
    return Refusal.COLD if isinstance(cause, InvalidHandshake) else Refusal.FINAL


class Opener:
    """Open sessions at one server, with one set of parameters."""

    def __init__(
        self, endpoint: Endpoint, params: Mapping[str, Any] | None, notices: Notices
    ) -> None:
        self._endpoint = SessionEndpoint.of(endpoint, params)
        self._notices = notices

    def __str__(self) -> str:
        return str(self._endpoint)

    def open(self, within_s: float, cancel: Cancel, prepare_s: float = 0.0) -> Session:
        """
        Return a session that is ready.

        No attempt begins after `within_s`; one that began may take `prepare_s`, or until then.

        Raises
        ------
        WorkerLost
            There was none in time, or `cancel` was set.
        HandshakeRefused
            The server refuses, and trying again will not help.

        """
        deadline_s = time.monotonic() + within_s
        wait_s, forbidden = FIRST_WAIT_S, 0
        while True:
            try:
                return self.attempt(max(deadline_s, time.monotonic() + prepare_s), cancel)
            except (Unreachable, HandshakeRefused) as error:
                refusal = refusal_of(error)
                forbidden += refusal is Refusal.FORBIDDEN
                if refusal is Refusal.FINAL or forbidden >= FORBIDDEN_ATTEMPTS:
                    raise HandshakeRefused(str(error)) from error
                reason = str(error)
            if cancel.is_set() or time.monotonic() + wait_s >= deadline_s:
                raise WorkerLost(f'no session at {self} within {within_s:g} s: {reason}')
            self._notices.say('link', f'waiting for the server: {reason}', again_s=PROGRESS_S)
            cancel.wait(wait_s)
            wait_s = min(2 * wait_s, LAST_WAIT_S)

    def attempt(self, deadline_s: float, cancel: Cancel) -> Session:
        """
        Try once, until the deadline on the monotonic clock.

        Raises
        ------
        Unreachable, HandshakeRefused
            There is no session; `refusal_of` tells what that says.

        """
        return open_session(self._endpoint, deadline_s, cancel, self._tell)

    def _tell(self, progress: str) -> None:
        self._notices.say('link', progress, again_s=PROGRESS_S)

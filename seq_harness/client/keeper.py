"""Look for a worker that was lost while no episode asks it anything."""

from __future__ import annotations

from collections.abc import Callable
import threading
from typing import Any, Protocol

from seq_harness.client.cancel import Cancel
from seq_harness.client.notices import Notices
from seq_harness.client.transport import HandshakeRefused, Unreachable

LOOK_S = 1.0
"""How often the connection is looked at."""


class Kept(Protocol):
    """A connection that is made when it is needed."""

    @property
    def is_open(self) -> bool:
        """Tell whether the connection was still open when it was last heard of."""

    @property
    def reaches(self) -> bool:
        """Tell whether the worker is there, as far as is known."""

    def connection(self, within_s: float, cancel: Cancel) -> Any:
        """Return the connection, made anew where it is needed, or say why it cannot be."""


class Keeper:
    """Make the connection for acts again between episodes, so that the next finds it."""

    def __init__(
        self, link: Kept, notices: Notices, cancel: Cancel, idle: Callable[[], bool]
    ) -> None:
        """While `idle` says that no episode is open, look; until `cancel` is set."""
        self._link = link
        self._notices = notices
        self._cancel = cancel
        self._idle = idle
        threading.Thread(target=self._keep, name='connect-keeper', daemon=True).start()

    def _keep(self) -> None:
        while not self._cancel.wait(LOOK_S):
            # Looking also answers the pings of a worker that nobody asks anything.
            if not self._link.is_open and self._idle():
                self._look()

    def _look(self) -> None:
        lost = not self._link.reaches
        try:
            self._link.connection(LOOK_S, self._cancel)
        except (Unreachable, HandshakeRefused) as error:
            if not self._cancel.is_set():
                self._notices.say('link', f'the worker is away: {error}')
        else:
            if lost:
                self._notices.say('link', 'the worker is back')

"""The sessions with one positronic server: one held ready for the next episode, one lent to it."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
import threading
import time
from typing import Any

from seq_harness.client.cancel import Cancel
from seq_harness.client.notices import Notices
from seq_harness.client.positronic_opening import FIRST_WAIT_S, LAST_WAIT_S, Opener
from seq_harness.client.positronic_session import Session
from seq_harness.client.positronic_stack import READ
from seq_harness.client.transport import HandshakeRefused, Unreachable
from seq_harness.contract.numpy_msgpack import pack
from seq_harness.playback.uplink import WorkerLost

LOOK_S = 1.0
"""How often the sessions are looked at, so that the server's pings are answered."""

RECONNECT_S = 45.0
"""How long a session that was lost is opened anew, at the most."""


class Sessions:
    """
    Keep a session ready, from the first on; whoever takes it gives it back to be ended.

    One thread of its own ends sessions, opens the next, and looks after those that are there.
    What is read of a session's metadata must be what it was of the first's.
    """

    def __init__(
        self,
        opener: Opener,
        notices: Notices,
        cancel: Cancel,
        *,
        reconnect_s: float,
        prepare_s: float,
    ) -> None:
        """
        Open nothing yet; `cancel` ends everything.

        A server that is missing is looked for for `reconnect_s`, and one that prepares a session
        is waited for for `prepare_s`.
        """
        self._opener = opener
        self._notices = notices
        self._cancel = cancel
        self._reconnect_s = min(reconnect_s, RECONNECT_S)
        self._prepare_s = prepare_s
        self._changed = threading.Condition()  # held for a few assignments
        self._read: bytes | None = None  # written once, by `first`
        self._spare: Session | None = None  # under _changed
        self._lent: Session | None = None  # under _changed
        self._ending: deque[Session] = deque()  # under _changed
        self._opening = False  # under _changed
        self._away = True  # under _changed
        self._thread: threading.Thread | None = None

    @property
    def reaches(self) -> bool:
        """Tell whether the server is there to be asked, as far as is known."""
        with self._changed:
            return not self._away

    def first(self, within_s: float) -> Mapping[str, Any]:
        """
        Open the first session, hold it ready, and return its metadata.

        Raises
        ------
        WorkerLost, HandshakeRefused
            As `Opener.open`.

        """
        session = self._opener.open(within_s, self._cancel)
        self._read = _read_of(session)
        with self._changed:
            self._spare, self._away = session, False
        if self._thread is None:
            self._thread = threading.Thread(target=self._keep, name='sessions', daemon=True)
            self._thread.start()
        return session.meta

    def take(self, cancel: Cancel) -> Session:
        """
        Return a session that nobody used: the one held ready, or a new one.

        Raises
        ------
        WorkerLost
            There was none in time, `cancel` was set, or the server declares otherwise than first.

        """
        session = self._held(time.monotonic() + self._prepare_s, cancel) or self._opened(cancel)
        with self._changed:
            self._lent, self._away = session, False
        return session

    def lost(self, session: Session) -> None:
        """Note that a session failed; it ends without a word."""
        session.close()
        with self._changed:
            if self._lent is session:
                self._lent = None

    def give_back(self, session: Session) -> None:
        """Have a session ended, on the thread of its own, and the next one opened."""
        with self._changed:
            if self._lent is session:
                self._lent = None
            self._ending.append(session)
            self._changed.notify_all()

    def close(self, within_s: float) -> None:
        """End all sessions, as far as the server answers within `within_s`; `cancel` is set."""
        with self._changed:
            self._ending.extend(s for s in (self._spare, self._lent) if s is not None)
            self._spare = self._lent = None
            self._away = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(within_s)

    def _held(self, deadline_s: float, cancel: Cancel) -> Session | None:
        """Return the session held ready, once what is being opened is there; None for none."""
        with cancel.calling(self._wake), self._changed:
            self._changed.wait_for(lambda: not self._opening or cancel.is_set(), _left(deadline_s))
            if self._opening:
                raise WorkerLost(f'{self._opener} was still preparing a session')
            spare, self._spare = self._spare, None
            self._opening = True
        if spare is None or not spare.is_open:
            return None
        self._done_opening(None)
        return spare

    def _opened(self, cancel: Cancel) -> Session:
        try:
            session = self._opener.open(self._reconnect_s, cancel, self._prepare_s)
        except HandshakeRefused as error:
            raise WorkerLost(str(error)) from error
        finally:
            self._done_opening(None)
        if _read_of(session) != self._read:
            session.end()
            raise WorkerLost(self._otherwise())
        return session

    def _otherwise(self) -> str:
        return f'{self._opener} declares otherwise than when it was configured: configure anew'

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _done_opening(self, spare: Session | None) -> None:
        with self._changed:
            self._opening = False
            self._spare = spare or self._spare
            self._changed.notify_all()

    def _keep(self) -> None:
        next_s, wait_s = 0.0, FIRST_WAIT_S
        while True:
            with self._changed:
                ending = self._ending.popleft() if self._ending else None
            if ending is not None:
                ending.end()
                continue
            if self._cancel.is_set():
                return
            if self._is_missing() and time.monotonic() >= next_s and self._may_open():
                wait_s = FIRST_WAIT_S if self._opened_ahead() else min(2 * wait_s, LAST_WAIT_S)
                next_s = time.monotonic() + wait_s
            with self._changed:
                if not self._ending and not self._cancel.is_set():
                    self._changed.wait(LOOK_S)

    def _is_missing(self) -> bool:
        """Look after the sessions, which answers pings; tell whether none is there."""
        with self._changed:
            lent, spare = self._lent, self._spare
        if lent is not None and lent.is_open:
            return False
        if spare is None:
            return lent is None
        if spare.is_open:
            return False
        with self._changed:
            if self._spare is spare:
                self._spare = None
        return True

    def _may_open(self) -> bool:
        """Take the place of who opens a session, where nobody has it."""
        with self._changed:
            free = not self._opening and self._lent is None and self._spare is None
            self._opening = self._opening or free
            return free

    def _opened_ahead(self) -> bool:
        """Open the next session; tell whether there is one."""
        spare = None
        try:
            spare = self._opener.attempt(time.monotonic() + self._prepare_s, self._cancel)
            if _read_of(spare) != self._read:
                spare.end()
                spare = None
                raise HandshakeRefused(self._otherwise())
        except (Unreachable, HandshakeRefused) as error:
            if not self._cancel.is_set():
                self._notices.say('link', f'the server is away: {error}')
            return False
        finally:
            with self._changed:
                was_away, self._away = self._away, spare is None
            self._done_opening(spare)
        if was_away:
            self._notices.say('link', 'the server is back')
        return True


def _read_of(session: Session) -> bytes:
    """Return what of a session's metadata decides how it is played."""
    return pack([session.meta.get(key) for key in READ])


def _left(deadline_s: float) -> float:
    return max(0.0, deadline_s - time.monotonic())

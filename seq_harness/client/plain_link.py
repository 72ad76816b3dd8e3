"""A conversation with a server that is begun when it is needed, and anew after it was lost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
import threading
from typing import Any, Protocol

from seq_harness.client.cancel import Cancel
from seq_harness.client.plain_websocket import Waiting
from seq_harness.client.transport import HandshakeRefused, Unreachable
from seq_harness.contract.connect import WorkerDeclaration

SHORTEST_S = 5.0
"""What an attempt to connect and to be greeted is given at the least."""


@dataclass(frozen=True)
class Answered:
    """What a server answered to one question."""

    outputs: Any
    infer_ms: float | None = None
    """The server's own time for it, where it says so."""


class Talk(Protocol):
    """
    A connection to a server after its greeting, used by one thread at a time.

    `abort` and `is_open` alone may be called from any thread.
    """

    @property
    def greeting(self) -> Any:
        """Return what tells this server from another; the same after every reconnect."""

    @property
    def is_open(self) -> bool:
        """Tell whether it was still open when it was last heard of; answers pings."""

    def begin(self, episode_id: str, within_s: float, cancel: Cancel) -> None:
        """Tell the server that an episode begins, if the wire has a word for it; as `ask`."""

    def ask(
        self, observation: Mapping[str, Any], within_s: float, cancel: Cancel, waiting: Waiting
    ) -> Answered:
        """
        Ask about an observation of the robot's own keys.

        Raises
        ------
        PolicyError
            The server says that its policy failed, or answers no rows.
        AnswerTimedOut
            No answer came in time; the connection is closed.
        ConnectionLost
            The connection ended first, or `cancel` was set.
        ValueError
            The observation is not what the key map says.

        """

    def abort(self) -> None:
        """End the connection at once; whoever waits on it is told."""

    def close(self) -> None:
        """Say goodbye and end the connection."""


class Dialect(Protocol):
    """What sets one wire apart; one small module each."""

    @property
    def address(self) -> str:
        """Return where the server is, without secrets."""

    @property
    def keeps_state(self) -> bool:
        """Tell whether a lost connection takes along what the policy knew of its episode."""

    def open(self, within_s: float, cancel: Cancel, waiting: Waiting) -> Talk:
        """
        Connect and be greeted; `waiting` is told how long the greeting takes.

        Raises
        ------
        Unreachable
            Trying again may help.
        HandshakeRefused
            Trying again will not help.
        ValueError
            The greeting asks for what the key map does not give.

        """

    def declare(self, talk: Talk) -> WorkerDeclaration:
        """Say what the server's policy reads and answers, in the robot's own keys."""


class PlainLink:
    """
    Hold one conversation; any thread may ask for it, and one is begun at a time.

    A server that announces something else than at first is another one, and refused.
    """

    def __init__(self, dialect: Dialect, say: Callable[[str], None]) -> None:
        """`say` is told while a greeting is waited for."""
        self._dialect = dialect
        self._say = say
        self._changed = threading.Condition()  # held for a few assignments
        self._talk: Talk | None = None  # under _changed
        self._greeting: Any = None  # under _changed; of the first conversation
        self._opening = False  # under _changed
        self._opened = 0  # under _changed
        self._given_up = False  # under _changed

    @property
    def is_open(self) -> bool:
        """Tell whether the connection was still open when it was last heard of."""
        with self._changed:
            talk = self._talk
        return talk is not None and talk.is_open

    @property
    def given_up(self) -> bool:
        """Tell whether we ended the last conversation ourselves, which may keep a server busy."""
        with self._changed:
            return self._given_up

    @property
    def reaches(self) -> bool:
        """Tell whether the server is there, as far as is known."""
        return self.given_up or self.is_open

    @property
    def opened(self) -> int:
        """Count the conversations that were begun."""
        with self._changed:
            return self._opened

    def connection(self, within_s: float, cancel: Cancel) -> Talk:
        """
        Return the conversation, begun anew where it is needed.

        Raises
        ------
        Unreachable
            It could not be begun; trying again may help.
        HandshakeRefused, ValueError
            Trying again will not help.

        """
        within_s = max(within_s, SHORTEST_S)
        with cancel.calling(self._wake), self._changed:
            self._changed.wait_for(lambda: not self._opening or cancel.is_set(), within_s)
            if self._opening:
                raise Unreachable(f'{self._dialect.address} is still being connected to')
            held = self._talk
            if held is not None and held.is_open:
                return held
            self._opening = True
        made: Talk | None = None
        try:
            if held is not None:
                held.close()
            made = self._begun(within_s, cancel)
        finally:
            self._done_opening(made)
        return made

    def give_up(self, talk: Talk) -> None:
        """Note that we are ending a conversation ourselves, which tells nothing of the server."""
        with self._changed:
            if self._talk is talk:
                self._given_up = True

    def drop(self, talk: Talk) -> None:
        """End a conversation, so that the next question begins another."""
        talk.close()
        with self._changed:
            if self._talk is talk:
                self._talk = None

    def close(self) -> None:
        """Say goodbye and end the connection."""
        with self._changed:
            held, self._talk = self._talk, None
            self._given_up = False
        if held is not None:
            held.close()

    def _begun(self, within_s: float, cancel: Cancel) -> Talk:
        def waiting(waited_s: float) -> None:
            self._say(f'{self._dialect.address} has not greeted for {waited_s:.0f} s')

        talk = self._dialect.open(within_s, cancel, waiting)
        with self._changed:
            known = self._greeting
        if known is not None and talk.greeting != known:
            talk.close()
            raise HandshakeRefused(
                f'{self._dialect.address} is another server than before: it announced '
                f'{known!r:.300}, and now {talk.greeting!r:.300}; configure the node anew'
            )
        return talk

    def _done_opening(self, made: Talk | None) -> None:
        with self._changed:
            self._opening = False
            self._talk = made
            if made is not None:
                self._opened += 1
                self._given_up = False
                self._greeting = made.greeting
            self._changed.notify_all()

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

"""A conversation with a server that is begun when it is needed, and anew after it was lost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from seq_harness.client.cancel import Cancel
from seq_harness.client.held import Held
from seq_harness.client.plain_websocket import Waiting
from seq_harness.client.transport import HandshakeRefused
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


class PlainLink(Held[Talk]):
    """
    One conversation with a server.

    A server that announces something else than at first is another one, and refused. One that
    does not greet after we gave a conversation up may still be busy with it.
    """

    def __init__(self, dialect: Dialect, say: Callable[[str], None]) -> None:
        """`say` is told while a greeting is waited for."""
        super().__init__(dialect.address, self._begun, failing_tells=False)
        self._dialect = dialect
        self._say = say
        self._greeting: Any = None  # of the first conversation; whoever opens has it alone

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
        return super().connection(max(within_s, SHORTEST_S), cancel)

    def _begun(self, within_s: float, cancel: Cancel) -> Talk:
        def waiting(waited_s: float) -> None:
            self._say(f'{self._dialect.address} has not greeted for {waited_s:.0f} s')

        talk = self._dialect.open(within_s, cancel, waiting)
        if self._greeting is not None and talk.greeting != self._greeting:
            talk.close()
            raise HandshakeRefused(
                f'{self._dialect.address} is another server than before: it announced '
                f'{self._greeting!r:.300}, and now {talk.greeting!r:.300}; configure the node anew'
            )
        self._greeting = talk.greeting
        return talk

"""The contract between the loop and what answers its commands."""

from collections.abc import Mapping
from typing import Any, Protocol, TypeAlias

Commands: TypeAlias = Mapping[str, Any]
"""Channel name to value; empty means that there is nothing to emit (R4)."""

Observation: TypeAlias = Mapping[str, Any]
"""Key to value, each value read-only and made on its first read (R8)."""

POLL_NS = 10_000_000
"""How soon a session that waits for an answer wants to be called again: 10 ms."""

FLOOR_NS = 1_000_000
"""The shortest sleep of a loop: 1 ms (R39)."""

CEILING_NS = 1_000_000_000
"""The longest sleep of a loop: 1 s (R39)."""


class Session(Protocol):
    """Answer, round by round, the commands to run now and the instant of the next call."""

    def __call__(self, observation: Observation, t: int) -> tuple[Commands, int]:
        """
        Answer `(commands, resume_at_ns)` for the round at `t`, in ns of the caller's clock.

        `resume_at_ns > t`, strictly (R2). Never waits and never reads a clock (R5).
        """

    def cancel(self) -> None:
        """Drop what is in flight, so that the next call plans afresh (R6)."""

    def close(self) -> None:
        """Release what the session holds (R6)."""


class NotASession(TypeError):
    """What was to answer commands does not; says what to put above it (R9)."""


def require_session(candidate: object) -> None:
    """
    Refuse what answers chunks, or cannot be cancelled and closed, where a session is needed.

    Raises
    ------
    NotASession
        Says what came and what to do.

    """
    name = type(candidate).__name__
    if hasattr(candidate, 'infer'):
        raise NotASession(f'{name} answers chunks, not commands: put a ChunkPlayer above it')
    wanted = ('__call__', 'cancel', 'close')
    missing = [method for method in wanted if not callable(getattr(candidate, method, None))]
    if missing:
        raise NotASession(f'a session has {", ".join(wanted)}; {name} lacks {", ".join(missing)}')

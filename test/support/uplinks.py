"""A far side of playback whose answers a test makes visible by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from seq_harness.playback.ahead import Ahead
from seq_harness.playback.answer import NotAnswered
from seq_harness.playback.chunk import Chunk
from seq_harness.playback.session import Commands, Observation

MS = 1_000_000
S = 1_000_000_000


class HandAnswer:
    """An answer that is there once `give` or `fail` was called."""

    def __init__(self) -> None:
        self._outcome: list[Any] = []

    def give(self, chunk: Chunk | None) -> None:
        self._outcome = [chunk]

    def fail(self, error: Exception) -> None:
        self._outcome = [error]

    def done(self) -> bool:
        return bool(self._outcome)

    def result(self) -> Chunk | None:
        if not self._outcome:
            raise NotAnswered
        outcome = self._outcome[0]
        if isinstance(outcome, Exception):
            raise outcome
        chunk: Chunk | None = outcome
        return chunk


class HandUplink:
    """Collects asks; answers at once from `inline` while that holds chunks."""

    def __init__(self, inline: Sequence[Chunk | None] = ()) -> None:
        self.inline = list(inline)
        self.asks: list[tuple[int, Observation]] = []
        self.answers: list[HandAnswer] = []
        self.aheads: list[Ahead | None] = []
        self.committed: list[int] = []
        self.full = False

    def ask(
        self, observation: Observation, t: int, ahead: Ahead | None = None
    ) -> HandAnswer | None:
        if self.full:
            return None
        self.aheads.append(ahead)
        self.asks.append((t, observation))
        self.answers.append(HandAnswer())
        if self.inline:
            self.answers[-1].give(self.inline.pop(0))
        return self.answers[-1]

    def commit(self, at_ns: int) -> int:
        self.committed.append(at_ns)
        return at_ns


def rows(*values: Any, channel: str = 'arm') -> list[Commands]:
    """Return one row a value, all on one channel."""
    return [{channel: value} for value in values]

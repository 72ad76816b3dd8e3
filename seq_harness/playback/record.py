"""What was commanded last, channel by channel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from seq_harness.playback.kinds import Kinds
from seq_harness.playback.session import Commands


@dataclass(frozen=True)
class Emitted:
    """The value a channel was last commanded, and the instant it was due."""

    value: Any
    due_ns: int


class Record:
    """The last two commands of every channel; empty after a cancel, so that play starts anew."""

    def __init__(self) -> None:
        self.last: dict[str, Emitted] = {}
        self._before: dict[str, Emitted] = {}
        self.due_ns: int | None = None
        """The due instant of the newest command of all."""

    def note(self, commands: Commands, due_ns: int) -> None:
        """Take down commands that go out now."""
        last = self.last
        for name, value in commands.items():
            if name in last:
                self._before[name] = last[name]
            last[name] = Emitted(value, due_ns)
        self.due_ns = due_ns

    def clear(self) -> None:
        """Forget everything: what comes next is bounded from the measured state."""
        self.last.clear()
        self._before.clear()
        self.due_ns = None

    def change(self, channel: str, span_ns: int, kinds: Kinds) -> Any | None:
        """Return the change of `channel` over `span_ns` at its last speed; None if unknown."""
        before, last = self._before.get(channel), self.last.get(channel)
        if before is None or last is None or last.due_ns <= before.due_ns:
            return None
        change = kinds[channel].difference(before.value, last.value)
        return change * (span_ns / (last.due_ns - before.due_ns))

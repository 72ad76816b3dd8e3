"""What was commanded last, channel by channel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from seq_harness.playback.kinds import Kinds
from seq_harness.playback.session import Commands


@dataclass(frozen=True)
class Emitted:
    """The value a channel was last commanded, and the instant from which it was due."""

    value: Any
    due_ns: int
    """Of a row that is held over several commands, its own."""


@dataclass(frozen=True)
class Slowing:
    """A speed that runs out evenly: `change` is what it would come to over `span_ns`."""

    change: Any
    since_ns: int
    span_ns: int

    def left(self, at_ns: int) -> float:
        """Return the share of the speed that is left at an instant."""
        return max(0.0, 1.0 - max(0, at_ns - self.since_ns) / self.span_ns)


class Record:
    """The last two commands of every channel; empty after a cancel, so that play starts anew."""

    def __init__(self) -> None:
        self.last: dict[str, Emitted] = {}
        self._before: dict[str, Emitted] = {}
        self.slowing: dict[str, Slowing] = {}
        """The channels that are coming to rest, for want of rows."""
        self.due_ns: int | None = None
        """The due instant of the newest command of all."""

    def note(self, commands: Commands, due_ns: int, since_ns: int | None = None) -> None:
        """Take down commands that go out now, and are due since the same instant or an earlier."""
        last = self.last
        since_ns = due_ns if since_ns is None else since_ns
        for name, value in commands.items():
            before = last.get(name)
            if before is not None and before.due_ns < since_ns:
                self._before[name] = before
            last[name] = Emitted(value, since_ns)
        self.due_ns = due_ns

    def clear(self) -> None:
        """Forget everything: what comes next is bounded from the measured state."""
        self.last.clear()
        self._before.clear()
        self.slowing.clear()
        self.due_ns = None

    def change(self, channel: str, span_ns: int, kinds: Kinds) -> Any | None:
        """Return the change over `span_ns` at the speed of the last two commands, if known."""
        before, last = self._before.get(channel), self.last.get(channel)
        if before is None or last is None or last.due_ns <= before.due_ns:
            return None
        change = kinds[channel].difference(before.value, last.value)
        return change * (span_ns / (last.due_ns - before.due_ns))

    def speed(self, channel: str, at_ns: int, row_ns: int, kinds: Kinds) -> Any | None:
        """
        Return the change per ns that goes on at `at_ns`, where a row lasts `row_ns`.

        It is that of the last two commands over their own interval. None for a channel at rest:
        more than 1.5 rows after its last command, unless it is still coming to rest.
        """
        slowing, last = self.slowing.get(channel), self.last.get(channel)
        if slowing is not None:
            left = slowing.left(at_ns)
            return slowing.change * (left / slowing.span_ns) if left else None
        if last is None or 2 * (at_ns - last.due_ns) > 3 * row_ns:
            return None
        return self.change(channel, 1, kinds)

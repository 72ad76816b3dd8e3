"""What a harness said of its episodes on the topics of a recording."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
import json
from typing import Any

import numpy as np
from seq_harness.bags.records import Topic
from seq_harness.bags.report.data import Event, EventKind, Lines

STRING = 'std_msgs/msg/String'
DIAGNOSTICS = 'diagnostic_msgs/msg/DiagnosticArray'
EPISODE, INSTRUCTION = '/episode', '/instruction'

LEVELS = {0: 'OK', 1: 'WARN', 2: 'ERROR', 3: 'STALE'}

_COUNTED = (
    (('chunks', 'refused'), EventKind.GUARD, 'chunks refused'),
    (('rows', 'guarded'), EventKind.GUARD, 'values changed by the guard'),
    (('rows', 'dropped'), EventKind.GUARD, 'rows dropped'),
)
"""Counts by cause, a rise of which is an event."""


class Said:
    """Reads ~/episode, ~/instruction and /diagnostics, message by message."""

    def __init__(self) -> None:
        self.began_ns: int | None = None
        """When the first episode was live."""
        self.reason = ''
        self.figures: Mapping[str, Any] = {}
        self._events: list[tuple[int, EventKind, str]] = []
        self._state = ''
        self._levels: dict[str, int] = {}
        self._backlog: list[tuple[int, float]] = []

    @staticmethod
    def reads(topic: Topic) -> bool:
        """Tell whether a topic is one of these."""
        if topic.type == DIAGNOSTICS:
            return True
        return topic.type == STRING and topic.name.endswith((EPISODE, INSTRUCTION))

    def take(self, topic: str, message: Any, log_ns: int) -> None:
        """Take in one message."""
        if topic.endswith(EPISODE):
            self._take_episode(str(message.data), log_ns)
        elif topic.endswith(INSTRUCTION):
            self._events.append((log_ns, EventKind.INSTRUCTION, str(message.data)))
        else:
            self._take_diagnostics(message, log_ns)

    def events(self, start_ns: int) -> list[Event]:
        """Return what happened, in order."""
        return [
            Event((log_ns - start_ns) / 1e9, kind, text) for log_ns, kind, text in self._events
        ]

    def backlog(self, start_ns: int) -> Lines | None:
        """Return what waited to be sent to the worker; None where nothing says so."""
        if not self._backlog:
            return None
        t_s = np.array([(log_ns - start_ns) / 1e9 for log_ns, _ in self._backlog])
        values = np.array([[value] for _, value in self._backlog], np.float64)
        return Lines(('frames',), t_s, values)

    def _take_episode(self, text: str, log_ns: int) -> None:
        try:
            told = json.loads(text)
        except ValueError:
            return
        if not isinstance(told, dict) or 'state' not in told:
            return
        state = f'episode {told.get("episode", "")}: {told["state"]}'
        if told.get('reason'):
            state = f'episode {told.get("episode", "")} ended: {told["reason"]}'
            self.reason = str(told['reason'])
        elif told['state'] != 'idle' and self.began_ns is None:
            self.began_ns = log_ns
        if state != self._state:
            self._events.append((log_ns, EventKind.STATE, state))
        self._state = state
        self._rises(told, log_ns)
        self.figures = told
        waiting = _at(told, ('policy', 'stream', 'backlog'))
        if isinstance(waiting, int | float):
            self._backlog.append((log_ns, float(waiting)))

    def _rises(self, told: Mapping[str, Any], log_ns: int) -> None:
        """Note what was counted since the message before, in the same episode."""
        before = self.figures if self.figures.get('episode') == told.get('episode') else {}
        for path, kind, words in _COUNTED:
            for cause, more in _more(_at(told, path), _at(before, path)):
                refusal = _at(told, ('chunks', 'last_refusal')) if path[1] == 'refused' else ''
                said = f': {refusal}' if refusal else ''
                self._events.append((log_ns, kind, f'{words} ({cause}): {more} more{said}'))
        starved = (_number(told.get('starved_s')), _number(before.get('starved_s')))
        if starved[0] > starved[1]:
            text = f'without rows for {starved[0] - starved[1]:.3f} s since the last report'
            self._events.append((log_ns, EventKind.STARVED, text))

    def _take_diagnostics(self, message: Any, log_ns: int) -> None:
        for status in message.status:
            level = int(status.level) if hasattr(status.level, '__index__') else status.level[0]
            if self._levels.get(status.name, 0) != level:
                text = f'{status.name}: {LEVELS.get(level, level)}: {status.message}'
                self._events.append((log_ns, EventKind.FAULT, text))
            self._levels[status.name] = level


def _at(told: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    value: Any = told
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _more(now: Any, before: Any) -> Iterator[tuple[str, int]]:
    """Yield by how much each count by cause rose."""
    if not isinstance(now, Mapping):
        return
    for cause, count in now.items():
        rise = _number(count) - _number(before.get(cause) if isinstance(before, Mapping) else 0)
        if rise > 0:
            yield str(cause), int(rise)


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else 0.0

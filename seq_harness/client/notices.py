"""What people are told of a worker: each thing once, until it changes."""

from __future__ import annotations

from collections.abc import Callable
import logging
import math
import re
import threading
import time

log = logging.getLogger('seq_harness.client')

MAX_TOPICS = 64
"""Kinds of remarks that are remembered; beyond them nothing new is said."""


class Notices:
    """Pass texts on, from any thread, unless the last of their topic said the same."""

    def __init__(self, tell: Callable[[str], None] | None = None) -> None:
        self._tell = tell or log.warning
        self._lock = threading.Lock()  # held for a few assignments
        self._last: dict[str, tuple[str, float]] = {}  # under _lock

    def say(self, topic: str, text: str, again_s: float = math.inf) -> None:
        """
        Say `text`, unless the last text of `topic` differs from it in nothing but numbers.

        What was said may be said again after `again_s`.
        """
        if self._is_new(_kind(topic), _kind(text), again_s):
            self._pass_on(text)

    def clear(self, topic: str) -> None:
        """Forget what was said of `topic`, so that it can be said again."""
        with self._lock:
            self._last.pop(_kind(topic), None)

    def _is_new(self, topic: str, kind: str, again_s: float) -> bool:
        now_s = time.monotonic()
        with self._lock:
            last, said_s = self._last.get(topic, ('', -math.inf))
            if last == kind and now_s - said_s < again_s:
                return False
            if topic not in self._last and len(self._last) >= MAX_TOPICS:
                return False
            self._last[topic] = (kind, now_s)
            return True

    def _pass_on(self, text: str) -> None:
        try:
            self._tell(text)
        except Exception:
            log.exception('telling of the worker failed')


def _kind(text: str) -> str:
    """Leave the numbers out of a text."""
    return re.sub(r'[\d.]+', '#', text)

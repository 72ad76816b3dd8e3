"""What is wrong with inputs and outputs now: each fault is said once, and so is its end."""

from __future__ import annotations

from collections.abc import Callable

from seq_harness.inputs import Verdict

QUIET_NS = 5_000_000_000
"""What comes and goes is said no more often than this, by its name."""


class FaultLog:
    """Keeps the faults there are, and says what is new; used by the executor's thread alone."""

    def __init__(
        self,
        warn: Callable[[str], object],
        say: Callable[[str], object],
        now_ns: Callable[[], int],
    ) -> None:
        """`now_ns` reads a clock that never goes back."""
        self._warn = warn
        self._say = say
        self._now_ns = now_ns
        self.current: dict[str, str] = {}
        """What is wrong, by the name of what it is wrong with."""
        self._said_ns: dict[str, int] = {}
        self._announced: set[str] = set()
        """The faults of now that were said, so that their end is too."""

    def note(self, name: str, reason: str, verdict: Verdict) -> None:
        """Take what is wrong with `name` now, or an empty text where nothing is."""
        if reason:
            if name not in self.current:
                self._begin(name, reason, verdict)
            self.current[name] = reason
        elif self.current.pop(name, None) is not None and name in self._announced:
            self._announced.discard(name)
            self._say(f'{_subject(name)} is well again')

    def _begin(self, name: str, reason: str, verdict: Verdict) -> None:
        now_ns, last_ns = self._now_ns(), self._said_ns.get(name)
        if last_ns is not None and now_ns - last_ns < QUIET_NS:
            return
        self._said_ns[name] = now_ns
        self._announced.add(name)
        self._warn(f'{_subject(name)} {verdict.value}: {reason}')


def _subject(name: str) -> str:
    """Return what a fault is of: an input, unless its name says otherwise."""
    return name if name.startswith('the ') else f'input {name}'

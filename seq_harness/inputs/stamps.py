"""When a message was made: what its header stamp is worth, and what is odd about it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from seq_harness.settings import InputSettings

EARLY_NS = 100_000_000
"""A stamp further ahead of the node's clock than this was made by another clock."""

LATE_NS = 10_000_000_000
"""A stamp further behind than this was made by another clock, or belongs to another run."""

SET_BACK_NS = 1_000_000_000
"""A stamp that goes back by more than this is that of a clock that was set, or of another run."""

DRIFT = 100
"""Of two clocks that run on, one gains less on the other than this part of the time."""

SOURCES = 64
"""So many publishers of different names on the topics of one input are told apart."""


@dataclass(frozen=True)
class Aged:
    """How old a message is at its arrival."""

    stamp_ns: int
    """Its ROS time: the header's where that is plausible, else its arrival's."""
    born_ns: int
    """When it was made, on the playback clock."""
    advanced: bool = True
    """Whether its stamp is another than the last one's, or none is heeded."""
    proven: bool = True
    """False while nothing shows that a clock far from ours runs on."""
    odd: str = ''
    """Why its arrival counts in place of its stamp; empty where it does not."""
    doubt: str = ''
    """Why it counts for older than its arrival, where something is wrong; empty elsewhere."""


@dataclass(frozen=True)
class _Source:
    """The last stamp of one topic and set of names."""

    stamp_ns: int
    came_ns: int
    """When a message of that stamp came first, on the playback clock."""
    aged: Aged
    lag_ns: int = 0
    """How far it had fallen behind the arrivals, where it ran on."""
    plausible: bool = False
    """Whether one of its stamps has been."""


class Stamps:
    """
    Judge the header stamps of one input, each against the last of its topic and names.

    A stamp that is zero, or far from the clock, is replaced by the arrival. But one that stands
    still refreshes nothing, nor does one that falls behind the arrivals further and further.
    """

    def __init__(self, settings: InputSettings) -> None:
        self._name = settings.name
        self._heeded = settings.stamp != 'arrival'
        self._max_age_ns = round(settings.max_age_s * 1e9)
        self._sources: dict[tuple[str, ...], _Source] = {}

    def judge(self, message: Any, topic: str, now_ns: int, ros_now_ns: int) -> Aged:
        """Return how old a message is that came at `now_ns`, `ros_now_ns` of ROS time."""
        if not self._heeded or not hasattr(message, 'header'):
            return Aged(ros_now_ns, now_ns)
        header = message.header.stamp
        stamp_ns = header.sec * 1_000_000_000 + header.nanosec
        if not stamp_ns:
            odd = 'the header stamp is zero; its arrival is used instead'
            return Aged(ros_now_ns, now_ns, odd=odd)
        source = (topic, *getattr(message, 'name', ()))
        before = self._sources.get(source)
        if before is not None and stamp_ns == before.stamp_ns:
            return self._repeated(before, now_ns)
        if len(self._sources) >= SOURCES:
            self._sources.clear()
        made = self._advanced(before, stamp_ns, now_ns, ros_now_ns)
        self._sources[source] = made
        return made.aged

    def _advanced(
        self, before: _Source | None, stamp_ns: int, now_ns: int, ros_now_ns: int
    ) -> _Source:
        """Return what is known once a stamp has come that is not the last one's."""
        age_ns = ros_now_ns - stamp_ns
        if -EARLY_NS <= age_ns <= LATE_NS:
            lag_ns = max(0, age_ns)
            aged = Aged(stamp_ns, now_ns - lag_ns, doubt=self._behind(lag_ns))
            return _Source(stamp_ns, now_ns, aged, lag_ns, plausible=True)
        odd = _odd(age_ns)
        if before is None:
            return _Source(stamp_ns, now_ns, self._first(stamp_ns, age_ns, now_ns))
        made = replace(before, stamp_ns=stamp_ns, came_ns=now_ns)
        if before.plausible and before.stamp_ns - stamp_ns > SET_BACK_NS:
            # What comes next shows whether the clock runs on.
            return replace(made, aged=replace(before.aged, odd=odd, doubt=''), lag_ns=0)
        if before.plausible:
            return self._ran_on(made, before, ros_now_ns, odd)
        if stamp_ns > before.stamp_ns:
            return replace(made, aged=Aged(ros_now_ns, now_ns, odd=odd))
        return replace(made, aged=replace(before.aged, odd=odd))

    def _behind(self, lag_ns: int) -> str:
        """Say what is wrong with a message that is too old as it comes."""
        if lag_ns <= self._max_age_ns:
            return ''
        return (
            f'the header stamps are {lag_ns / 1e9:.2f} s old as they arrive: set the clocks of '
            'both machines, or see what delays the messages; where that is as it should be, set '
            f'inputs.{self._name}.max_age_s'
        )

    def _repeated(self, before: _Source, now_ns: int) -> Aged:
        """Return the age of what has the same stamp as the message before: that of it."""
        same_ns = now_ns - before.came_ns
        doubt = ''
        if 2 * same_ns > self._max_age_ns:
            doubt = (
                f'the header stamp has been the same for {same_ns / 1e9:.1f} s: see whether its '
                'sensor hangs; where its driver stamps all messages alike, set '
                f'inputs.{self._name}.stamp to arrival'
            )
        return replace(before.aged, advanced=False, odd='', doubt=doubt)

    def _first(self, stamp_ns: int, age_ns: int, now_ns: int) -> Aged:
        """Return the age of a first message, of a stamp that may be old, or of another clock."""
        lag_ns = abs(age_ns)
        aged = Aged(stamp_ns, now_ns - lag_ns, odd=_odd(age_ns))
        if lag_ns <= self._max_age_ns:
            return aged
        doubt = (
            f'the header stamp of its first message is {age_ns / 1e9:.1f} s before now, and none '
            'after it has advanced'
        )
        return replace(aged, proven=False, doubt=doubt)

    def _ran_on(self, made: _Source, before: _Source, ros_now_ns: int, odd: str) -> _Source:
        """Return how far stamps that were plausible have fallen behind since."""
        now_ns = made.came_ns
        passed_ns = now_ns - before.came_ns
        fell_ns = passed_ns - (made.stamp_ns - before.stamp_ns)
        lag_ns = max(0, before.lag_ns + fell_ns - passed_ns // DRIFT)
        aged = Aged(ros_now_ns - lag_ns, now_ns - lag_ns, odd=odd)
        if 2 * lag_ns > self._max_age_ns:
            doubt = (
                f'the header stamps have fallen {lag_ns / 1e9:.1f} s behind the arrivals: see '
                'what delays the messages, or set the clocks of both machines'
            )
            aged = replace(aged, odd='', doubt=doubt)
        return replace(made, aged=aged, lag_ns=lag_ns)


def _odd(age_ns: int) -> str:
    return (
        f'the header stamp is {age_ns / 1e9:.3f} s before now, not within '
        f'[{-EARLY_NS / 1e9:g}, {LATE_NS / 1e9:g}] s; its arrival is used instead'
    )

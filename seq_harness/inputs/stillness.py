"""For how long numbers that come together have been the same to the bit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from seq_harness.inputs.samples import Still
from seq_harness.inputs.stamps import SOURCES


class Stillness:
    """Follow the numbers of one input, those of each topic and set of names by themselves."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, ...], tuple[Mapping[str, float], Still]] = {}

    def note(
        self, topic: str, found: Mapping[str, float], came_ns: int, *, advanced: bool
    ) -> None:
        """Take the numbers of one message; `advanced` says whether its stamp is a new one."""
        source = (topic, *found)
        known = self._known.get(source)
        if known is None:
            if len(self._known) >= SOURCES:
                self._known.clear()
            self._known[source] = found, Still(topic, tuple(found), came_ns, 1, {})
            return
        last, still = known
        if last == found:
            still = replace(still, messages=still.messages + advanced)
        else:
            still = replace(still, since_ns=came_ns, messages=1, steps=_steps(still, last, found))
        self._known[source] = found, still

    def tell(self) -> tuple[Still, ...]:
        """Return what is known of every publisher."""
        return tuple(still for _, still in self._known.values())


def _steps(
    still: Still, last: Mapping[str, float], found: Mapping[str, float]
) -> Mapping[str, float]:
    """Return the smallest changes, once the numbers have gone from `last` to `found`."""
    changes = {name: abs(value - last[name]) for name, value in found.items()}
    smaller = {
        name: change
        for name, change in changes.items()
        if 0 < change < still.steps.get(name, float('inf'))
    }
    return {**still.steps, **smaller} if smaller else still.steps

"""The time that acts took, part by part, as numbers and as bars."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from seq_harness.bags.report.data import Act, Floats

WHOLE = 'asked to answered'


def by_part(acts: Sequence[Act]) -> Iterator[tuple[str, list[Act]]]:
    """Yield each part of acts with the acts that tell it, and at last the whole of them."""
    for part in dict.fromkeys(part for act in acts for part in act.parts_ms):
        yield part, [act for act in acts if part in act.parts_ms]
    answered = [act for act in acts if act.answered_s is not None]
    if answered:
        yield WHOLE, answered


def part_ms(act: Act, part: str) -> float:
    """Return how long a part of an act took, or all of it."""
    if part == WHOLE:
        return ((act.answered_s or 0.0) - act.asked_s) * 1e3
    return act.parts_ms[part]


def bars(acts: Sequence[Act], part: str, lane: int) -> tuple[Floats, Floats]:
    """Return a bar for that part of each act, where the parts before it end, with gaps between."""
    t_s, y = [], []
    for act in acts:
        begin_s = act.asked_s
        for name, taken_ms in act.parts_ms.items():
            if name == part:
                break
            begin_s += taken_ms / 1e3
        begin_s = act.asked_s if part == WHOLE else begin_s
        t_s += [begin_s, begin_s + part_ms(act, part) / 1e3, np.nan]
        y += [lane, lane, np.nan]
    return np.array(t_s, np.float64), np.array(y, np.float64)

"""Setpoints that hold several rows each as one line: each rules until the next takes its place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from seq_harness.bags.report.data import Floats, Lines

Plan: TypeAlias = tuple[Floats, Floats]
"""The instants of a message's rows in s, [R], and the rows, [R, J]."""


def spliced(names: Sequence[str], plans: Sequence[Plan]) -> Lines:
    """Return the rows that were in force, in order of time."""
    width = len(names)
    times: list[Floats] = []
    values: list[Floats] = []
    until_s = np.inf
    for t_s, rows in reversed(plans):
        held = t_s < until_s
        times.append(t_s[held])
        values.append(rows[held].reshape(-1, width))
        until_s = min([until_s, *t_s[:1]])
    if not times:
        return Lines(tuple(names), np.zeros(0), np.zeros((0, width)))
    return Lines(tuple(names), np.concatenate(times[::-1]), np.concatenate(values[::-1]))

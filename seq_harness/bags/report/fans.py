"""Many chunks as one line with gaps, which draws far quicker than many lines."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from seq_harness.bags.report.data import Lines, Prediction

GAP = np.array([np.nan])


def chunk_stride(chunks: Sequence[Prediction], most: int) -> int:
    """Return of how many chunks one is drawn, so that a fan has about `most` points a joint."""
    return max(1, -(-sum(len(each.t_s) + 1 for each in chunks) // max(most, 1)))


def joined(chunks: Sequence[Prediction], names: tuple[str, ...]) -> Lines:
    """Return the rows of chunks one after the other, with a gap after each."""
    empty = np.full((1, len(names)), np.nan)
    t_s = np.concatenate([part for each in chunks for part in (each.t_s, GAP)])
    values = np.concatenate([part for each in chunks for part in (each.values, empty)])
    return Lines(names, t_s, values)

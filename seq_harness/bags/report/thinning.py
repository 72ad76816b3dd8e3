"""Fewer points to draw of a long line, with every extreme still there."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from seq_harness.bags.report.data import Floats, Lines


def kept(values: Floats, most: int) -> npt.NDArray[np.intp]:
    """
    Return which of the points of lines [N, J] to draw: about `most`, or all where they are fewer.

    The points fall into equal buckets; of each, the lowest and the highest of every line stay, so
    that no spike is lost.
    """
    count, width = values.shape
    if count <= max(most, 2) or not width:
        return np.arange(count)
    buckets = max(1, most // (2 * width))
    edges = np.linspace(0, count, buckets + 1).astype(np.intp)[:-1]
    size = int(np.diff(np.append(edges, count)).max())
    places = np.minimum(edges[:, None] + np.arange(size)[None], count - 1)
    held = {0, count - 1}
    for column in range(width):
        line = values[:, column][places]
        lowest = np.argmin(np.where(np.isnan(line), np.inf, line), axis=1)
        highest = np.argmax(np.where(np.isnan(line), -np.inf, line), axis=1)
        held.update(places[np.arange(len(edges)), lowest].tolist())
        held.update(places[np.arange(len(edges)), highest].tolist())
    return np.array(sorted(held), np.intp)


def thinned(lines: Lines, most: int) -> Lines:
    """Return the lines with about `most` points each, or as they are where they have fewer."""
    keep = kept(lines.values, most)
    if len(keep) == len(lines):
        return lines
    return Lines(lines.names, lines.t_s[keep], lines.values[keep])

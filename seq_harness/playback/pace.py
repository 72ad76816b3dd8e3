"""How chunks and answers go together: how long the arm stands between two chunks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from seq_harness.playback.asking import shown_rows
from seq_harness.playback.chunk import Chunk
from seq_harness.playback.modes import DRAIN, Mode

SETTLED = 5
"""So many chunks have played before it is told how they go."""
LEAST_S = 0.005
"""A shorter stop is none."""


@dataclass(frozen=True)
class Pace:
    """What a person is told of it, in seconds."""

    chunk_s: float
    answer_s: float
    stands_s: float
    """How long the arm stands a chunk, on average."""
    drains: bool
    """Whether a lead asks as `drain` does, since answers take as long as a chunk."""

    @property
    def stands(self) -> bool:
        """Whether there is a stop between chunks."""
        return self.stands_s >= LEAST_S

    def __str__(self) -> str:
        said = f'chunk {self.chunk_s:.2f} s, answers {self.answer_s:.2f} s: '
        if not self.stands:
            return said + 'no stop between chunks'
        said += f'the arm stands about {self.stands_s:.2f} s a chunk'
        return said + (', and the next is asked for at its end, as drain does' * self.drains)


def expected_pace(mode: Mode, chunk: Chunk, answer_s: float) -> Pace | None:
    """Return how chunks like this one go with such answers; None where the mode leaves it open."""
    rows, chunk_s = len(chunk.rows), chunk.end_ns / 1e9
    drains = mode.leads_on and answer_s >= chunk_s
    if mode.asking == DRAIN or drains:
        return Pace(chunk_s, answer_s, answer_s, drains)
    if not (mode.leads_on and rows):
        return None
    # Each answer moves the arm by half of a chunk and of the rows that show before the next ask.
    lead_s = min(mode.lead_ns or mode.lead_cap_ns, mode.lead_cap_ns) / 1e9
    shown_s = chunk_s * shown_rows(rows) / rows
    stands_s = max(0.0, answer_s - (chunk_s - shown_s) / 2, answer_s - lead_s)
    return Pace(chunk_s, answer_s, stands_s, drains=False)


def measured_pace(mode: Mode, figures: Mapping[str, Any]) -> Pace | None:
    """Return how chunks go by the figures of an episode; None before some have played."""
    chunks = figures.get('chunks', {})
    played, chunk_ms = chunks.get('played', 0), chunks.get('lasts_ms')
    answer_ms = figures.get('answer_delay_ms', {}).get('p50')
    if played < SETTLED or not chunk_ms or answer_ms is None:
        return None
    drains = mode.leads_on and answer_ms >= chunk_ms
    # It has stood behind all of them but the one that plays.
    stands_s = figures['starved_s'] / (played - 1)
    return Pace(chunk_ms / 1e3, answer_ms / 1e3, stands_s, drains)

"""How much of a chunk is played before the next one takes over."""

from __future__ import annotations

from dataclasses import dataclass

from seq_harness.playback.chunk import Chunk


@dataclass(frozen=True)
class Horizon:
    """An open-loop horizon in rows, in ns, or whichever comes first; None for no bound."""

    rows: int | None = None
    span_ns: int | None = None

    def cut(self, chunk: Chunk) -> Chunk:
        """
        Return `chunk` with the rows past the horizon set aside as `beyond`.

        At least one row is kept; a policy's last chunk, after which nothing is asked, stays whole.
        """
        if chunk.end_reason is not None or not chunk.rows:
            return chunk
        kept = len(chunk.rows) if self.rows is None else min(self.rows, len(chunk.rows))
        if self.span_ns is not None:
            kept = min(kept, sum(row.offset_ns < self.span_ns for row in chunk.rows))
        return chunk.cut(max(1, kept))

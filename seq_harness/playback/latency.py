"""A slower policy than the one that is there, to try what a robot makes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
import math
from typing import Any

from seq_harness.playback.layers import ChunkLayer
from seq_harness.playback.scope import Infer
from seq_harness.playback.uplink import Step


class Latency(ChunkLayer):
    """Hold every answer back, once an inference, below the player (R74)."""

    name = 'latency'

    def __init__(self, seconds: float, wait: Callable[[float], None]) -> None:
        """`wait` blocks the thread of the inference for so many seconds."""
        if not (math.isfinite(seconds) and seconds >= 0):
            raise ValueError(f'a latency must be finite seconds from 0, got {seconds!r}')
        self._seconds = seconds
        self._wait = wait

    def _under(self, infer: Infer) -> Infer:
        def slow(step: Step, plan: Mapping[str, Any] | None = None) -> Any:
            answer = infer(step, plan)
            self._wait(self._seconds)
            return answer

        return slow

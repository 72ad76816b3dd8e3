"""The reasons for which an error ends an episode."""

from __future__ import annotations

import logging

from seq_harness.inputs import InputChanged
from seq_harness.observation import ObservationRefused
from seq_harness.playback.chunk import ChunkRefused
from seq_harness.playback.uplink import PolicyError, StateLost, WorkerLost

logger = logging.getLogger(__name__)


def reason_of(error: Exception) -> str:
    """Name the reason for which an error ends an episode."""
    if isinstance(error, WorkerLost):
        return f'worker_lost: {error}'
    if isinstance(error, StateLost):
        return f'policy_state_lost: {error}'
    if isinstance(error, PolicyError):
        return f'policy_error: {error}'
    if isinstance(error, ChunkRefused):
        return f'guard: {error}'
    if isinstance(error, InputChanged):
        return f'input_changed: {error}'
    if isinstance(error, ObservationRefused):
        return f'input_refused: {error}'
    logger.error('a round failed', exc_info=error)
    return f'exception: {type(error).__name__}: {error}'

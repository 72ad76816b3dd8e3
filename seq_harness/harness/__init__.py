"""The loop, and what other threads may ask of it."""

from seq_harness.harness.holding import Unavailable
from seq_harness.harness.loop import Clock, Harness
from seq_harness.harness.manual import Manual, ManualGuard
from seq_harness.harness.parts import Parts
from seq_harness.harness.requests import (
    Hold,
    OnInstruction,
    RequestAnswer,
    Requests,
    StartAnswer,
)
from seq_harness.harness.running import Limits, Opened, Report, State, Timing

__all__ = [
    'Clock',
    'Harness',
    'Hold',
    'Limits',
    'Manual',
    'ManualGuard',
    'OnInstruction',
    'Opened',
    'Parts',
    'Report',
    'RequestAnswer',
    'Requests',
    'StartAnswer',
    'State',
    'Timing',
    'Unavailable',
]

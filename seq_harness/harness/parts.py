"""What a loop is put together of, before it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields

from seq_harness.harness.holding import Unavailable
from seq_harness.harness.loop import Clock, Harness
from seq_harness.harness.manual import ManualGuard
from seq_harness.harness.requests import OnInstruction, Requests
from seq_harness.harness.running import Limits, Opened
from seq_harness.inputs import Inputs, Snapshot
from seq_harness.observation import ObservationSpec
from seq_harness.outputs import Outputs


def _nobody() -> None:
    """Wake nobody."""


@dataclass(frozen=True)
class Parts:
    """The arguments of a `Harness`, so that each may be wrapped before they are used."""

    clock: Clock
    inputs: Inputs
    outputs: Outputs
    spec: ObservationSpec
    open_episode: Callable[[], Opened]
    limits: Limits
    instruction: str
    look: Callable[[], Snapshot]
    unavailable: Unavailable
    wake: Callable[[], None] = _nobody
    on_change: Callable[[], None] = _nobody
    on_instruction: OnInstruction = OnInstruction.NEXT_ACT
    manual: ManualGuard | None = None
    reap: Callable[[float], int] = lambda within_s: 0
    await_instant: Callable[[int], None] = lambda instant_ns: None
    clock_step_ns: Callable[[], int] = lambda: 0
    number: int = 0
    requests: Requests = field(default_factory=Requests)

    def harness(self) -> Harness:
        """Return the loop that they make."""
        return Harness(**{item.name: getattr(self, item.name) for item in fields(self)})

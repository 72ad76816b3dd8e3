"""Hold the arm while a status says that it is unavailable, or an input is late."""

from __future__ import annotations

from collections.abc import Sequence

from seq_harness.inputs import Inputs
from seq_harness.observation import SampledObservation
from seq_harness.playback.faults import StopOnFault
from seq_harness.playback.session import Observation
from seq_harness.settings import InputSettings


class StopOnInputs(StopOnFault):
    """Above the player: cancel what plays while an input says so, then plan afresh (R84, R86)."""

    name = 'stop_on_inputs'

    def __init__(self, inputs: Sequence[InputSettings]) -> None:
        super().__init__(keys=())
        # Only its rules are used: what is known of the inputs comes with each observation.
        self._inputs = Inputs(inputs)

    @staticmethod
    def needed(inputs: Sequence[InputSettings]) -> bool:
        """Return whether any of the inputs may hold the arm."""
        return any(item.is_status or item.on_stale == 'hold' for item in inputs)

    def faulty(self, observation: Observation) -> list[str]:
        """Say what holds the arm; a status that is absent or too old does."""
        if not isinstance(observation, SampledObservation):
            raise TypeError(f'a sampled observation was expected, got {type(observation)}')
        snapshot, t = observation.snapshot, observation.t_ns
        reason = self._inputs.unavailable(snapshot, t)
        return [*self._inputs.held(snapshot, t), *([reason] if reason else [])]

"""Deltas of the observation become positions, below the player."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from seq_harness.playback.chunk import ChunkRefused
from seq_harness.playback.kinds import Kind
from seq_harness.playback.layers import ChunkLayer
from seq_harness.playback.rotations import Vector
from seq_harness.playback.scope import Infer, map_rows
from seq_harness.playback.session import Commands, Observation
from seq_harness.playback.uplink import Step


class AbsoluteDeltas(ChunkLayer):
    """
    Add the state that was sent to every row of the channels named.

    What the player holds is then absolute, so that the last row wins (R22).
    """

    name = 'absolute_deltas'
    reversible = False

    def __init__(
        self, kinds: Mapping[str, Kind], state_of: Callable[[Observation], Mapping[str, Vector]]
    ) -> None:
        """`kinds` are those of the states; `state_of` reads them from the observation asked."""
        self._kinds = dict(kinds)
        self._state_of = state_of

    def _under(self, infer: Infer) -> Infer:
        def absolute(step: Step, plan: Mapping[str, Any] | None = None) -> Any:
            return self.applied(infer(step, plan), step.observation)

        return absolute

    def applied(self, chunk: Any, observation: Observation) -> Any:
        """
        Return `chunk` with the state of `observation` added.

        Raises
        ------
        ChunkRefused
            The observation has no state of a channel, or a row has another width than it.

        """
        state = self._state_of(observation)
        missing = sorted(set(self._kinds) - set(state))
        if missing:
            raise ChunkRefused(
                f'the channels {missing} carry deltas of the observation, which has no state of '
                'theirs to add them to',
                'no_state',
            )
        return map_rows(chunk, lambda commands: self._row(commands, state))

    def _row(self, commands: Commands, state: Mapping[str, Vector]) -> Commands:
        row = dict(commands)
        for name in self._kinds.keys() & commands.keys():
            try:
                row[name] = self._kinds[name].moved(state[name], commands[name])
            except ValueError as error:
                raise ChunkRefused(f'channel {name!r}: {error}', 'width') from error
        return row

"""Cameras that change what they send while an episode plays."""

from __future__ import annotations

from seq_harness.inputs import InputChanged
from seq_harness.observation import SampledObservation
from seq_harness.playback.layers import PassedOn, SessionLayer
from seq_harness.playback.session import Commands, Observation, Session


class StopOnChange(SessionLayer):
    """
    Above the player: end an episode whose camera changes its encoding or size.

    The policy would go on with another picture than the one that it began with.
    """

    name = 'stop_on_change'

    def _over(self, inner: Session) -> Session:
        return _Watching(inner)


class _Watching(PassedOn):
    """The session of one episode under `StopOnChange`."""

    def __init__(self, inner: Session) -> None:
        super().__init__(inner)
        self._forms: dict[str, str] = {}

    def __call__(self, observation: Observation, t: int) -> tuple[Commands, int]:
        """
        Pass a round on.

        Raises
        ------
        InputChanged
            A camera sends another encoding or size than at first; names it and both.

        """
        if not isinstance(observation, SampledObservation):
            raise TypeError(f'a sampled observation was expected, got {type(observation)}')
        for name, sample in observation.snapshot.items():
            if sample.form and self._forms.setdefault(name, sample.form) != sample.form:
                raise InputChanged(
                    f'{name} began with frames of {self._forms[name]}, and now sends '
                    f'{sample.form}: have its camera keep one, and start again'
                )
        return self._inner(observation, t)

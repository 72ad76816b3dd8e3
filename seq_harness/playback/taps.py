"""Recorders of what passes, on either side of the player."""

from __future__ import annotations

from collections.abc import Callable, Mapping
import logging
from typing import Any

from seq_harness.playback.layers import ChunkLayer, PassedOn, SessionLayer
from seq_harness.playback.scope import Infer
from seq_harness.playback.session import Commands, Observation, Session
from seq_harness.playback.uplink import Step

logger = logging.getLogger(__name__)

RecordRound = Callable[[Observation, int, Commands], None]
"""Takes the observation, the instant in ns and the commands of one round."""

RecordChunk = Callable[[Step, Any], None]
"""Takes the step that an inference was started for, and what it answered, as it came."""


class RoundTap(SessionLayer):
    """A tap above the player: one command set a round, empty ones included (R77)."""

    def __init__(self, record: RecordRound, name: str = 'round_tap') -> None:
        """`record` runs on the control thread, so it must only put aside what it is given."""
        self.name = name
        self._record = record

    def _over(self, inner: Session) -> Session:
        return _Tapped(inner, _Quiet(self.name, self._record))


class ChunkTap(ChunkLayer):
    """
    A tap below the player: one observation and one chunk an inference (R77).

    A chunk is recorded against the step that started the work (R79); what came is forwarded as
    it is, whichever form a chunk has (R78, R80).
    """

    def __init__(self, record: RecordChunk, name: str = 'chunk_tap') -> None:
        """`record` runs where the inference runs."""
        self.name = name
        self._record = record

    def _under(self, infer: Infer) -> Infer:
        record = _Quiet(self.name, self._record)

        def tapped(step: Step, plan: Mapping[str, Any] | None = None) -> Any:
            answer = infer(step, plan)
            record(step, answer)
            return answer

        return tapped


class _Tapped(PassedOn):
    def __init__(self, inner: Session, record: RecordRound) -> None:
        super().__init__(inner)
        self._record = record

    def __call__(self, observation: Observation, t: int) -> tuple[Commands, int]:
        answer = self._inner(observation, t)
        self._record(observation, t, answer[0])
        return answer


class _Quiet:
    """A recorder whose failure changes nothing of what plays; it is said once."""

    def __init__(self, name: str, record: Callable[..., None]) -> None:
        self._name = name
        self._record = record
        self._failed = False

    def __call__(self, *what: Any) -> None:
        try:
            self._record(*what)
        except Exception:
            if not self._failed:
                logger.exception('the recorder of %r failed; what plays goes on', self._name)
            self._failed = True

"""A policy that answers what it was told to, for tests and rehearsals."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
import threading
from typing import Any

from seq_harness.contract.episode import Episode
from seq_harness.contract.own_io import Actions, Observations
from seq_harness.contract.params import InferParam


class ScriptedFailure(RuntimeError):
    """The failure that a script asked for."""


class Scripted:
    """
    Answer the given chunks in turn, in every episode from the first; the last one goes on.

    `errors` names acts of an episode, from 0, that fail instead, and with what message. An act
    waits `delay_s` first, and loading `load_s`. An act's own parameters `delay_s` and `error`
    come before both. `loads`, `begun`, `over` and `seen` tell what the policy was asked: how often
    to load, the ids of the episodes that began and ended, and the last `keeps` inputs.
    """

    name = 'scripted'

    def __init__(
        self,
        chunks: Sequence[Any] = ({'actions': [[0.0]]},),
        *,
        delay_s: float = 0.0,
        load_s: float = 0.0,
        errors: Mapping[int, str] | None = None,
        observations: Observations | Mapping[str, Any] | None = None,
        actions: Actions | Mapping[str, Any] | None = None,
        columns: Sequence[str] | None = None,
        keeps: int = 0,
    ) -> None:
        self.observations = observations
        self.actions = actions
        self.columns = columns
        self.params = {
            'delay_s': InferParam(type='float', default=delay_s, min=0.0),
            'error': InferParam(type='str', default=''),
        }
        self.load_s = load_s
        self.loads = 0
        self.seen: deque[Any] = deque(maxlen=keeps)
        self.begun: list[str] = []
        self.over: list[str] = []
        self.release = threading.Event()
        """Cuts every delay short once it is set."""
        self._chunks = list(chunks)
        self._errors = {int(act): message for act, message in (errors or {}).items()}

    def load(self) -> None:
        """Take the time that loading was told to take."""
        self.release.wait(self.load_s)
        self.loads += 1

    def episode_start(self, episode: Episode) -> None:
        """Note that an episode begins."""
        self.begun.append(episode.id)

    def episode_end(self, episode: Episode) -> None:
        """Note that an episode is over."""
        self.over.append(episode.id)

    def infer(self, inputs: Any, *, params: Mapping[str, Any], episode: Episode) -> Any:
        """Answer the next chunk of the episode."""
        turn = episode.state.get('turn', 0)
        episode.state['turn'] = turn + 1
        self.seen.append(inputs)
        self.release.wait(params['delay_s'])
        message = params['error'] or self._errors.get(turn, '')
        if message:
            raise ScriptedFailure(message)
        return self._chunks[min(turn, len(self._chunks) - 1)]

"""Whether anything moves while a rate is commanded; it is said, and ends nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from seq_harness.observation import SampledObservation
from seq_harness.playback.session import Commands, Observation
from seq_harness.settings import Settings
from seq_harness.settings.input_types import JOINT_STATE

COMMANDED_NS = 3_000_000_000
"""A rate that is commanded for this long moves its robot, where nothing keeps it."""

LEADS, MOVES = 0.05, 0.005
"""How far the rate must lead meanwhile, and how far no joint may have moved, in rad or m."""

LAPSE_NS = 1_500_000_000
"""After so long without a round a rate is commanded anew."""


@dataclass
class _Rate:
    """What a channel was commanded last."""

    value: Any
    since_ns: int
    led: float = 0.0


class StandingRates:
    """
    Find rates that are commanded while every joint stands, as behind a stop of the robot's own.

    The paced thread records; any thread may read `said`.
    """

    def __init__(self, settings: Settings) -> None:
        self._channels = [item.name for item in settings.channels if item.kind == 'velocity']
        self._inputs = [
            item.name
            for item in settings.inputs
            if item.type == JOINT_STATE and item.field == 'position'
        ]
        self.said: dict[str, str] = {}
        """What is wrong, by channel; replaced whole."""
        self.begin()

    @property
    def needed(self) -> bool:
        """Whether there are rates, and joints that are measured."""
        return bool(self._channels and self._inputs)

    def begin(self) -> None:
        """Forget what an earlier episode did."""
        self._rates: dict[str, _Rate] = {}
        self._stood: list[float] = []
        self._at_ns: int | None = None
        self.said = {}

    def record(self, observation: Observation, t: int, commands: Commands) -> None:
        """Take the commands of the round at `t`."""
        passed_ns = t - (t if self._at_ns is None else self._at_ns)
        self._at_ns = t
        places = self._places(observation)
        moved = len(places) != len(self._stood) or any(
            abs(now - then) > MOVES for now, then in zip(places, self._stood, strict=True)
        )
        if moved or passed_ns > LAPSE_NS:
            self._stood = places
            for rate in self._rates.values():
                rate.since_ns, rate.led = t, 0.0
        said = {}
        for name in self._channels:
            known = self._rates.get(name)
            if known is not None:
                known.led += float(np.max(np.abs(known.value))) * passed_ns / 1e9
                if t - known.since_ns >= COMMANDED_NS and known.led > LEADS:
                    said[name] = _said(name, t - known.since_ns)
            self._take(name, commands, t)
        if said.keys() != self.said.keys():
            self.said = said

    def _take(self, name: str, commands: Commands, t: int) -> None:
        if name not in commands:
            return
        value = np.asarray(commands[name])
        known = self._rates.get(name)
        if not value.any():
            self._rates.pop(name, None)
        elif known is None:
            self._rates[name] = _Rate(value, t)
        else:
            known.value = value

    def _places(self, observation: Observation) -> list[float]:
        if not isinstance(observation, SampledObservation):
            raise TypeError(f'a sampled observation was expected, got {type(observation)}')
        snapshot = observation.snapshot
        return [
            value
            for name in self._inputs
            if name in snapshot
            for value in snapshot[name].value.values()
        ]


def _said(name: str, since_ns: int) -> str:
    return (
        f'{name} has been commanded for {since_ns / 1e9:.1f} s, and no joint has moved: see '
        'whether the robot is stopped, its controller is active and takes what is sent'
    )

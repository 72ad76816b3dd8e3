"""How the settings say that chunks are to be played: the parts of a player."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from seq_harness.inputs import Still
from seq_harness.observation import joint_values_of, SampledObservation
from seq_harness.pipeline.moving import moving_channels
from seq_harness.pipeline.shadowing import ShadowDistance
from seq_harness.playback.absolute import AbsoluteDeltas
from seq_harness.playback.by_hand import ByHand
from seq_harness.playback.channels import Vector
from seq_harness.playback.expiry import Expiry
from seq_harness.playback.freezing import Freezing, Tell
from seq_harness.playback.guard import Guard, GuardPolicy, Limits, OnBreach
from seq_harness.playback.horizon import Horizon
from seq_harness.playback.kinds import kind_named, KindRefused, Kinds, OF_OBSERVATION, Position
from seq_harness.playback.modes import Mode, ModeRefused, parts_of
from seq_harness.playback.player import ChunkPlayer
from seq_harness.playback.session import Observation
from seq_harness.playback.shadow import ShadowGuard
from seq_harness.playback.starvation import Starvation, Starve
from seq_harness.playback.tracking import Tracking
from seq_harness.playback.uplink import Uplink
from seq_harness.playback.whole import WholeChunks
from seq_harness.settings import Settings
from seq_harness.settings.parameters import SettingsError
from seq_harness.settings.play_parameters import AUTOMATIC

STARVED_S = 10.0
"""How long an episode may be without rows, unless told otherwise."""

BEYOND_RECONNECT_S = 5.0
"""How much longer than a lost worker is looked for."""


class Playing:
    """Make the players of one harness; every episode has its own."""

    def __init__(
        self,
        settings: Settings,
        period_ns: int,
        declared_rows: int | None,
        on_frozen: Tell | None = None,
    ) -> None:
        """
        Take the settings for rows of `period_ns`; the policy may declare an open-loop horizon.

        `on_frozen` hears of a frozen state in place of the player, which then plays on.

        Raises
        ------
        SettingsError
            Two parameters contradict each other.

        """
        self._settings = settings
        self._period_ns = period_ns
        self._on_frozen = on_frozen
        self._moving = moving_channels(settings)
        try:
            self._kinds = Kinds(
                {item.name: kind_named(item.kind, item.delta_of) for item in settings.channels}
            )
            self.mode = self._mode(declared_rows)
            self._parts()
        except (KindRefused, ModeRefused, ValueError) as error:
            raise SettingsError(str(error)) from error

    def player(self, uplink: Uplink) -> ChunkPlayer:
        """Return the player of a new episode."""
        return ChunkPlayer(uplink, **self._parts())

    @property
    def max_starved_s(self) -> float:
        """Return for how long an episode may be without rows, in seconds; 0 for no bound."""
        asked_s: float = self._settings['max_starved_s']
        reconnect_s: float = self._settings['reconnect_s']
        if asked_s != AUTOMATIC:
            return asked_s
        return max(STARVED_S, reconnect_s + BEYOND_RECONNECT_S)

    def describe_starving(self) -> str:
        """Say for how long an episode may be without rows."""
        if not self.max_starved_s:
            return 'an episode without rows goes on (max_starved_s is 0)'
        how = ', automatic' if self._settings['max_starved_s'] == AUTOMATIC else ''
        return f'an episode without rows for {self.max_starved_s:g} s ends (max_starved_s{how})'

    @property
    def absolute(self) -> AbsoluteDeltas | None:
        """Return what makes deltas of the observation absolute, below the player, if any do."""
        kinds = {
            item.name: Position()
            for item in self._settings.channels
            if item.delta_of == OF_OBSERVATION
        }
        return AbsoluteDeltas(kinds, self.measured) if kinds else None

    def measured(self, observation: Observation) -> Mapping[str, Vector]:
        """Return the measured position of every channel, from the round's own samples."""
        snapshot = _sampled(observation).snapshot
        return {
            item.name: joint_values_of(snapshot[item.state], item.joints)
            for item in self._settings.channels
            if item.state
        }

    def still(self, observation: Observation) -> Mapping[str, tuple[Still, ...]]:
        """Return for how long what measures each channel has been the same."""
        snapshot = _sampled(observation).snapshot
        return {name: snapshot[state].still for name, (state, _) in self._moving.items()}

    def limits(self) -> dict[str, Limits]:
        """Return what each channel may be commanded."""
        return {
            item.name: Limits(
                joints=item.joints,
                lower=np.array(item.lower),
                upper=np.array(item.upper),
                max_velocity=np.array(item.max_velocity),
                max_start_distance=np.full(len(item.joints), item.max_start_distance),
            )
            for item in self._settings.channels
        }

    def shadow(self) -> ShadowDistance | None:
        """Return what compares a preview with what the robot does; None where it plays."""
        if not self._settings['preview']:
            return None
        return ShadowDistance(self._settings.channels, self._kinds, self.measured)

    def by_hand(self) -> ByHand:
        """Return what manual commands must pass."""
        return ByHand(self._guard(), self.measured, self._period_ns)

    def _parts(self) -> dict[str, Any]:
        return {
            **parts_of(self.mode, self._period_ns, self._kinds),
            'guard': self._guard(),
            'measured': self.measured,
            'starvation': self._starvation(),
            'expiry': self._expiry(),
            'tracking': self._tracking(),
            'freezing': self._freezing(),
            'still': self.still,
            'whole': WholeChunks(
                [item.name for item in self._settings.channels if item.horizon == 'chunk'],
                _ns(self._settings['max_ahead_s']),
            ),
        }

    def _mode(self, declared_rows: int | None) -> Mode:
        of = self._settings
        rows = [count for count in (declared_rows, of['horizon_rows']) if count]
        mode = Mode(
            asking=of['asking'],
            lead_ns=_ns(of['lead_s']) or None,
            lead_margin_ns=_ns(of['lead_margin_s']),
            lead_cap_ns=_ns(of['lead_cap_s']),
            estimate=of['delay_estimate'],
            estimate_window=of['delay_window'],
            estimate_percent=of['delay_percentile'],
            threshold=of['ask_threshold'],
            every_rows=of['ask_rows'],
            handoff=of['handoff'],
            anchor=of['anchor'] or None,
            seam_rows=of['seam_rows'],
            blend_rows=of['blend_rows'],
            ensemble_decay=of['ensemble_decay'],
            aggregate=of['aggregate'],
            horizon=Horizon(min(rows, default=None), _ns(of['horizon_s']) or None),
            output_period_ns=round(1e9 / of['output_hz']) if of['output_hz'] else None,
            interpolation=of['interpolation'],
            row_means=of['row_means'],
        )
        # A preview's robot never went where the last command was: no velocity leads on from it.
        return replace(mode, seam_rows=0) if of['preview'] else mode

    def _guard(self) -> Guard:
        guard = ShadowGuard if self._settings['preview'] else Guard
        policy = GuardPolicy(
            limits=OnBreach(self._settings['guard_limits']),
            step=OnBreach(self._settings['guard_step']),
            start=OnBreach(self._settings['guard_start']),
        )
        return guard(self.limits(), self._period_ns, self._kinds, policy)

    def _starvation(self) -> Starvation:
        policies = {
            item.name: Starve(item.starvation)
            for item in self._settings.channels
            if item.starvation
        }
        return Starvation(
            self._kinds,
            policies,
            period_ns=self.mode.output_period_ns or self._period_ns,
            decelerate_ns=_ns(self._settings['decelerate_s']),
            limit_ns=_ns(self.max_starved_s) or None,
            act_ns=_ns(self._settings['act_timeout_s']),
        )

    def _expiry(self) -> Expiry:
        return Expiry(
            request_ns=_ns(self._settings['max_ask_age_s']) or None,
            arrival_ns=_ns(self._settings['max_answer_age_s']) or None,
            age_of=_age_ns,
        )

    def _tracking(self) -> Tracking | None:
        bounds = {
            item.name: np.full(len(item.max_velocity), item.max_tracking_error)
            for item in self._settings.channels
            if item.max_tracking_error
        }
        if not bounds or self._settings['preview']:
            return None
        joints = {item.name: item.joints for item in self._settings.channels}
        return Tracking(bounds, _ns(self._settings['tracking_error_s']), self._kinds, joints)

    def _freezing(self) -> Freezing | None:
        if not self._moving or self._settings['preview']:
            return None
        moving = {name: each for name, (_, each) in self._moving.items()}
        return Freezing(moving, self._kinds, self._on_frozen)


def _ns(seconds: float) -> int:
    return round(seconds * 1e9)


def _sampled(observation: Observation) -> SampledObservation:
    if not isinstance(observation, SampledObservation):
        raise TypeError(f'a sampled observation was expected, got {type(observation)}')
    return observation


def _age_ns(observation: Observation, t: int) -> int:
    samples = _sampled(observation).snapshot.values()
    return max((t - sample.born_ns for sample in samples), default=0)

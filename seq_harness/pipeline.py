"""What the settings and a policy's declaration build together: the parts of an episode."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack

import numpy as np
from seq_harness.contract.connect import WorkerDeclaration
from seq_harness.episode import Episode, Start
from seq_harness.harness import Opened
from seq_harness.observation import joint_values_of, ObservationSpec, SampledObservation
from seq_harness.playback.asking import Asking, Drain, Lead
from seq_harness.playback.channels import Channel, columns_by_name, RowSplitter, Vector
from seq_harness.playback.guard import Guard, Limits
from seq_harness.playback.handoff import ArriveAtStart, Continue
from seq_harness.playback.player import ChunkPlayer
from seq_harness.playback.session import Observation
from seq_harness.playback.shadow import ShadowGuard
from seq_harness.playback.uplink import PolicyScope
from seq_harness.settings import ChannelSettings, Settings

LEAD_CAP_S = 2.0
"""The longest measured lead: an answer slower than this starves the plan, and is counted."""


class DeclarationRefused(ValueError):
    """The policy needs what this robot does not give; names both sides."""


class Pipeline:
    """The fixed parts of every episode with one policy; opens an episode at a time."""

    def __init__(self, settings: Settings, declaration: WorkerDeclaration) -> None:
        """
        Check the declaration against the settings.

        Raises
        ------
        DeclarationRefused, ColumnsRefused
            A key or a column is missing; names both sides.

        """
        if declaration.action is not None:
            raise DeclarationRefused(
                f'the policy declares {declaration.action.action_space} actions of '
                f'{declaration.action.robot!r} by a robot contract; this node plays absolute '
                'joint positions by named columns: serve it with `columns` and `actions` instead'
            )
        self._settings = settings
        self._declaration = declaration
        streams = declaration.observations.streams if declaration.observations else None
        cameras = {key: s.camera for key, s in (streams or {}).items() if s.camera is not None}
        self.spec = ObservationSpec(settings.inputs, cameras, settings['instruction_key'])
        missing = sorted(set(streams or {}) - self.spec.keys)
        if missing:
            raise DeclarationRefused(
                f'the policy reads the keys {missing}, which no input gives; the inputs give '
                f'{sorted(self.spec.keys)}: set inputs.<name>.key'
            )
        actions = declaration.actions
        self.rate_hz = float((actions.hz if actions else None) or settings['rate_hz'])
        # A policy that names no columns is taken to answer the channels' own, in their order.
        wanted = [name for item in settings.channels for name in item.columns]
        self._columns = declaration.columns or wanted
        self._channels = [_channel(item, self._columns) for item in settings.channels]
        self._splitter = RowSplitter(
            self._channels,
            fps=self.rate_hz,
            width=len(self._columns),
            key=actions.key if actions else None,
            horizon=self._horizon(),
        )

    @property
    def period_ns(self) -> int:
        """The time from one row, and from one observation step, to the next."""
        return round(1e9 / self.rate_hz)

    def describe(self) -> str:
        """Return the whole map of inputs and columns, for people."""
        lines = [f'{self.rate_hz:g} rows/s, asking {self._settings["asking"]!r}, '
                 f'hand-off {self._settings["handoff"]!r}']  # fmt: skip
        lines += [f'  {item.topic} ({item.type}) -> {item.key}' for item in self._settings.inputs]
        for channel, item in zip(self._channels, self._settings.channels, strict=True):
            lines.append(f'  {channel.name} -> {item.topic} ({item.type}):')
            for joint, column, low, high in zip(
                channel.joints, channel.columns, item.lower, item.upper, strict=True
            ):
                name = self._columns[column]
                lines.append(f'    column {column} {name} -> {joint} in [{low:g}, {high:g}]')
        return '\n'.join(lines)

    def open(self, scope: PolicyScope, start: Start, stack: ExitStack) -> Opened:
        """Put an episode together on a policy scope that is open; `stack` closes it all."""
        episode = Episode(scope, start, self._splitter, self.period_ns)
        player = ChunkPlayer(
            episode,
            asking=self._asking(),
            handoff=Continue() if self._settings['handoff'] == 'continue' else ArriveAtStart(),
            guard=self._guard(),
            measured=self._measured,
        )
        stack.callback(player.close)
        return Opened(player, player, episode, stack)

    def _horizon(self) -> int | None:
        actions = self._declaration.actions
        declared = actions.open_loop_horizon if actions else None
        given = [rows for rows in (declared, self._settings['horizon_rows']) if rows]
        return min(given, default=None)

    def _asking(self) -> Asking:
        if self._settings['asking'] == 'drain':
            return Drain()
        lead_s = self._settings['lead_s']
        return Lead(
            cap_ns=round(LEAD_CAP_S * 1e9),
            margin_ns=round(self._settings['lead_margin_s'] * 1e9),
            fixed_ns=round(lead_s * 1e9) if lead_s else None,
        )

    def _guard(self) -> Guard:
        guard = ShadowGuard if self._settings['preview'] else Guard
        return guard(self._limits(), self.period_ns)

    def _limits(self) -> dict[str, Limits]:
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

    def _measured(self, observation: Observation) -> Mapping[str, Vector]:
        """Return the measured position of every channel, from the round's own samples."""
        if not isinstance(observation, SampledObservation):
            raise TypeError(f'a sampled observation was expected, got {type(observation)}')
        snapshot = observation.snapshot
        return {
            item.name: joint_values_of(snapshot[item.state], item.joints)
            for item in self._settings.channels
        }


def _channel(item: ChannelSettings, columns: Sequence[str]) -> Channel:
    return Channel(item.name, item.joints, columns_by_name(item.name, item.columns, columns))

"""What the settings and a policy's declaration build together: the parts of an episode."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from seq_harness.contract.connect import WorkerDeclaration
from seq_harness.episode import Episode, Start
from seq_harness.harness import Opened
from seq_harness.observation import ObservationSpec
from seq_harness.playback.by_hand import ByHand
from seq_harness.playback.channels import Channel, columns_by_name, ColumnsRefused, RowSplitter
from seq_harness.playback.layers import Layers, PlayerLayer
from seq_harness.playback.modes import RTC
from seq_harness.playback.registry import from_json, resolve
from seq_harness.playback.session import Observation
from seq_harness.playback.uplink import PolicyScope
from seq_harness.playing import Playing
from seq_harness.settings import ChannelSettings, Settings


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
        PipelineRefused, Misplaced, CodecRefused
            A layer is unknown, has wrong arguments, stands where it would not work, or reads a
            key that no input gives.

        """
        if declaration.action is not None:
            raise DeclarationRefused(
                f'the policy declares {declaration.action.action_space} actions of '
                f'{declaration.action.robot!r} by a robot contract; this node plays absolute '
                'joint positions by named columns: serve it with `columns` and `actions` instead'
            )
        self._settings = settings
        self._declaration = declaration
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
        )
        horizon = actions.open_loop_horizon if actions else None
        self._playing = Playing(settings, self.period_ns, horizon)
        self.layers = self._layers()
        self.spec = self._spec()
        if settings['asking'] == RTC:
            self._check_chunking()

    @property
    def period_ns(self) -> int:
        """Return the time from one row, and from one observation step, to the next."""
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
        episode = Episode(
            scope,
            start,
            self._splitter,
            self.period_ns,
            layers=self.layers,
            columns_of=self._splitter.joined,
        )
        session, player = self.layers.open_session(episode)
        stack.callback(session.close)
        return Opened(session, player, episode, stack)

    def blank(self, instruction: str) -> Observation:
        """Return what the policy reads, of the right keys, types and sizes, that nobody saw."""
        return self.layers.encode(self.spec.blank(instruction))

    def by_hand(self) -> ByHand:
        """Return what manual commands must pass."""
        return self._playing.by_hand()

    def _layers(self) -> Layers:
        """Put the configured layers around the player; deltas become absolute right below it."""
        robot = Layers(PlayerLayer(self._playing.player))
        if self._playing.absolute is not None:
            robot |= self._playing.absolute
        return resolve(from_json(self._settings['layers']), robot)

    def _spec(self) -> ObservationSpec:
        """Say how inputs become observations, fitted as the policy declares its cameras."""
        inputs, text_key = self._settings.inputs, self._settings['instruction_key']
        keys = ObservationSpec(inputs, {}, text_key).keys
        sources = {key: object() for key in keys}
        seen = self.layers.encode(sources)
        observations = self._declaration.observations
        streams = (observations.streams if observations else None) or {}
        missing = sorted(set(streams) - set(seen))
        if missing:
            raise DeclarationRefused(
                f'the policy reads the keys {missing}, which no input gives; the inputs give '
                f'{sorted(seen)}: set inputs.<name>.key'
            )
        cameras = {}
        for key, stream in streams.items():
            if stream.camera is not None:
                source = seen[key]
                name = next((name for name, mark in sources.items() if mark is source), key)
                cameras[name] = stream.camera
        return ObservationSpec(inputs, cameras, text_key)

    def _check_chunking(self) -> None:
        """Refuse real-time chunking with a policy or a map that has no use for a plan."""
        if not self._declaration.rtc:
            raise DeclarationRefused(
                "asking 'rtc' sends the policy the rows that will still be executed; this policy "
                'takes none (its infer has no argument `plan`): choose another way of asking'
            )
        if self._playing.absolute is not None:
            raise DeclarationRefused(
                "asking 'rtc' takes absolute channels only: the policy answers deltas of the "
                'observation'
            )
        if self.layers.irreversible:
            raise DeclarationRefused(
                f"asking 'rtc' sends the policy rows of its own; {list(self.layers.irreversible)} "
                'cannot be undone: leave them out, or choose another way of asking'
            )
        try:
            self._splitter.joined([])
        except ColumnsRefused as error:
            raise DeclarationRefused(f"asking 'rtc' sends whole rows: {error}") from error


def _channel(item: ChannelSettings, columns: Sequence[str]) -> Channel:
    return Channel(item.name, item.joints, columns_by_name(item.name, item.columns, columns))

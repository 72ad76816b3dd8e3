"""What the settings and a policy's declaration build together: the parts of an episode."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import zip_longest
from typing import Any

import numpy as np
from seq_harness.contract.camera import Camera
from seq_harness.contract.connect import WorkerDeclaration
from seq_harness.contract.excerpt import excerpt
from seq_harness.episode import Episode, Start
from seq_harness.harness import Opened
from seq_harness.observation import ObservationSpec
from seq_harness.pipeline.arm_actions import bounded, ROWS, rows_of
from seq_harness.pipeline.arm_observations import ArmObservations, BLANK_INSTRUCTION
from seq_harness.pipeline.forms import StopOnChange
from seq_harness.pipeline.grippers import without_effort
from seq_harness.pipeline.joint_map import describe_joint, JointMap
from seq_harness.pipeline.moving import unwatched
from seq_harness.pipeline.playing import Playing
from seq_harness.pipeline.rotations import rotation_vectors
from seq_harness.pipeline.standing import StandingRates
from seq_harness.pipeline.stopping import StopOnInputs
from seq_harness.playback.by_hand import ByHand
from seq_harness.playback.channels import Channel, columns_by_name, ColumnsRefused, RowSplitter
from seq_harness.playback.chunk import Chunk, ChunkRefused
from seq_harness.playback.codec_parts import CodecRefused
from seq_harness.playback.freezing import Tell
from seq_harness.playback.layers import Layers, Misplaced, PlayerLayer
from seq_harness.playback.modes import Mode, RTC
from seq_harness.playback.pace import expected_pace, Pace
from seq_harness.playback.registry import from_json, PipelineRefused, resolve
from seq_harness.playback.session import Observation
from seq_harness.playback.taps import ChunkTap, RecordChunk, RoundTap
from seq_harness.playback.uplink import PolicyError, PolicyScope
from seq_harness.settings import ChannelSettings, Settings
from seq_harness.settings.input_types import CAMERAS


class DeclarationRefused(ValueError):
    """The policy needs what this robot does not give; names both sides."""


class AnswerRefused(ValueError):
    """The policy's answer to the warm-up is none that an episode would play; says why."""


class Pipeline:
    """The fixed parts of every episode with one policy; opens an episode at a time."""

    def __init__(
        self,
        settings: Settings,
        declaration: WorkerDeclaration,
        on_chunk: RecordChunk | None = None,
        on_frozen: Tell | None = None,
    ) -> None:
        """
        Check the declaration against the settings.

        `on_chunk` hears of every chunk as it comes to the player, where the inference ran;
        `on_frozen` of a frozen state, which then ends nothing.

        Raises
        ------
        DeclarationRefused, ColumnsRefused, ContractRefused
            A key or a column is missing, or a robot contract is another's; names both sides.
        PipelineRefused, Misplaced, CodecRefused
            A layer is unknown, has wrong arguments, stands where it would not work, or reads a
            key that no input gives.

        """
        action, actions = declaration.action, declaration.actions
        # A policy that names no columns is taken to answer the channels' own, in their order.
        wanted = [name for item in settings.channels for name in item.columns]
        self._columns = declaration.columns or wanted
        if action is not None:
            settings = bounded(settings, action, self._columns)
        self._settings = settings
        self._on_chunk = on_chunk
        self.declaration = declaration
        """What the policy declares."""
        hz = action.control_frequency_hz if action else actions.hz if actions else None
        self.rate_hz = float(hz or settings['rate_hz'])
        self._channels = [_channel(item, self._columns) for item in settings.channels]
        self._splitter = RowSplitter(
            self._channels,
            fps=self.rate_hz,
            width=len(self._columns),
            key=ROWS if action else actions.key if actions else None,
        )
        self._split = rows_of(action, self._splitter) if action else self._splitter
        horizon = actions.open_loop_horizon if actions else None
        self._playing = Playing(settings, self.period_ns, horizon, on_frozen)
        self.joint_map = JointMap(settings) if settings.joints else None
        self.shadow = self._playing.shadow()
        self.standing = StandingRates(settings)
        self.layers = self._layers()
        self._arm: ArmObservations | None = None
        self.spec = self._spec()
        if self._arm is not None:
            self._arm.check(self.layers.encode(self.spec.blank('')))
            self.layers |= self._arm
        if settings['asking'] == RTC:
            self._check_chunking()

    @property
    def period_ns(self) -> int:
        """Return the time from one row, and from one observation step, to the next."""
        return round(1e9 / self.rate_hz)

    @property
    def mode(self) -> Mode:
        """Return how chunks are asked for, joined and timed."""
        return self._playing.mode

    def describe(self) -> str:
        """Return the whole map of inputs and columns, for people."""
        lines = [f'{self.rate_hz:g} rows/s, asking {self._settings["asking"]!r}, '
                 f'hand-off {self._settings["handoff"]!r}']  # fmt: skip
        lines.append(f'  {self._playing.describe_starving()}')
        lines += [f'  {item.topic} ({item.type}) -> {item.key}' for item in self._settings.inputs]
        for channel, item in zip(self._channels, self._settings.channels, strict=True):
            lines.append(f'  {channel.name} -> {item.topic} ({item.type}):')
            lines += self._described(channel, item)
        lines += [describe_joint(joint) for joint in self._settings.joints]
        return '\n'.join(lines)

    @property
    def cautions(self) -> list[str]:
        """Say what may be meant, and may do harm; of what moves nothing for a preview."""
        settings = self._settings
        turned = rotation_vectors(settings)
        if settings['preview']:
            return turned
        return [*unwatched(settings), *without_effort(settings), *turned]

    def open(self, scope: PolicyScope, start: Start, stack: ExitStack) -> Opened:
        """Put an episode together on a policy scope that is open; `stack` closes it all."""

        def rows_of(outputs: Any) -> Chunk | None:
            if getattr(scope, 'answered_anew', False):
                self._check_newcomer(outputs)
            return self._rows_of(outputs)

        episode = Episode(
            scope,
            start,
            rows_of,
            self.period_ns,
            layers=self.layers,
            columns_of=self._splitter.joined,
        )
        if self.shadow is not None:
            self.shadow.begin()
        self.standing.begin()
        session, player = self.layers.open_session(episode)
        stack.callback(session.close)
        return Opened(session, player, episode, stack)

    def blank(self, instruction: str) -> Observation:
        """Return what the policy reads, of the right keys, types and sizes, that nobody saw."""
        said = instruction.strip() or self.declaration.observation is None
        return self.layers.encode(self.spec.blank(instruction if said else BLANK_INSTRUCTION))

    def check_answer(self, outputs: Any) -> str:
        """
        Read what the policy answered to a blank observation as an act's answer is read (G51).

        Returns what is to be said of it; empty where it is rows.

        Raises
        ------
        AnswerRefused
            Its key, its width or one of its values would be refused of any act, or it is empty.

        """
        try:
            chunk = self._rows_of(outputs)
            if chunk is None:
                return 'the policy answered nothing to the warm-up: an episode waits for rows'
            self._refuse_not_finite(chunk)
        except ChunkRefused as error:
            raise AnswerRefused(
                f"the policy's answer to the warm-up would be refused of any act: {error}"
            ) from error
        executed = self._settings['ask_rows']
        if self._settings['asking'] == RTC and 0 < len(chunk.rows) <= executed:
            raise AnswerRefused(_no_rows_left(executed, len(chunk.rows)))
        if not chunk.rows and chunk.end_reason is None:
            raise AnswerRefused(
                'the policy answered no rows to the warm-up, and an episode would starve: answer '
                "at least one row, None for nothing new, or 'end' with a reason"
            )
        return ''

    def pace(self, outputs: Any, answer_s: float) -> Pace | None:
        """Return how chunks like that of `outputs` go; None where that is left open."""
        chunk = self._rows_of(outputs)
        if chunk is None:
            return None
        return expected_pace(self.mode, self.mode.horizon.cut(chunk), answer_s)

    def by_hand(self) -> ByHand:
        """Return what manual commands must pass."""
        return self._playing.by_hand()

    def _rows_of(self, outputs: Any) -> Chunk | None:
        chunk = self._split(outputs)
        if chunk is None or chunk.end_reason is None:
            return chunk
        return replace(chunk, end_reason=excerpt(chunk.end_reason))

    def _check_newcomer(self, outputs: Any) -> None:
        """Read the first answer of another worker process as that to a warm-up."""
        try:
            self.check_answer(outputs)
        except AnswerRefused as error:
            raise PolicyError(f'another worker process answered: {error}') from error

    def _refuse_not_finite(self, chunk: Chunk) -> None:
        for number, row in enumerate(self._playing.mode.horizon.cut(chunk).rows):
            for channel in self._channels:
                finite = np.isfinite(row.commands[channel.name])
                if not finite.all():
                    column = channel.columns[int(np.argmin(finite))]
                    raise ChunkRefused(
                        f'row {number} (from 0): column {column} {self._columns[column]} is not '
                        'finite'
                    )

    def _described(self, channel: Channel, item: ChannelSettings) -> list[str]:
        """Say which column commands which joint, and within which bounds."""
        columns = [f'column {at} {self._columns[at]}' for at in channel.columns]
        bounds = [
            f' in [{low:g}, {high:g}]' for low, high in zip(item.lower, item.upper, strict=True)
        ]
        if len(columns) != len(channel.joints):
            limits = ', '.join(map(''.join, zip(channel.joints, bounds, strict=False)))
            return [f'    {", ".join(columns)} -> {", ".join(channel.joints)}; {limits}']
        # Of a pose, only x, y and z lie within bounds.
        return [
            f'    {column} -> {joint}{bound}'
            for column, joint, bound in zip_longest(columns, channel.joints, bounds, fillvalue='')
        ]

    def _layers(self) -> Layers:
        """Put the configured layers around the player; deltas become absolute right below it."""
        robot = Layers(PlayerLayer(self._playing.player))
        if self._on_chunk is not None:
            robot |= ChunkTap(self._on_chunk)
        if self._playing.absolute is not None:
            robot |= self._playing.absolute
        if self.joint_map is not None:
            robot |= self.joint_map
        try:
            layers = resolve(from_json(self._settings['layers']), robot)
        except (PipelineRefused, Misplaced, CodecRefused) as error:
            raise type(error)(f"parameter 'layers': {error}") from error
        if self.shadow is not None:
            layers = RoundTap(self.shadow.record, 'preview_distance') | layers
        elif self.standing.needed:
            layers = RoundTap(self.standing.record, 'standing_rates') | layers
        inputs = self._settings.inputs
        if StopOnInputs.needed(inputs):
            layers = StopOnInputs(inputs) | layers
        watched = any(item.type in CAMERAS for item in inputs)
        return StopOnChange() | layers if watched else layers

    def _spec(self) -> ObservationSpec:
        """Say how inputs become observations, fitted as the policy declares its cameras."""
        inputs, text_key = self._settings.inputs, self._settings['instruction_key']
        keys = ObservationSpec(inputs, {}, text_key).keys
        sources = {key: object() for key in keys}
        seen = self.layers.encode(sources)
        contract = self.declaration.observation
        if contract is not None:
            self._arm = ArmObservations(contract, set(seen), inputs, text_key)
        cameras = {}
        for key, camera in self._declared_cameras(seen).items():
            source = seen[key]
            name = next((name for name, mark in sources.items() if mark is source), key)
            cameras[name] = camera
        return ObservationSpec(inputs, cameras, text_key)

    def _declared_cameras(self, seen: Observation) -> dict[str, Camera]:
        """Return the cameras that the policy reads, by key, once every key it reads is there."""
        if self._arm is not None:
            return self._arm.cameras
        observations = self.declaration.observations
        streams = (observations.streams if observations else None) or {}
        missing = sorted(set(streams) - set(seen))
        if missing:
            raise DeclarationRefused(
                f'the policy reads the keys {missing}, which no input gives; the inputs give '
                f'{sorted(seen)}: set inputs.<name>.key{_told(self.declaration.io)}'
            )
        cameras = {key: item.camera for key, item in streams.items() if item.camera is not None}
        deep = sorted(key for key, camera in cameras.items() if camera.depth)
        if deep:
            raise DeclarationRefused(f'the policy reads depth of {deep}, which no input gives')
        return cameras

    def _check_chunking(self) -> None:
        """Refuse real-time chunking with a policy or a map that has no use for a plan."""
        if not self.declaration.rtc:
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
        rows, executed = self._playing.mode.horizon.rows, self._settings['ask_rows']
        if rows is not None and executed >= rows:
            raise DeclarationRefused(_no_rows_left(executed, rows))
        try:
            self._splitter.joined([])
        except ColumnsRefused as error:
            raise DeclarationRefused(f"asking 'rtc' sends whole rows: {error}") from error


def _no_rows_left(executed: int, rows: int) -> str:
    return (
        f"asking 'rtc' takes delay <= horizon - executed: of a chunk of {rows} rows none is left "
        f'to go on from after ask_rows, {executed}; set ask_rows to at most {rows - 1}'
    )


def _told(io: str | None) -> str:
    return f'. What it reads: {io[:500]}' if io else ''


def _channel(item: ChannelSettings, columns: Sequence[str]) -> Channel:
    return Channel(item.name, item.joints, columns_by_name(item.name, item.columns, columns))

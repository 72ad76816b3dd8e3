"""Codecs that choose, rename and rearrange what stays as it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from seq_harness.playback.chunk import ChunkRefused
from seq_harness.playback.codec_parts import (
    checked_columns,
    checked_names,
    checked_pairs,
    CodecRefused,
    Indices,
    refuse_overlap,
    require_keys,
    vector_of,
    view_of,
    Viewed,
    views_of,
)
from seq_harness.playback.layers import Codec
from seq_harness.playback.session import Commands, Observation


class Select(Codec):
    """Keep only the named channels of a chunk, and the named keys of an observation."""

    def __init__(
        self, channels: Sequence[str] | None = None, keys: Sequence[str] | None = None
    ) -> None:
        """Without `channels` every channel is kept; without `keys` every key."""
        self.name = 'select'
        self.requires = checked_names('channels', channels or ())
        self.reversible = channels is None
        self._all_channels = channels is None
        self._keys = None if keys is None else checked_names('keys', keys)

    def encode(self, observation: Observation) -> Observation:
        if self._keys is None:
            return observation
        require_keys(self.name, self._keys, observation)
        return Viewed({key: view_of(observation, key) for key in self._keys})

    def decode_row(self, commands: Commands) -> Commands:
        if self._all_channels:
            return commands
        return {name: value for name, value in commands.items() if name in self.requires}


class Rename(Codec):
    """Give channels and keys the names that the other side uses."""

    def __init__(
        self, channels: Mapping[str, str] | None = None, keys: Mapping[str, str] | None = None
    ) -> None:
        """`channels` are the policy's names to the robot's; `keys` the robot's to the policy's."""
        self.name = 'rename'
        self._channels = checked_pairs('channels', channels or {})
        self._keys = checked_pairs('keys', keys or {})
        self.requires = tuple(self._channels)

    def encode(self, observation: Observation) -> Observation:
        if not self._keys:
            return observation
        require_keys(self.name, self._keys, observation)
        refuse_overlap(self.name, self._keys, observation)
        views = views_of(observation).items()
        return Viewed({self._keys.get(key, key): view for key, view in views})

    def decode_row(self, commands: Commands) -> Commands:
        try:
            refuse_overlap(self.name, self._channels, commands)
        except CodecRefused as error:
            raise ChunkRefused(str(error)) from error
        return {self._channels.get(name, name): value for name, value in commands.items()}

    def encode_row(self, commands: Commands) -> Commands:
        back = {robot: policy for policy, robot in self._channels.items()}
        return {back.get(name, name): value for name, value in commands.items()}


class Split(Codec):
    """Turn one channel of the policy into several of the robot, by columns."""

    def __init__(self, channel: str, into: Mapping[str, Indices]) -> None:
        """`into` gives each new channel the columns it takes of `channel`, from 0."""
        self.name = 'split'
        self.requires = (channel,)
        self._channel = channel
        self._into = {
            name: checked_columns(f'into.{name}', columns) for name, columns in into.items()
        }
        if not into:
            raise CodecRefused('split: into must name at least one channel')
        taken = sorted(column for columns in self._into.values() for column in columns)
        self.reversible = taken == list(range(len(taken)))
        self._width = taken[-1] + 1

    def decode_row(self, commands: Commands) -> Commands:
        if self._channel not in commands:
            return commands
        kept = {name: value for name, value in commands.items() if name != self._channel}
        row = vector_of(commands[self._channel])
        if row.shape[0] < self._width:
            raise ChunkRefused(
                f'layer {self.name!r} takes column {self._width - 1} of {self._channel!r}, which '
                f'has {row.shape[0]} columns'
            )
        return {**kept, **{name: row[list(columns)] for name, columns in self._into.items()}}

    def encode_row(self, commands: Commands) -> Commands:
        if any(name not in commands for name in self._into):
            return commands
        row = np.empty(self._width)
        for name, columns in self._into.items():
            row[list(columns)] = commands[name]
        kept = {name: value for name, value in commands.items() if name not in self._into}
        return {**kept, self._channel: row}


class Join(Codec):
    """Give the policy several vectors of an observation as one."""

    def __init__(self, key: str, of: Sequence[str]) -> None:
        """`key` is the new one; those in `of` are put one after the other and left out."""
        self.name = 'join'
        self._key = key
        self._of = checked_names('of', of)
        if not self._of:
            raise CodecRefused('join: of must name at least one key')

    def encode(self, observation: Observation) -> Observation:
        require_keys(self.name, self._of, observation)
        kept = {key: view for key, view in views_of(observation).items() if key not in self._of}
        return Viewed({**kept, self._key: lambda: self._joined(observation)})

    def _joined(self, observation: Observation) -> Any:
        return np.concatenate([np.atleast_1d(observation[key]) for key in self._of])

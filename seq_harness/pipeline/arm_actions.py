"""What a robot arm's policy declares of its actions, held to the channels that play them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import ValidationError
from seq_harness.contract.arm import ActionChunk, ActionContract, ActionSpace
from seq_harness.playback.channels import columns_by_name, END
from seq_harness.playback.chunk import Chunk, ChunkRefused
from seq_harness.settings import ChannelSettings, Settings

ROWS = 'rows'
"""The key under which the rows of an arm's chunk are handed on."""

KINDS = {
    ActionSpace.JOINT_ABSOLUTE: 'position',
    ActionSpace.JOINT_DELTA: 'delta',
    ActionSpace.JOINT_VELOCITY: 'velocity',
}
"""The kind of channel that plays each action space; the others move no joints by themselves."""


class ContractRefused(ValueError):
    """The policy's robot contract is not what this robot gives; names both sides."""


def bounded(settings: Settings, contract: ActionContract, columns: Sequence[str]) -> Settings:
    """
    Return the settings with every joint's limits the stricter of theirs and the contract's.

    `columns` names the contract's dimensions, in order.

    Raises
    ------
    ContractRefused
        The action space is not played, or the number of dimensions is another.
    ColumnsRefused
        A channel wants a column that is not among them.

    """
    for channel in settings.channels:
        if channel.kind != KINDS.get(contract.action_space):
            raise ContractRefused(_unplayed(contract, channel))
    if len(columns) != contract.action_dim:
        raise ContractRefused(
            f'the policy declares {contract.action_dim} dimensions of {contract.robot!r}, and '
            f'{len(columns)} columns are known, {list(columns)}: set channels.<name>.joints to as '
            'many, in the order of the policy'
        )
    if contract.action_space is not ActionSpace.JOINT_ABSOLUTE:
        return settings
    channels = [
        _stricter(item, contract, columns_by_name(item.name, item.columns, columns))
        for item in settings.channels
    ]
    return replace(settings, channels=tuple(channels))


def rows_of(
    contract: ActionContract, split: Callable[[Any], Chunk | None]
) -> Callable[[Any], Chunk | None]:
    """Return what turns an answered chunk of the contract into one by channel, with `split`."""

    def read(answer: Any) -> Chunk | None:
        if answer is None:
            return None
        end = answer.get(END) if isinstance(answer, Mapping) else None
        told = _read(answer, contract)
        values = [step.values for step in sorted(told.steps, key=lambda step: step.index)]
        chunk = split({ROWS: values, END: end})
        horizon = told.open_loop_horizon
        return chunk if chunk is None or horizon is None else chunk.cut(horizon)

    return read


def _unplayed(contract: ActionContract, channel: ChannelSettings) -> str:
    space = contract.action_space.value
    said = f'the policy declares {space} actions of {contract.robot!r}'
    kind = KINDS.get(contract.action_space)
    if kind is None:
        return f'{said}, which no channel plays: joints are commanded, by {_spaces()}'
    return (
        f'{said}, which a channel of kind {kind!r} plays; channels.{channel.name}.kind is '
        f'{channel.kind!r}'
    )


def _spaces() -> str:
    return ', '.join(space.value for space in KINDS)


def _stricter(
    channel: ChannelSettings, contract: ActionContract, dimensions: Sequence[int]
) -> ChannelSettings:
    if contract.bounds is not None:
        lower = _each(max, channel.lower, [contract.bounds[i][0] for i in dimensions])
        upper = _each(min, channel.upper, [contract.bounds[i][1] for i in dimensions])
        channel = replace(channel, lower=lower, upper=upper)
    for joint, low, high in zip(channel.joints, channel.lower, channel.upper, strict=True):
        if low > high:
            raise ContractRefused(
                f'no position of {joint} lies within both the bounds of the policy and those of '
                f'channels.{channel.name}: check that they are of the same joint, and its unit'
            )
    if contract.max_delta is None:
        return channel
    most = contract.max_delta
    deltas = [most[i] if isinstance(most, list) else most for i in dimensions]
    speeds = [delta * contract.control_frequency_hz for delta in deltas]
    return replace(channel, max_velocity=_each(min, channel.max_velocity, speeds))


def _each(
    choose: Callable[[float, float], float], ours: tuple[float, ...], theirs: list[float]
) -> tuple[float, ...]:
    return tuple(choose(a, b) for a, b in zip(ours, theirs, strict=True))


def _read(answer: Any, contract: ActionContract) -> ActionChunk:
    fields = dict(answer) if isinstance(answer, Mapping) else answer
    if isinstance(fields, dict):
        fields.pop(END, None)
    try:
        told = ActionChunk.model_validate(fields)
    except ValidationError as error:
        raise ChunkRefused(f'an ActionChunk was expected: {str(error)[:500]}') from None
    for name in ('robot', 'action_space', 'action_dim', 'control_frequency_hz'):
        if getattr(told, name) != getattr(contract, name):
            raise ChunkRefused(
                f'the chunk has {name} {getattr(told, name)!r:.80}; the policy declared '
                f'{getattr(contract, name)!r:.80} at connect'
            )
    indices = sorted(step.index for step in told.steps)
    if indices != list(range(len(indices))):
        raise ChunkRefused(f'the steps have the indices {indices[:20]}; 0, 1, 2... was expected')
    if told.open_loop_horizon is not None and told.open_loop_horizon < 1:
        raise ChunkRefused(f'a horizon of {told.open_loop_horizon} rows was answered; 1 is least')
    return told

"""A pipeline as plain data, resolved against a closed and versioned list of layers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
import inspect
import json
from typing import Any

from seq_harness.playback.codecs import FrameChange, GripperMap, PoseForm, Scale, Units
from seq_harness.playback.faults import OnRecovery, StopOnFault
from seq_harness.playback.layers import ChunkLayer, Layer, Layers, PlayerLayer, SessionLayer
from seq_harness.playback.naming import Join, Rename, Select, Split

LAYER, VERSION, ARGS = 'layer', 'version', 'args'
"""The keys of one layer in the data: its name, its version, and its arguments by name."""

PLAYER = 'player'
"""The name that marks where the robot's own player stands; it takes no arguments."""

Make = Callable[..., SessionLayer | ChunkLayer]


class PipelineRefused(ValueError):
    """Data that is no pipeline; says which entry, what came and what is known."""


def _stop_on_fault(
    keys: Sequence[str] = ('status',),
    on_recovery: str = OnRecovery.REPLAN.value,
    available: Sequence[str] | None = None,
    unavailable: Sequence[str] | None = None,
) -> StopOnFault:
    known = [option.value for option in OnRecovery]
    if on_recovery not in known:
        raise ValueError(f'on_recovery must be one of {known}, got {on_recovery!r}')
    for name, value in (('keys', keys), ('available', available), ('unavailable', unavailable)):
        if isinstance(value, str) or not all(isinstance(item, str) for item in value or ()):
            raise ValueError(f'{name} must be a list of names, got {value!r}')
    make = partial(StopOnFault, keys, on_recovery=OnRecovery(on_recovery))
    if available is not None:
        make = partial(make, available=available)
    if unavailable is not None:
        make = partial(make, unavailable=unavailable)
    return make()


REGISTRY: Mapping[tuple[str, int], Make] = {
    ('frame_change', 1): FrameChange,
    ('gripper_map', 1): GripperMap,
    ('join', 1): Join,
    ('pose_form', 1): PoseForm,
    ('rename', 1): Rename,
    ('scale', 1): Scale,
    ('select', 1): Select,
    ('split', 1): Split,
    ('stop_on_fault', 1): _stop_on_fault,
    ('units', 1): Units,
}
"""
What a pipeline may be made of, by name and version.

A layer that would play otherwise than before gets a new version beside the old one.
"""


@dataclass(frozen=True)
class _Entry:
    """One layer as data."""

    at: str
    """Where it stands in the data, for people."""
    name: str
    version: int
    args: Mapping[str, Any]


def from_json(text: str) -> list[Any]:
    """
    Read a pipeline from a parameter; empty text is an empty one.

    Raises
    ------
    PipelineRefused
        The text is no JSON list.

    """
    if not text.strip():
        return []
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise PipelineRefused(f'a pipeline must be a JSON list of layers: {error}') from error
    if not isinstance(data, list):
        raise PipelineRefused(f'a pipeline must be a JSON list of layers, got {_said(data)}')
    return data


def resolve(
    data: Sequence[Any],
    player: PlayerLayer | Layers,
    *,
    declared: Sequence[Any] = (),
    frames_elsewhere: Sequence[str] = (),
) -> Layers:
    """
    Return the layers that `data` lists from top to bottom, on the robot's own player.

    The entry `player` says where that stands, with whatever the robot puts right below it;
    without layers at all it stands alone. What the server `declared` goes below everything, and
    may hold chunk layers only.

    Raises
    ------
    PipelineRefused
        A name, a version or an argument is unknown or wrong; names what is known.
    Misplaced
        A layer stands where it would not work.

    """
    entries = [_entry(f'layer {number}', item) for number, item in enumerate(data)]
    if entries and all(entry.name != PLAYER for entry in entries):
        raise PipelineRefused(
            f'the pipeline does not say where the player stands: put {{"{LAYER}": "{PLAYER}", '
            f'"{VERSION}": 1}} above its chunk layers'
        )
    layers = [_made(entry, player) for entry in entries] or [player]
    below = [_declared(f'declared layer {i}', item) for i, item in enumerate(declared)]
    return Layers(*layers, *below, frames_elsewhere=frames_elsewhere)


def known() -> dict[str, list[int]]:
    """Return the versions that are known of each layer, by name."""
    found: dict[str, list[int]] = {PLAYER: [1]}
    for name, version in REGISTRY:
        found.setdefault(name, []).append(version)
    return {name: sorted(found[name]) for name in sorted(found)}


def _entry(at: str, item: Any) -> _Entry:
    if not isinstance(item, Mapping):
        raise PipelineRefused(f'{at} must be a map with {LAYER!r}, got {_said(item)}')
    extra = sorted(str(key) for key in set(item) - {LAYER, VERSION, ARGS})
    if extra:
        raise PipelineRefused(f'{at} has the keys {extra}; known: {[LAYER, VERSION, ARGS]}')
    name, version, args = item.get(LAYER), item.get(VERSION), item.get(ARGS, {})
    versions = known()
    if not isinstance(name, str) or name not in versions:
        raise PipelineRefused(f'{at} names the layer {_said(name)}; known: {list(versions)}')
    if isinstance(version, bool) or version not in versions[name]:
        raise PipelineRefused(
            f'{at} ({name}) has the version {_said(version)}; known: {versions[name]}'
        )
    if not isinstance(args, Mapping) or not all(isinstance(key, str) for key in args):
        raise PipelineRefused(f'{at} ({name}): {ARGS} must map names to values, got {_said(args)}')
    return _Entry(at, name, int(version), args)


def _declared(at: str, item: Any) -> ChunkLayer:
    """Make a layer that a server declares: it sees chunks, and never the commands."""
    entry = _entry(at, item)
    layer = None if entry.name == PLAYER else _layer(entry)
    if not isinstance(layer, ChunkLayer):
        raise PipelineRefused(
            f'{at} is {entry.name!r}; a server may declare layers below the player only'
        )
    return layer


def _made(entry: _Entry, player: PlayerLayer | Layers) -> Layer | Layers:
    if entry.name != PLAYER:
        return _layer(entry)
    if entry.args:
        raise PipelineRefused(
            f'{entry.at} ({PLAYER}) has the arguments {sorted(entry.args)}; it takes none: the '
            "player's own parameters say how it plays"
        )
    return player


def _layer(entry: _Entry) -> SessionLayer | ChunkLayer:
    make = REGISTRY[entry.name, entry.version]
    parameters = inspect.signature(make).parameters
    unknown = sorted(set(entry.args) - set(parameters))
    if unknown:
        raise PipelineRefused(
            f'{entry.at} ({entry.name}) has the arguments {unknown}; known: {list(parameters)}'
        )
    missing = [
        name
        for name, parameter in parameters.items()
        if parameter.default is inspect.Parameter.empty and name not in entry.args
    ]
    if missing:
        raise PipelineRefused(f'{entry.at} ({entry.name}) lacks the arguments {missing}')
    try:
        return make(**entry.args)
    except (ValueError, TypeError, AttributeError) as error:
        raise PipelineRefused(f'{entry.at} ({entry.name}): {error}') from error


def _said(value: Any) -> str:
    """Show a value from outside, on one line and of bounded length."""
    return repr(value)[:100]

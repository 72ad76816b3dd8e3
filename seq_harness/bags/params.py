"""The parameters of a harness, from a ROS 2 parameter file or from a mapping."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from seq_harness.bags.bounded_yaml import load_yaml
from seq_harness.settings import parse, Settings, SettingsError
import yaml

Params: TypeAlias = 'Path | str | Mapping[str, Any] | Settings'
"""A parameter file, parameters by name (nested or with dots), or what they build."""

OF_NODES = ('use_sim_time', 'qos_overrides', 'start_type_description_service')
"""Parameters that every node has; a replay has no use for them."""


def settings_from(params: Params, overrides: Mapping[str, Any] | None = None) -> Settings:
    """
    Return the settings that `params` build; `overrides` are parameters by full name.

    Raises
    ------
    SettingsError
        The file holds no parameters of a harness, or one of them is not allowed.
    OSError
        The file cannot be read.

    """
    if isinstance(params, Settings):
        if overrides:
            raise SettingsError('settings cannot be overridden: give the parameters themselves')
        return params
    values = read_file(Path(params)) if isinstance(params, (str, Path)) else params
    flat = {**dict(_flat(values, '')), **(overrides or {})}
    return parse({name: value for name, value in flat.items() if not name.startswith(OF_NODES)})


def read_file(path: Path, node: str = 'harness') -> dict[str, Any]:
    """
    Return what a ROS 2 parameter file says to `node`, the later of two entries winning.

    Raises
    ------
    SettingsError
        It is no parameter file, or says nothing to this node.
    OSError
        It cannot be read.

    """
    held = sections(path)
    values: dict[str, Any] = {}
    for name, said in held.items():
        if name.rpartition('/')[2] in (node, '*', '**'):
            values.update(said)
    if not values:
        raise SettingsError(
            f'{path} holds no ros__parameters for {node}; it holds entries for {sorted(held)}'
        )
    return values


def sections(path: Path) -> dict[str, dict[str, Any]]:
    """
    Return the parameters of each section of a ROS 2 parameter file, by the nodes it is for.

    Raises
    ------
    SettingsError
        It is no YAML.
    OSError
        It cannot be read.

    """
    try:
        held = load_yaml(path.read_text())
    except yaml.YAMLError as error:
        raise SettingsError(f'{path} is no YAML: {error}') from error
    return dict(_sections(held, ''))


def _sections(held: Any, prefix: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Find the sections; a namespace may hold others."""
    for name, entry in held.items() if isinstance(held, Mapping) else ():
        if name == 'ros__parameters' and isinstance(entry, Mapping):
            yield prefix, dict(_flat(entry, ''))
        else:
            yield from _sections(entry, f'{prefix}/{name}' if prefix else str(name))


def value_of(text: str) -> Any:
    """
    Return what a parameter's value means, written as YAML.

    Raises
    ------
    SettingsError
        It is no YAML.

    """
    try:
        return load_yaml(text)
    except yaml.YAMLError as error:
        raise SettingsError(f'a value in YAML was expected, got {text!r:.80}: {error}') from error


def _flat(values: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f'{prefix}{name}.')
        else:
            yield f'{prefix}{name}', value

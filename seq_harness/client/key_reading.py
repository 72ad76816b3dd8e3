"""The parameters `server_*`, read as a key map: the only place that knows their form."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
import json
from typing import Any

from pydantic import ValidationError
from seq_harness.client.key_map import Entry, FROM, KeyMap, KeyMapRefused, Path, shown
from seq_harness.client.key_presets import PRESET_COLUMNS, PRESETS


def read_key_map(server: Mapping[str, Any]) -> KeyMap:
    """
    Read `server_preset`, `server_keys`, `server_columns`, `server_rows_key` and `server_width`.

    What `server_keys` says is put over the preset.

    Raises
    ------
    KeyMapRefused
        The preset is unknown, `server_keys` is no JSON object of entries, or rows would be cut to
        columns that are not named.

    """
    preset = server.get('server_preset', '')
    if preset and preset not in PRESETS:
        raise KeyMapRefused(
            f'server_preset: one of {sorted(PRESETS)} was expected, got {preset!r}'
        )
    entries = _read(PRESETS.get(preset, {}))
    entries.update(read_entries(server.get('server_keys', '')))
    chosen = {path: entry for path, entry in entries.items() if entry is not None}
    columns = tuple(server.get('server_columns', ())) or PRESET_COLUMNS.get(preset, ())
    width = server.get('server_width', 0)
    if width and not 1 <= len(columns) < width:
        raise KeyMapRefused(
            f'server_width: rows of {width} are cut to the columns that server_columns names, and '
            f'{len(columns)} are named: name those that the robot has'
        )
    return KeyMap(chosen, columns, server.get('server_rows_key', ''), width)


def read_keeps_state(server: Mapping[str, Any]) -> bool:
    """Read `server_keeps_state`: whether a lost connection takes along what a policy knew."""
    return bool(server.get('server_keeps_state', True))


def read_entries(keys: str) -> dict[Path, Entry | None]:
    """
    Read `server_keys`; None is a key that is not to be sent.

    Raises
    ------
    KeyMapRefused
        It is no JSON object of entries.

    """
    try:
        said = json.loads(keys or '{}')
    except ValueError as error:
        raise KeyMapRefused(f'server_keys: a JSON object was expected: {error}') from None
    if not isinstance(said, dict):
        raise KeyMapRefused(f'server_keys: a JSON object was expected, got {keys[:80]!r}')
    return _read(said)


def _read(said: Mapping[str, Any]) -> dict[Path, Entry | None]:
    return dict(_entries((), said))


def _entries(above: Path, said: Mapping[str, Any]) -> Iterator[tuple[Path, Entry | None]]:
    for name, value in said.items():
        path = (*above, name)
        if value is None:
            yield path, None
        elif isinstance(value, str):
            yield path, _entry(path, {FROM: (value,)})
        elif isinstance(value, Mapping) and FROM not in value:
            yield from _entries(path, value)
        else:
            yield path, _entry(path, value)


def _entry(path: Path, said: Any) -> Entry:
    if isinstance(said, Mapping) and isinstance(said.get(FROM), str):
        said = {**said, FROM: (said[FROM],)}
    try:
        return Entry.model_validate({FROM: said} if isinstance(said, list) else said)
    except ValidationError as error:
        first = error.errors()[0]
        where = '.'.join(map(str, first['loc']))
        raise KeyMapRefused(
            f'server_keys: {shown(path)} is an own key, a list of them, or an object with '
            f'{FROM!r} and perhaps camera, layout, length and dtype; {where}: {first["msg"]}'
        ) from None

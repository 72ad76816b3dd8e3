"""YAML of a stranger's file: refused where its nesting or its aliases unfold beyond bounds."""

from __future__ import annotations

from typing import Any

import yaml

MAX_DEPTH = 50
"""The most collections that lie within each other."""

MAX_NODES = 100_000
"""The most nodes, an alias counted as all that it stands for."""


class YamlRefused(yaml.YAMLError):
    """A text whose nesting or aliases go beyond the bounds."""


def load_yaml(text: str) -> Any:
    """
    Return what a YAML text holds, of plain types.

    Raises
    ------
    yaml.YAMLError
        It is no YAML, or it goes beyond `MAX_DEPTH` or `MAX_NODES` (`YamlRefused`).

    """
    _check(text)
    return yaml.safe_load(text)


def _check(text: str) -> None:
    """Count along the parser's events, which builds nothing."""
    nodes = {'': 0}
    open_names: list[list[str]] = []
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        if isinstance(event, yaml.CollectionEndEvent):
            open_names.pop()
            continue
        if not isinstance(event, yaml.NodeEvent):
            continue
        anchor = event.anchor or ''
        is_alias = isinstance(event, yaml.AliasEvent)
        weight = nodes.get(anchor, 1) if is_alias else 1
        for names in [*open_names, ['']]:
            for name in names:
                nodes[name] += weight
        if nodes[''] > MAX_NODES:
            raise YamlRefused(
                f'it stands for more than {MAX_NODES} values, by its aliases or by itself'
            )
        if not is_alias and anchor:
            nodes[anchor] = 1
        if isinstance(event, yaml.CollectionStartEvent):
            open_names.append([anchor] if anchor else [])
            if len(open_names) > MAX_DEPTH:
                raise YamlRefused(f'more than {MAX_DEPTH} collections lie within each other')

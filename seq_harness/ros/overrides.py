"""What was given to a node and that ROS did not take over, without a word."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
import re
from typing import Any

from rclpy.node import Node
from seq_harness.bags.bounded_yaml import load_yaml, YamlRefused
from seq_harness.bags.params import sections, value_of
from seq_harness.ros.parameters import read_settings
from seq_harness.settings import Settings, SettingsError
from seq_harness.settings.parameters import GENERAL
from yaml import YAMLError

ROS_ARGS, END = '--ros-args', '--'
PARAMETER = ('-p', '--param')
FILE = '--params-file'

REQUIRED = 'input_names'
"""What every harness is given."""

ROS_BOOLS = ('y', 'Y', 'n', 'N')
"""Bools for ROS and texts for YAML."""

_OURS = frozenset(parameter.name for parameter in GENERAL)
_GROUPS = ('inputs.', 'channels.', 'joints.')


def refuse_unbounded_files(arguments: Sequence[str]) -> None:
    """
    Check that no parameter file unfolds beyond bounds; call it before ROS reads them.

    Raises
    ------
    SettingsError
        One does; ROS would read it for minutes.

    """
    for path in _files(arguments):
        try:
            load_yaml(Path(path).read_text())
        except YamlRefused as error:
            raise SettingsError(f'{path} cannot be read: {error}') from error
        except (OSError, ValueError, YAMLError):
            continue  # ROS says what is wrong with it


def read_given(node: Node, arguments: Sequence[str]) -> Settings:
    """
    Read the settings, once it is clear that nothing of what was given got lost.

    `arguments` are those of this process, of which each is meant for this node.

    Raises
    ------
    SettingsError
        A parameter is wrong, or what was given did not reach it; names it and what to do.

    """
    refuse_lost_files(node, arguments)
    refuse_lost_values(node, arguments)
    try:
        return read_settings(node)
    except SettingsError as error:
        if node.has_parameter(REQUIRED) or not arguments:
            raise
        unheard = ' '.join(_unheard(node, Path(path)) for path in _files(arguments))
        none = f'no parameter file was given to {node.get_fully_qualified_name()}'
        raise SettingsError(f'{error} ({unheard or none})') from error


def refuse_lost_files(node: Node, arguments: Sequence[str]) -> None:
    """
    Check that each parameter file speaks to this node (G50).

    One that does not is warned of, and so is an argument for another node.

    Raises
    ------
    SettingsError
        No section of a file is for this node, and it holds parameters of a harness.

    """
    for path in map(Path, _files(arguments)):
        said = _unheard(node, path)
        names = {name for held in _sections_of(path).values() for name in held}
        ours = sorted(filter(_is_ours, names))
        if said and ours:
            raise SettingsError(
                f'{said} It holds {", ".join(ours[:3])}{", ..." if ours[3:] else ""}, which are '
                f'parameters of a harness: call the section {node.get_fully_qualified_name()} or '
                '/**, or leave the file out.'
            )
        if said:
            node.get_logger().warning(said)
    for flag, word in _of_ros(arguments):
        owner, colon, name = word.partition(':=')[0].rpartition(':')
        if flag != FILE and colon and not _speaks_to(owner, node) and _is_ours(name):
            node.get_logger().warning(
                f'{flag} {word} is for {owner}, and this node is '
                f'{node.get_fully_qualified_name()}: it changes nothing'
            )


def refuse_lost_values(node: Node, arguments: Sequence[str]) -> None:
    """
    Check that each parameter has the value that was given last, and that all places mean one type.

    Of two values of different types ROS keeps a bool before an integer before a double before a
    text, whichever comes last, and says nothing.

    Raises
    ------
    SettingsError
        Names the parameter, both values, and what to do.

    """
    for name, given in _given(node, arguments).items():
        kept = _plain(node.get_parameter(name).value) if node.has_parameter(name) else None
        value, place = given[-1]
        taken = _same(kept, value) or (place == FILE and type(kept) is type(value))
        if taken and kept is not None and not isinstance(kept, str):
            # A text that is refused by itself must not pass beside a value of the right type.
            value, place = next((each for each in given if _is_text(each[0])), (kept, ''))
            taken = not place
        if not taken:
            raise SettingsError(
                f'parameter {name!r} is given as {value!r} ({type(value).__name__}) by {place}, '
                f'and ROS keeps {kept!r} ({type(kept).__name__}) of another place: write both '
                'with one type, such as 30.0 for a double, and for the same node'
            )


def _given(node: Node, arguments: Sequence[str]) -> dict[str, list[tuple[Any, str]]]:
    """Return the values of each parameter in order, and whether an argument or a file gave it."""
    given: dict[str, list[tuple[Any, str]]] = {}
    for flag, word in _of_ros(arguments):
        if flag == FILE:
            for nodes, held in _sections_of(Path(word)).items():
                for name, value in held.items() if _speaks_to(nodes, node) else ():
                    given.setdefault(name, []).append((value, FILE))
            continue
        rule, mark, text = word.partition(':=')
        owner, colon, name = rule.rpartition(':')
        if mark and (not colon or _speaks_to(owner, node)):
            given.setdefault(name, []).append((value_of(text), PARAMETER[0]))
    return given


def _files(arguments: Sequence[str]) -> list[str]:
    return [word for flag, word in _of_ros(arguments) if flag == FILE]


def _unheard(node: Node, path: Path) -> str:
    """Say that no section of a file is for this node; empty where one is."""
    found = _sections_of(path)
    if any(_speaks_to(nodes, node) for nodes in found):
        return ''
    held = f'it has sections for {", ".join(sorted(found))}' if found else 'it has no section'
    return f'{path} says nothing to {node.get_fully_qualified_name()}: {held}.'


def _sections_of(path: Path) -> dict[str, dict[str, Any]]:
    try:
        return sections(path)
    except (OSError, SettingsError):
        return {}  # ROS has read it, and says what is wrong with it


def _speaks_to(nodes: str, node: Node) -> bool:
    """Match the name of a section as ROS does: * is one part of a name, ** any number of them."""
    pattern = nodes if nodes.startswith('/') else f'/{nodes}'
    pattern = pattern.replace('/**', '\0').replace('/*', r'/\w+').replace('\0', r'(/\w+)*')
    try:
        return re.fullmatch(pattern, node.get_fully_qualified_name()) is not None
    except re.error:
        return False


def _is_ours(name: str) -> bool:
    return name in _OURS or name.startswith(_GROUPS)


def _of_ros(arguments: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Pick the pairs of a flag and its word, in the order in which they stand."""
    inside = False
    for at, word in enumerate(arguments):
        if word in (ROS_ARGS, END):
            inside = word == ROS_ARGS
        elif inside and word in (*PARAMETER, FILE) and at + 1 < len(arguments):
            yield (FILE if word == FILE else PARAMETER[0]), arguments[at + 1]


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, (bool, int, float, str)) else list(value)


def _same(kept: Any, given: Any) -> bool:
    """Compare what ROS read with what YAML reads, which knows other forms of a number."""
    if kept is None or given is None:
        return True
    if isinstance(kept, str) and not isinstance(given, str):
        return True  # a text is kept only where nothing but texts was given
    if isinstance(kept, float) and isinstance(given, str):
        return _number(given) == kept
    # What is not a number is unlike itself, and written alike.
    alike = bool(kept == given) or repr(kept) == repr(given)
    return isinstance(kept, bool) is isinstance(given, bool) and alike


def _is_text(value: Any) -> bool:
    """Tell whether a value was written as a text: ROS reads more as a number or bool than YAML."""
    if not isinstance(value, str) or value in ROS_BOOLS:
        return False
    return _number(value) is None or not isinstance(value_of(value), str)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None

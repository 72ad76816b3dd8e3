"""Values that were given to a node and that ROS did not take over, without a word."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rclpy.node import Node
from seq_harness.bags.params import read_file, value_of
from seq_harness.settings import SettingsError

ROS_ARGS, END = '--ros-args', '--'
PARAMETER = ('-p', '--param')
FILE = '--params-file'


def refuse_lost_values(node: Node, arguments: Sequence[str]) -> None:
    """
    Check that each parameter has the value that was given last.

    Of two values of different types ROS keeps a bool before an integer before a double before a
    text, whichever comes last, and says nothing.

    Raises
    ------
    SettingsError
        Names the parameter, both values, and what to do.

    """
    for name, (value, place) in _given(node, arguments).items():
        kept = _plain(node.get_parameter(name).value) if node.has_parameter(name) else None
        if _same(kept, value) or (place == FILE and type(kept) is type(value)):
            continue
        raise SettingsError(
            f'parameter {name!r} is given as {value!r} ({type(value).__name__}) by {place}, and '
            f'ROS keeps {kept!r} ({type(kept).__name__}) of an earlier place: write both with one '
            'type, such as 30.0 for a double, and for the same node'
        )


def _given(node: Node, arguments: Sequence[str]) -> dict[str, tuple[Any, str]]:
    """Return the last value of each parameter, and whether an argument or a file gave it."""
    given: dict[str, tuple[Any, str]] = {}
    for flag, word in _of_ros(arguments):
        if flag == FILE:
            held = _in_file(word, node.get_name())
            given.update({name: (value, FILE) for name, value in held.items()})
            continue
        rule, mark, text = word.partition(':=')
        owner, colon, name = rule.rpartition(':')
        if mark and (not colon or owner.lstrip('/') in _names_of(node)):
            given[name] = (value_of(text), PARAMETER[0])
    return given


def _of_ros(arguments: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Pick the pairs of a flag and its word, in the order in which they stand."""
    inside = False
    for at, word in enumerate(arguments):
        if word in (ROS_ARGS, END):
            inside = word == ROS_ARGS
        elif inside and word in (*PARAMETER, FILE) and at + 1 < len(arguments):
            yield (FILE if word == FILE else PARAMETER[0]), arguments[at + 1]


def _in_file(path: str, name: str) -> dict[str, Any]:
    try:
        return read_file(Path(path), name)
    except SettingsError:
        return {}  # it speaks to other nodes


def _names_of(node: Node) -> tuple[str, ...]:
    return (node.get_name(), node.get_fully_qualified_name().lstrip('/'), '*', '**')


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


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None

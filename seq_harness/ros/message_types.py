"""Message classes and definitions by the names that topics carry."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from ament_index_python.packages import get_package_share_directory, PackageNotFoundError


class TypeMissing(LookupError):
    """A message type whose package is not installed here."""


def message_class(kind: str) -> Any:
    """
    Return the class of a type such as `sensor_msgs/msg/JointState`, or of an action.

    Raises
    ------
    TypeMissing
        Its package, or the type in it, is not there.

    """
    package = kind.partition('/')[0]
    try:
        _, group, name = kind.split('/')
        return getattr(import_module(f'{package}.{group}'), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise TypeMissing(
            f'the type {kind} is not installed here ({error}); install ros-*-{package}'
        ) from error


def definition(kind: str) -> str | None:
    """Return the text that defines a type, as its package ships it; None where it ships none."""
    package, _, name = kind.partition('/msg/')
    try:
        return Path(get_package_share_directory(package), 'msg', f'{name}.msg').read_text()
    except (PackageNotFoundError, OSError, ValueError):
        return None

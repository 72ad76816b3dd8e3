"""What a parameter is: its name, type, range and meaning."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
import math
import re
from typing import Any

_TOPIC = re.compile(r'(?:~?/)?[A-Za-z_]\w*(?:/[A-Za-z_]\w*)*', re.ASCII)
"""A topic name as rcl takes it, but for the substitutions in braces."""

TOPIC_LENGTH = 247
"""Characters of the longest name that the middleware takes."""


class SettingsError(ValueError):
    """A parameter is wrong; names it, what is allowed and what came."""


class Kind(Enum):
    """The type of a parameter, by its ROS name."""

    BOOL = 'bool'
    INTEGER = 'integer'
    DOUBLE = 'double'
    STRING = 'string'
    STRING_ARRAY = 'string_array'
    DOUBLE_ARRAY = 'double_array'


@dataclass(frozen=True)
class Parameter:
    """One parameter: what it means and what it may be; `default` None means required."""

    name: str
    kind: Kind
    default: Any
    description: str
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()
    is_topic: bool = False
    """It names a topic or topics; an empty name is allowed only as the default of a text."""

    @property
    def allowed(self) -> str:
        """Say what values are allowed, for people."""
        if self.choices:
            return f'one of {list(self.choices)}'
        if self.is_topic:
            names = 'a list of topic names' if self.kind is Kind.STRING_ARRAY else 'a topic name'
            empty = ', or empty' if self.default == '' else ''
            return (
                f'{names} such as camera/image_raw or /joint_states, of words of letters, digits '
                f'and _ that begin with no digit, joined by /{empty}'
            )
        article = {'integer': 'an integer'}.get(self.kind.value, f'a {self.kind.value}')
        if self.minimum is None and self.maximum is None:
            return article
        low = '-inf' if self.minimum is None else f'{self.minimum:g}'
        high = 'inf' if self.maximum is None else f'{self.maximum:g}'
        return f'{article} in [{low}, {high}]'

    def read(self, value: Any) -> Any:
        """
        Return `value` as this parameter's type; an integer serves for a double.

        Raises
        ------
        SettingsError
            Another type, not finite, out of range, not one of the choices, no topic name, or a
            list with an empty text.

        """
        try:
            result = _CONVERT[self.kind](value)
        except (TypeError, ValueError):
            raise self._wrong(value) from None
        numbers = self._numbers(result)
        if not all(math.isfinite(number) for number in numbers):
            raise self._wrong(value, ': a finite number is needed')
        if not all(self._in_range(number) for number in numbers):
            raise self._wrong(value)
        if self.choices and result not in self.choices:
            raise self._wrong(value)
        if not all(self._is_name(text) for text in self._texts(result)):
            raise self._wrong(value)
        return result

    def _numbers(self, result: Any) -> list[float]:
        if self.kind is Kind.DOUBLE_ARRAY:
            return list(result)
        return [result] if self.kind in (Kind.DOUBLE, Kind.INTEGER) else []

    def _texts(self, result: Any) -> list[str]:
        """Return the texts that must be names."""
        if self.kind is Kind.STRING_ARRAY:
            return list(result)
        return [result] if self.is_topic and result != self.default else []

    def _is_name(self, text: str) -> bool:
        if not self.is_topic:
            return bool(text)
        return len(text) <= TOPIC_LENGTH and _TOPIC.fullmatch(text) is not None

    def _in_range(self, number: float) -> bool:
        above = self.minimum is None or number >= self.minimum
        below = self.maximum is None or number <= self.maximum
        return above and below

    def _wrong(self, value: Any, more: str = '') -> SettingsError:
        return SettingsError(
            f'parameter {self.name!r} must be {self.allowed}; got {value!r} '
            f'({type(value).__name__}){more}'
        )


def _bool(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


def _integer(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError
    return value


def _double(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError
    return float(value)


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _items(value: Any) -> list[Any]:
    if value is None or isinstance(value, (str, bytes)):
        raise TypeError
    return list(value)


_CONVERT: dict[Kind, Callable[[Any], Any]] = {
    Kind.BOOL: _bool,
    Kind.INTEGER: _integer,
    Kind.DOUBLE: _double,
    Kind.STRING: _string,
    Kind.STRING_ARRAY: lambda value: tuple(_string(item) for item in _items(value)),
    Kind.DOUBLE_ARRAY: lambda value: tuple(_double(item) for item in _items(value)),
}

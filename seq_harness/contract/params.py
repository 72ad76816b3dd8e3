"""The inference parameters that a policy declares."""

from collections.abc import Mapping
import math
from typing import Any, Literal, TypeAlias

from pydantic import Field, model_validator
from seq_harness.contract.model import WireModel
from typing_extensions import Self

ParamValue: TypeAlias = int | float | bool | str


class InferParam(WireModel):
    """One parameter of a policy's `infer`, and the values it takes."""

    type: Literal['int', 'float', 'bool', 'str']
    default: ParamValue | None = None
    min: int | float | None = None
    max: int | float | None = None
    choices: list[ParamValue] | None = Field(default=None, min_length=1, max_length=64)

    @model_validator(mode='after')
    def _bounds_are_of_a_number(self) -> Self:
        if self.type in ('bool', 'str') and (self.min is not None or self.max is not None):
            raise ValueError(
                f'min and max bound a number, and the parameter is a {self.type}: use choices'
            )
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError(f'min, {self.min}, is above max, {self.max}')
        return self

    @model_validator(mode='after')
    def _default_is_allowed(self) -> Self:
        if self.default is not None:
            self._check_allowed(self.default)
        return self

    def cast(self, value: Any) -> ParamValue:
        """
        Return `value` as the declared type.

        Raises
        ------
        ValueError
            It is not of the type, or not among the values that are allowed.

        """
        typed = _as_type(self.type, value)
        self._check_allowed(typed)
        return typed

    def _check_allowed(self, value: ParamValue) -> None:
        if self.choices is not None and value not in self.choices:
            raise ValueError(f'{value!r} is not allowed; one of {self.choices} was expected')
        if isinstance(value, str):
            return
        if self.min is not None and value < self.min:
            raise ValueError(f'{value!r} is not allowed; at least {self.min} was expected')
        if self.max is not None and value > self.max:
            raise ValueError(f'{value!r} is not allowed; at most {self.max} was expected')


def cast_params(
    declared: Mapping[str, InferParam], given: Mapping[str, Any] | None
) -> dict[str, ParamValue]:
    """
    Check and convert an act's parameters, with the declared defaults in place of missing ones.

    Raises
    ------
    ValueError
        A parameter was not declared, or its value is not allowed; the text names it.

    """
    if not declared and not given:
        return {}
    given = given or {}
    unknown = sorted(given.keys() - declared.keys())
    if unknown:
        raise ValueError(f'parameters {unknown} are not declared; known are {sorted(declared)}')
    values: dict[str, ParamValue] = {}
    for name, param in declared.items():
        if name in given:
            try:
                values[name] = param.cast(given[name])
            except ValueError as error:
                raise ValueError(f'parameter {name!r}: {error}') from None
        elif param.default is not None:
            values[name] = param.default
    return values


def _as_type(name: str, value: Any) -> ParamValue:
    if name == 'bool' and isinstance(value, bool):
        return value
    if name == 'str' and isinstance(value, str):
        return value
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        number = _as_float(value)
        if name == 'float' and math.isfinite(number):
            return number
        if name == 'int' and number.is_integer():
            return int(value)
    raise ValueError(f'{value!r:.80} is no {name}')


def _as_float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf

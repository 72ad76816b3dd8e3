"""What a policy of its own inputs and outputs declares of them."""

import math
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator
from seq_harness.contract.camera import Camera
from seq_harness.contract.limits import MAX_KEY_LENGTH, MAX_STREAMS, MAX_WINDOW
from seq_harness.contract.model import WireModel
from typing_extensions import Self

OWN_FIELDS = ('observations', 'actions', 'tensors')
ARM_FIELDS = ('action', 'observation', 'embodiments')


class Stream(WireModel):
    """
    When one key of the observations is read.

    `at` is a window: the worker keeps the steps it reaches back to. `every` is fed: the policy
    keeps its own history. With neither, the key is read at the act's own step alone.
    """

    at: list[int | float] | None = Field(default=None, min_length=1, max_length=MAX_WINDOW)
    """Offsets from the act's step, none above 0, in the declaration's unit; kept ascending."""
    every: int | float | None = Field(default=None, gt=0)
    """The stride between two readings, in the declaration's unit."""
    camera: Camera | None = None

    @field_validator('at', mode='before')
    @classmethod
    def _offsets_are_numbers(cls, at: Any) -> Any:
        if isinstance(at, (list, tuple)):
            for offset in at:
                _check_count('an offset of at', offset)
        return at

    @field_validator('at')
    @classmethod
    def _offsets_reach_back(cls, at: list[int | float] | None) -> list[int | float] | None:
        if at is None:
            return None
        for offset in at:
            if offset > 0:
                raise ValueError(f'an offset of at must not be above 0, got {offset}')
        if len(set(at)) != len(at):
            raise ValueError(f'the offsets of at must differ from one another, got {at}')
        return sorted(at)

    @field_validator('every', mode='before')
    @classmethod
    def _every_is_a_number(cls, every: Any) -> Any:
        return _checked_every(every)

    @model_validator(mode='after')
    def _one_rule_a_key(self) -> Self:
        if self.at is not None and self.every is not None:
            raise ValueError(
                'a key takes at (the worker keeps) or every (the policy keeps), not both'
            )
        return self


class Observations(WireModel):
    """What a policy reads of the observations, and when."""

    streams: dict[str, Stream] | None = Field(default=None, max_length=MAX_STREAMS)
    """Key to its rule; none is the whole observation, and an empty mapping reads nothing."""
    every: int | float | None = Field(default=None, gt=0)
    """The stride at which the whole observation is fed."""
    unit: Literal['steps', 'seconds'] = 'steps'
    """What `at` and `every` count."""
    pad: Literal['repeat_first', 'drop'] = 'repeat_first'
    """What a step of a window before the episode's first reads as."""
    when_behind: Literal['wait', 'drop_oldest'] = 'wait'
    """What the robot does when the upload is behind."""

    def __init__(self, streams: Any = None, /, **fields: Any) -> None:
        if streams is not None:
            if 'streams' in fields:
                raise TypeError('streams was given twice: by position and by name')
            fields['streams'] = streams
        super().__init__(**fields)

    @field_validator('streams')
    @classmethod
    def _keys_are_plain(cls, streams: dict[str, Stream] | None) -> dict[str, Stream] | None:
        for key in streams or {}:
            if not 1 <= len(key) <= MAX_KEY_LENGTH or key != key.strip():
                raise ValueError(
                    f'{key[:MAX_KEY_LENGTH]!r} is no key of an observation: 1 to {MAX_KEY_LENGTH} '
                    'characters without a blank at either end were expected'
                )
        return streams

    @field_validator('every', mode='before')
    @classmethod
    def _every_is_a_number(cls, every: Any) -> Any:
        return _checked_every(every)

    @model_validator(mode='after')
    def _whole_or_by_key(self) -> Self:
        if self.every is not None and self.streams is not None:
            raise ValueError(
                'every feeds the whole observation and streams names its keys: give one of them, '
                'or each key its own every'
            )
        return self

    @model_validator(mode='after')
    def _steps_are_whole(self) -> Self:
        if self.unit == 'steps':
            for name, count in self._counts():
                if not isinstance(count, int):
                    raise ValueError(
                        f'{name} is {count!r}, and unit is steps, which are counted in ints: '
                        "write an int, or unit='seconds'"
                    )
        return self

    def _counts(self) -> list[tuple[str, int | float]]:
        counts: list[tuple[str, int | float]] = []
        if self.every is not None:
            counts.append(('every', self.every))
        for key, stream in (self.streams or {}).items():
            counts.extend((f'an offset of streams[{key!r}].at', x) for x in stream.at or [])
            if stream.every is not None:
                counts.append((f'streams[{key!r}].every', stream.every))
        return counts


class Actions(WireModel):
    """Which rows of a policy's answer play, and how fast."""

    key: str | None = Field(default=None, min_length=1, max_length=MAX_KEY_LENGTH)
    """The field of the answer that holds the rows; none is the answer itself."""
    hz: float | None = Field(default=None, gt=0, le=1000)
    """Rows a second."""
    open_loop_horizon: int | None = Field(default=None, ge=1, le=100_000)
    """How many rows play before the next chunk; none is all. A longer answer is cut there."""


class Tensors(WireModel):
    """The policy takes tensors on its device in place of arrays; made last in the worker."""

    batch: bool = True
    """A batch dimension comes first."""


def check_own_io(spec: Any) -> None:
    """
    Refuse a declaration that says its inputs and outputs in two ways.

    Raises
    ------
    ValueError
        One of `observations`, `actions`, `tensors` is set beside the robot-arm contract.

    """
    own = [name for name in OWN_FIELDS if getattr(spec, name, None) is not None]
    arm = [name for name in ARM_FIELDS if getattr(spec, name, None)]
    if own and arm:
        raise ValueError(
            f'{", ".join(own)} and {", ".join(arm)} were both declared: a policy has its own '
            'inputs and outputs or the robot-arm contract, so leave one of them out'
        )


def _checked_every(every: Any) -> Any:
    if every is not None:
        _check_count('every', every)
    return every


def _check_count(name: str, count: Any) -> None:
    try:
        countable = not isinstance(count, bool) and isinstance(count, (int, float))
        finite = countable and math.isfinite(count)
    except OverflowError:
        finite = False
    if not finite:
        raise ValueError(f'{name} must be a finite number of steps or seconds, got {count!r:.40}')

"""
Which observations an act reads, a worker keeps and a robot uploads.

A step is an observation's number in its episode. `t` is the act's own step, `t_prev` that of the
act before (-1 before the first), `t_next` that of the next.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from seq_harness.contract.limits import MAX_STREAM_FRAMES

Keys: TypeAlias = tuple[str, ...] | None
"""Sorted keys of an observation; None is the whole of it."""

Pick: TypeAlias = tuple[int, Keys]
"""A step, and what is read of its observation."""


class ReachRefused(ValueError):
    """A window that reaches further back than a worker keeps."""


@dataclass(frozen=True)
class Schedule:
    """A declaration in steps."""

    windows: Mapping[str, tuple[int, ...]]
    """Key to its ascending offsets, none above 0."""
    fed: Mapping[str, int]
    """Key to its stride, 1 or more."""
    alone: tuple[str, ...]
    """Keys read at the act's own step alone, in the declaration's order."""
    every: int | None
    """The stride at which the whole observation is fed."""
    whole: bool
    """Whether no keys were named."""
    pad: Literal['repeat_first', 'drop']

    @property
    def furthest(self) -> int:
        """Return the lowest offset of any window, 0 where there is none."""
        return min((min(offsets) for offsets in self.windows.values()), default=0)


def of(observations: Any, rate: float | None = None) -> Schedule | None:
    """
    Turn a declaration, a model or its JSON, into steps; None where nothing was declared.

    `rate` is in steps a second. Seconds round to the nearest step, halves to the even one.

    Raises
    ------
    ValueError
        The declaration counts seconds and no rate above 0 was given.

    """
    if observations is None:
        return None
    unit = _get(observations, 'unit') or 'steps'
    streams = _get(observations, 'streams')
    every = _get(observations, 'every')
    windows: dict[str, tuple[int, ...]] = {}
    fed: dict[str, int] = {}
    alone: list[str] = []
    for key, stream in (streams or {}).items():
        at, stride = _get(stream, 'at'), _get(stream, 'every')
        if at is not None:
            windows[key] = tuple(sorted({min(0, _to_steps(x, unit, rate)) for x in at}))
        elif stride is not None:
            fed[key] = max(1, _to_steps(stride, unit, rate))
        else:
            alone.append(key)
    return Schedule(
        windows=windows,
        fed=fed,
        alone=tuple(alone),
        every=None if every is None else max(1, _to_steps(every, unit, rate)),
        whole=streams is None,
        pad=_get(observations, 'pad') or 'repeat_first',
    )


def picks(schedule: Schedule | None, t: int, t_prev: int = -1) -> list[Pick]:
    """
    List what the act at `t` reads, oldest first.

    A step before the episode's first is left out or read as step 0, once for each such step.
    What is held has no say in it. A worker whose record starts at a later step passes that step
    less one as `t_prev`, so that fed keys ask for nothing before it.
    """
    if schedule is None:
        return [(t, None)]
    asked: dict[int, set[str] | None] = {}
    for step, key in _asked(schedule, t, t_prev):
        _merge(asked, step, None if key is None else {key})
    return [
        (max(0, step), None if keys is None else tuple(sorted(keys)))
        for step, keys in sorted(asked.items())
        if step >= 0 or schedule.pad == 'repeat_first'
    ]


def needed(schedule: Schedule | None, t: int, t_prev: int = -1) -> set[int]:
    """List the steps that the act at `t` reads beside its own."""
    return {step for step, _ in picks(schedule, t, t_prev)} - {t}


def keeps_from(schedule: Schedule | None, t: int) -> int:
    """Return the first step that an act after `t` can read and that is not after `t` itself."""
    return max(0, t + 1 + (0 if schedule is None else schedule.furthest))


def wanted(schedule: Schedule | None, t: int, t_next: int) -> dict[int, Keys]:
    """
    List what the robot uploads of the steps between the acts at `t` and at `t_next`.

    That is what the act at `t_next` reads of them, and what any act after it may read through a
    window, since that act may come at any step. The first gap is that after t = -1.
    """
    if schedule is None:
        return {}
    found: dict[int, set[str] | None] = {}
    for step, keys in picks(schedule, t_next, t):
        if t < step < t_next:
            _merge(found, step, None if keys is None else set(keys))
    for key, offsets in schedule.windows.items():
        for step in range(max(t + 1, t_next + 1 + offsets[0]), t_next):
            _merge(found, step, {key})
    return {
        step: None if keys is None else tuple(sorted(keys)) for step, keys in sorted(found.items())
    }


def envelope(picked: list[Pick], frames: Mapping[int, Any], own: Any, t: int) -> dict[str, Any]:
    """
    Make what a policy with a schedule is handed: its observations, oldest first, and their steps.

    `own` is the observation of the act at `t`; `frames` holds the earlier ones by step. Keys that
    an observation lacks are left out, and one that is no dict is handed whole.

    Raises
    ------
    KeyError
        A picked step is not held; its argument is the step.

    """
    return {
        'observations': [_only(own if step == t else frames[step], keys) for step, keys in picked],
        'steps': [step for step, _ in picked],
    }


def reads_past(declared: Any) -> bool:
    """
    Tell whether an act reads a step before its own, by a schedule or by a declaration.

    A declaration in seconds says yes where its offsets are too short to be a step at any rate.
    """
    if declared is None:
        return False
    if isinstance(declared, Schedule):
        fed_whole = declared.whole and declared.every is not None
        return declared.furthest < 0 or bool(declared.fed) or fed_whole
    if _get(declared, 'every') is not None:
        return True
    return any(
        _get(stream, 'every') is not None or any(offset < 0 for offset in _get(stream, 'at') or [])
        for stream in (_get(declared, 'streams') or {}).values()
    )


def check_reach(schedule: Schedule | None, kept: int = MAX_STREAM_FRAMES) -> None:
    """
    Refuse a window that no worker could fill, before any act runs into it.

    `kept` is how many observations of an episode the worker keeps, the act's own among them.

    Raises
    ------
    ReachRefused
        A window spans more; the text names the key.

    """
    for key, offsets in (schedule.windows if schedule else {}).items():
        if 1 - offsets[0] > kept:
            raise ReachRefused(
                f'the window of {key!r} reaches {-offsets[0]} steps back, and {kept} observations '
                f'of an episode are kept: reach at most {kept - 1} steps back'
            )


def _asked(schedule: Schedule, t: int, t_prev: int) -> Iterator[tuple[int, str | None]]:
    for key, offsets in schedule.windows.items():
        yield from ((t + offset, key) for offset in offsets)
    for key, stride in schedule.fed.items():
        yield from ((step, key) for step in range(t, t_prev, -stride))
    yield from ((t, key) for key in schedule.alone)
    if schedule.whole and schedule.every is None:
        yield t, None
    elif schedule.whole and schedule.every is not None:
        yield from ((step, None) for step in range(t, t_prev, -schedule.every))


def _merge(into: dict[int, set[str] | None], step: int, keys: set[str] | None) -> None:
    """Add keys to those of a step; the whole observation holds every key."""
    known = into.get(step, set())
    into[step] = None if keys is None or known is None else known | keys


def _only(observation: Any, keys: Keys) -> Any:
    if keys is None or not isinstance(observation, dict):
        return observation
    return {key: observation[key] for key in keys if key in observation}


def _to_steps(count: float, unit: str, rate: float | None) -> int:
    if unit == 'steps':
        return int(count)
    if not rate:
        raise ValueError(
            f'the declaration counts seconds ({count}), and no step rate was given: '
            'give the rate in steps a second, or declare steps'
        )
    return round(float(count) * float(rate))


def _get(declared: Any, name: str) -> Any:
    return declared.get(name) if isinstance(declared, Mapping) else getattr(declared, name, None)

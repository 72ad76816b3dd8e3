"""The figures of an episode for people: a live line while it runs, and a table at its end."""

from __future__ import annotations

from collections.abc import Mapping
import sys
import time
from typing import Any, TextIO

from tqdm import tqdm

PLAIN_EVERY_S = 1.0
"""How often a line is written where there is no terminal."""


def at(figures: Mapping[str, Any], path: str) -> Any:
    """Return the figure at a dotted path; None where it is missing."""
    value: Any = figures
    for name in path.split('.'):
        if not isinstance(value, Mapping):
            return None
        value = value.get(name)
    return value


def shown(figures: Mapping[str, Any], path: str, form: str = '.1f') -> str:
    """Return the figure at a dotted path as text; a dash where there is none."""
    value = at(figures, path)
    try:
        return '-' if value is None else format(value, form)
    except (ValueError, TypeError):
        return '-'


def line(figures: Mapping[str, Any]) -> str:
    """Return the live line: step, rows, round trip, ages, lateness, distance."""
    late = f'{shown(figures, "lateness_ms.p50", ".2f")}/{shown(figures, "lateness_ms.p99", ".2f")}'
    return (
        f'step {shown(figures, "steps", "d")}'
        f'  held {shown(figures, "rows.held", "d")}'
        f'  act {shown(figures, "policy.acts.round_trip_ms.p50")} ms'
        f'  age {shown(figures, "observation_age_ms.p50")} ms'
        f'  late {late} ms'
        f'  target {shown(figures, "target_distance_m", ".3f")} m'
        f'  reached {shown(figures, "targets_reached", "d")}'
    )


class Live:
    """Show progress: a bar on a terminal, a plain line a second elsewhere."""

    def __init__(self, seconds: float, stream: TextIO = sys.stderr) -> None:
        """`seconds` is the length of a full bar."""
        self._stream = stream
        self._seconds = seconds
        self._last = -PLAIN_EVERY_S
        self._bar: tqdm[Any] | None = None
        if stream.isatty():
            form = '{n:6.1f}/{total:.0f} s |{bar:12}| {postfix}'
            self._bar = tqdm(total=seconds, bar_format=form, file=stream, dynamic_ncols=True)

    def show(self, figures: Mapping[str, Any]) -> None:
        """Show the newest figures."""
        episode_s = at(figures, 'episode_s')
        episode_s = episode_s if isinstance(episode_s, (int, float)) else 0.0
        if self._bar is not None:
            # The deadline counts from when the inputs were there.
            self._bar.n = min(episode_s - (at(figures, 'waited_s') or 0.0), self._seconds)
            self._bar.set_postfix_str(line(figures))
        elif time.monotonic() - self._last >= PLAIN_EVERY_S:
            self._last = time.monotonic()
            print(f'{episode_s:6.1f} s  {line(figures)}', file=self._stream, flush=True)

    def close(self) -> None:
        """Leave the line as it is."""
        if self._bar is not None:
            self._bar.close()


_ROWS = (
    ('episode', 's', ('episode_s',)),
    ('rounds, steps', '', ('rounds', 'steps')),
    ('rows scheduled', '', ('rows.scheduled',)),
    ('  emitted, merged, held', '', ('rows.emitted', 'rows.merged', 'rows.held')),
    ('asks, answered, failed', '', ('asks.asked', 'asks.answered', 'asks.failed')),
    ('act round trip p50, p99', 'ms',
     ('policy.acts.round_trip_ms.p50', 'policy.acts.round_trip_ms.p99')),
    ('observation age p50, p99', 'ms', ('observation_age_ms.p50', 'observation_age_ms.p99')),
    ('setpoint age p50, p99', 'ms', ('setpoint_age_ms.p50', 'setpoint_age_ms.p99')),
    ('setpoint lateness p50, p99, max', 'ms',
     ('lateness_ms.p50', 'lateness_ms.p99', 'lateness_ms.max')),
    ('largest gap between setpoints', 'ms', ('largest_gap_ms',)),
    ('largest step at a join', 'rad', ('largest_join_step',)),
    ('starved', 's', ('starved_s',)),
    ('frames posted, steps skipped', '', ('policy.stream.posted', 'policy.stream.skipped')),
    ('distance to the target', 'm', ('target_distance_m',)),
    ('targets reached', '', ('targets_reached',)),
)  # fmt: skip


def table(figures: Mapping[str, Any]) -> str:
    """Return the figures of an episode as a table."""
    lines = [f'{"ended by":<34}{figures.get("reason", "-")}']
    for title, unit, paths in _ROWS:
        values = [at(figures, path) for path in paths]
        if any(value is not None for value in values):
            texts = '  '.join(_text(value) for value in values)
            lines.append(f'{title:<34}{texts} {unit}'.rstrip())
    dropped = at(figures, 'rows.dropped')
    for cause, count in dropped.items() if isinstance(dropped, Mapping) else ():
        lines.append(f'{f"  dropped: {cause}":<34}{count}')
    lines.append(f'{"setpoint thread":<34}{figures.get("scheduling", "-")}')
    return '\n'.join(lines)


def _text(value: Any) -> str:
    if value is None:
        return '-'
    return f'{value:.3f}' if isinstance(value, float) else str(value)

"""Seams that lead from the old plan's motion into the new one's."""

from __future__ import annotations

import itertools
from typing import Any

from seq_harness.playback.anchors import Arrived
from seq_harness.playback.kinds import Binary, Kinds
from seq_harness.playback.plan import Plan, Waypoint


class Crossfade:
    """
    Blend the first `rows` rows with the old plan's, aligned by time.

    Row k is `(1 - a) old + a new` with `a = (k + 1) / (rows + 1)`, in each channel's own algebra.
    """

    def __init__(self, rows: int) -> None:
        self._rows = rows

    def sew(self, old: Plan | None, new: Plan, arrived: Arrived, kinds: Kinds) -> Plan:
        if old is None:
            return new
        rows = list(new.waiting())
        for k in range(min(self._rows, len(rows))):
            rows[k] = blended(old, rows[k], (k + 1) / (self._rows + 1), kinds)
        return new.replaced(rows)


class FadeWhenLate:
    """Cross-fade only where more rows were consumed than the policy was told to expect."""

    def __init__(self, rows: int) -> None:
        self._fade = Crossfade(rows)

    def sew(self, old: Plan | None, new: Plan, arrived: Arrived, kinds: Kinds) -> Plan:
        expected = arrived.expected_rows
        if expected is None or arrived.emitted_since_ask <= expected:
            return new
        return self._fade.sew(old, new, arrived, kinds)


class VelocitySeam:
    """
    Lead the old plan's velocity into the new one's over `rows` rows.

    From the last command on, step k is `(1 - w) v_old + w (p[k+1] - p[k])`, with
    `w = (k + 1) / (rows + 1)`; what that misses of row `rows` is added along
    `10x^3 - 15x^4 + 6x^5`, so that the seam ends on the new chunk. A switch, a rate or a delta is
    not led: its rows stay as they are.
    """

    def __init__(self, rows: int) -> None:
        self._rows = rows

    def sew(self, old: Plan | None, new: Plan, arrived: Arrived, kinds: Kinds) -> Plan:
        waiting = new.waiting()
        count = min(self._rows, len(waiting))
        led: list[dict[str, Any]] = [dict(waypoint.commands) for waypoint in waiting[:count]]
        for name in led[0] if led else ():
            last = arrived.record.last.get(name)
            every = all(name in commands for commands in led)
            led_kind = kinds[name].absolute and not isinstance(kinds[name], Binary)
            if last is None or not every or not led_kind:
                continue
            for k, value in enumerate(self._led(name, waiting[:count], arrived, kinds)):
                led[k][name] = value
        sewn = [
            Waypoint(waypoint.due_ns, commands, waypoint.sampled_ns)
            for waypoint, commands in zip(waiting[:count], led, strict=True)
        ]
        return new.replaced([*sewn, *waiting[count:]])

    @staticmethod
    def _led(name: str, rows: Any, arrived: Arrived, kinds: Kinds) -> list[Any]:
        kind, last, count = kinds[name], arrived.record.last[name], len(rows)
        targets = [row.commands[name] for row in rows]
        steps = [kind.difference(a, b) for a, b in itertools.pairwise(targets)]
        steps.insert(0, steps[0] if steps else kind.difference(last.value, targets[0]))
        value, due_ns, led = last.value, last.due_ns, []
        for k, row in enumerate(rows):
            weight = (k + 1) / (count + 1)
            old = arrived.record.change(name, row.due_ns - due_ns, kinds)
            step = steps[k] if old is None else (1 - weight) * old + weight * steps[k]
            value, due_ns = kind.moved(value, step), row.due_ns
            led.append(value)
        missed = kind.difference(led[-1], targets[-1])
        return [
            kind.moved(value, _smooth((k + 1) / count) * missed) for k, value in enumerate(led)
        ]


def blended(old: Plan, waypoint: Waypoint, share: float, kinds: Kinds) -> Waypoint:
    """Return `waypoint`, `share` of the way from where `old` leads at its instant."""
    commands = dict(waypoint.commands)
    for name, value in waypoint.commands.items():
        before = old.value_at(name, waypoint.due_ns, kinds[name])
        if before is not None:
            commands[name] = kinds[name].blend(before, value, share)
    return Waypoint(waypoint.due_ns, commands, waypoint.sampled_ns)


def _smooth(x: float) -> float:
    return x**3 * (10 - 15 * x + 6 * x * x)

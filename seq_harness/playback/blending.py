"""Seams that lead from the old plan's motion into the new one's."""

from __future__ import annotations

import itertools
from typing import Any

from seq_harness.playback.anchors import Arrived
from seq_harness.playback.kinds import Binary, Kinds
from seq_harness.playback.plan import Plan, Waypoint
from seq_harness.playback.record import Record


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
    not led, and no channel that is at rest: its rows stay as they are.
    """

    def __init__(self, rows: int) -> None:
        self._rows = rows

    def sew(self, old: Plan | None, new: Plan, arrived: Arrived, kinds: Kinds) -> Plan:
        waiting = new.waiting()
        count = min(self._rows, len(waiting))
        led: list[dict[str, Any]] = [dict(waypoint.commands) for waypoint in waiting[:count]]
        for name in led[0] if led else ():
            every = all(name in commands for commands in led)
            if every and kinds[name].absolute and not isinstance(kinds[name], Binary):
                values = self._led(name, new, count, arrived.record, kinds)
                for commands, value in zip(led, values, strict=False):
                    commands[name] = value
        sewn = [
            Waypoint(waypoint.due_ns, commands, waypoint.sampled_ns)
            for waypoint, commands in zip(waiting[:count], led, strict=True)
        ]
        return new.replaced([*sewn, *waiting[count:]])

    @staticmethod
    def _led(name: str, new: Plan, count: int, record: Record, kinds: Kinds) -> list[Any]:
        """Return what the first `count` rows become; nothing where they stay as they are."""
        kind, rows = kinds[name], new.waiting()[:count]
        speed = record.speed(name, rows[0].due_ns, new.row_ns, kinds)
        if speed is None:
            return []
        targets = [row.commands[name] for row in rows]
        steps = [kind.difference(a, b) for a, b in itertools.pairwise(targets)]
        # The time since the last command is no motion: the first step lasts a row, as the others.
        spans = [new.row_ns, *(b.due_ns - a.due_ns for a, b in itertools.pairwise(rows))]
        value, led = record.last[name].value, []
        steps.insert(0, steps[0] if steps else kind.difference(value, targets[0]))
        for k, span_ns in enumerate(spans):
            weight = (k + 1) / (count + 1)
            value = kind.moved(value, (1 - weight) * speed * span_ns + weight * steps[k])
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

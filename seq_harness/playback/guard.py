"""What a chunk must satisfy before any of it plays, and a row before it goes out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from seq_harness.playback.chunk import ChunkRefused
from seq_harness.playback.kinds import Kinds
from seq_harness.playback.limits import Check, LIMITS, Limits, START, STEP, TOLERANCE
from seq_harness.playback.plan import Plan, spacing_between, Waypoint
from seq_harness.playback.record import Emitted
from seq_harness.playback.rotations import Vector
from seq_harness.playback.session import Commands

__all__ = ['LATE_PERIODS', 'TOLERANCE', 'Emitted', 'Guard', 'GuardPolicy', 'Limits', 'OnBreach']

LATE_PERIODS = 1.5
"""How many row periods one late emission may make up for, however late it is."""

LATE = 'late'
"""The cause of a change to what a late loop may not make up for at once."""

STEP_OF, DISTANCE_OF = 'a step of', 'a distance from the measured state of'


class OnBreach(Enum):
    """What becomes of a row that breaks a limit."""

    REFUSE = 'refuse'
    """The chunk is refused whole."""
    CLAMP = 'clamp'
    """The row becomes the nearest that is allowed."""
    RAMP = 'ramp'
    """The row is approached from the one before, as fast as the channel may move."""


@dataclass(frozen=True)
class GuardPolicy:
    """What a guard does about each cause; rows that are no values at all are always refused."""

    limits: OnBreach = OnBreach.REFUSE
    step: OnBreach = OnBreach.REFUSE
    start: OnBreach = OnBreach.REFUSE

    def __post_init__(self) -> None:
        """Refuse a ramp where there is nothing to lead to."""
        if self.limits is OnBreach.RAMP:
            raise ValueError('a breach of limits may be refused or clamped, not ramped')


class Guard:
    """Hold rows to their width, limits and steps, from the last command or the measured state."""

    def __init__(
        self,
        limits: Mapping[str, Limits],
        period_ns: int,
        kinds: Kinds | None = None,
        policy: GuardPolicy | None = None,
    ) -> None:
        """`period_ns` is one row's: a first row after a wait moves no further than one row may."""
        kinds = kinds or Kinds()
        self._checks = {name: Check(item, kinds[name]) for name, item in limits.items()}
        self._period_ns = period_ns
        self._policy = policy or GuardPolicy()
        self.changed: Counter[str] = Counter()
        """Values that were changed, by cause and what was done: `step: ramp`."""
        self._owed: dict[str, Any] = {}
        """What each channel that is behind its rows has still to catch up with."""

    def forget(self) -> None:
        """Let what is behind its rows stay there: others are to come."""
        self._owed.clear()

    def longest_ns(self, spacing_ns: int) -> int:
        """Return how much time one emission may make up for, whose row comes so long after one."""
        return round(LATE_PERIODS * max(self._period_ns, spacing_ns))

    def check_rows(self, rows: Iterable[Commands]) -> None:
        """
        Refuse what is no value of its channel in any row, also in one whose time has passed.

        Raises
        ------
        ChunkRefused
            As `check_plan`.

        """
        for number, commands in enumerate(rows):
            for name, value in commands.items():
                if name in self._checks:
                    self._checks[name].refuse_malformed(number, value)

    def check_plan(
        self, plan: Plan, last: Mapping[str, Emitted], measured: Mapping[str, Vector]
    ) -> Plan:
        """
        Check all that is to be emitted before any of it is, and return the plan that may play.

        `last` is what was commanded before it; a channel without is bounded from `measured`.

        Raises
        ------
        ChunkRefused
            Names the row, the channel, the joint, the value and its limit.

        """
        before = dict(last)
        seen: set[str] = set()
        emissions = plan.emissions()
        admitted, changed = [], False
        for number, waypoint in enumerate(emissions):
            commands: dict[str, Any] = {}
            spacing_ns = spacing_between(emissions[number - 1], waypoint) if number else 0
            for name, value in waypoint.commands.items():
                check = self._check_of(name)
                if name not in before:
                    value = self._start(number, check, value, measured.get(name))
                else:
                    gap_ns = _gap_ns(before[name], waypoint)
                    longest_ns = self.longest_ns(spacing_ns)
                    gap_ns = min(gap_ns, longest_ns if name in seen else self._period_ns)
                    value = self._step(number, check, value, before[name], gap_ns)
                before[name] = Emitted(value, waypoint.since_ns)
                seen.add(name)
                changed |= value is not waypoint.commands[name]
                commands[name] = value
            admitted.append(
                Waypoint(waypoint.due_ns, commands, waypoint.sampled_ns, waypoint.row_ns)
            )
        return plan.with_emissions(admitted) if changed else plan

    def passes(self, waypoint: Waypoint, last: Mapping[str, Emitted], longest_ns: int) -> bool:
        """Tell whether `check_emission` surely returns the waypoint's own commands."""
        if self._owed:
            return False
        for name, value in waypoint.commands.items():
            check, before = self._checks.get(name), last.get(name)
            if check is None or before is None:
                return False
            if not check.passes(value, before, min(_gap_ns(before, waypoint), longest_ns)):
                return False
        return True

    def check_emission(
        self,
        waypoint: Waypoint,
        last: Mapping[str, Emitted],
        longest_ns: int | None = None,
        *,
        late: bool = False,
    ) -> Commands:
        """
        Check one merged row just before it goes out, from the last command; return what may go.

        It makes up for `longest_ns` at most, by default for what a row may. What a `late` one
        would go beyond that is left to the rows that follow, which stay within the guard.

        Raises
        ------
        ChunkRefused
            As `check_plan`.

        """
        changed: dict[str, Any] = {}
        longest_ns = self.longest_ns(0) if longest_ns is None else longest_ns
        for name, own in waypoint.commands.items():
            check, before = self._check_of(name), last.get(name)
            value = self._with_owed(check, name, own)
            if before is None:
                check.refuse_malformed(0, value)
                allowed = self._inside(0, check, value)
            else:
                gap_ns = min(_gap_ns(before, waypoint), longest_ns)
                if check.passes(value, before, gap_ns):
                    self._owed.pop(name, None)
                    allowed = value
                elif late or name in self._owed:
                    allowed = self._caught_up(name, check, value, before, gap_ns)
                else:
                    allowed = self._step(0, check, value, before, gap_ns)
            if allowed is not own:
                changed[name] = allowed
        return {**waypoint.commands, **changed} if changed else waypoint.commands

    def _with_owed(self, check: Check, name: str, value: Any) -> Any:
        """Return a value with what its channel is behind; absolute ones hold that themselves."""
        owed = self._owed.get(name)
        return value if owed is None else check.kind.merge(owed, value)

    def _caught_up(self, name: str, check: Check, value: Any, before: Emitted, gap_ns: int) -> Any:
        """Return how far the channel may go, and keep what is left."""
        check.refuse_malformed(0, value)
        value = self._inside(0, check, value)
        bound = check.limits.max_velocity * (gap_ns / 1e9)
        if check.beyond_step(before.value, value, bound, STEP_OF) is None:
            self._owed.pop(name, None)
            return value
        allowed = check.kind.limited(before.value, value, bound)
        self._owed[name] = check.kind.left(allowed, value)
        self.changed[f'{LATE}: {OnBreach.CLAMP.value}'] += 1
        return allowed

    def _step(self, number: int, check: Check, value: Any, before: Emitted, gap_ns: int) -> Any:
        if check.passes(value, before, gap_ns):
            return value
        check.refuse_malformed(number, value)
        value = self._inside(number, check, value)
        bound = check.limits.max_velocity * (gap_ns / 1e9)
        fault = check.beyond_step(before.value, value, bound, STEP_OF)
        if fault is None:
            return value
        self._breach(number, STEP, fault, self._policy.step)
        return check.kind.limited(before.value, value, bound)

    def _start(self, number: int, check: Check, value: Any, measured: Vector | None) -> Any:
        check.refuse_malformed(number, value)
        value = self._inside(number, check, value)
        if not check.kind.measured:
            return value
        if measured is None:
            raise ChunkRefused(
                f'row {number} (from 0): {list(check.limits.joints)} have no measured state to '
                'start from',
                'no_state',
            )
        bound = check.limits.max_start_distance
        fault = check.beyond_step(measured, value, bound, DISTANCE_OF)
        if fault is None:
            return value
        self._breach(number, START, fault, self._policy.start)
        if self._policy.start is OnBreach.RAMP:
            bound = check.limits.max_velocity * (self._period_ns / 1e9)
        return check.kind.limited(measured, value, bound)

    def _inside(self, number: int, check: Check, value: Any) -> Any:
        fault = check.beyond_limits(value)
        if fault is None:
            return value
        self._breach(number, LIMITS, fault, self._policy.limits)
        return check.kind.clamped(value, check.limits.lower, check.limits.upper)

    def _breach(self, number: int, cause: str, fault: str, action: OnBreach) -> None:
        if action is OnBreach.REFUSE:
            raise ChunkRefused(f'row {number} (from 0): {fault}', cause)
        self.changed[f'{cause}: {action.value}'] += 1

    def _check_of(self, channel: str) -> Check:
        if channel not in self._checks:
            raise ChunkRefused(
                f'the policy commands the channel {channel!r}, which this robot does not have; '
                f'it has {sorted(self._checks)}',
                'unknown_channel',
            )
        return self._checks[channel]


def _gap_ns(before: Emitted, waypoint: Waypoint) -> int:
    """Return the time over which a step is made: a held row's counts from when it took over."""
    since_ns = waypoint.since_ns
    return (since_ns if since_ns > before.due_ns else waypoint.due_ns) - before.due_ns

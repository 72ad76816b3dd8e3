"""What goes out while the plan has ended and no other is there."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

from seq_harness.playback.kinds import KindRefused, Kinds, ZERO
from seq_harness.playback.record import Record, Slowing
from seq_harness.playback.session import Commands
from seq_harness.playback.starved_time import StarvedTime

DECELERATE_NS = 300_000_000
"""How long a channel takes by default to come to rest."""


class Starve(Enum):
    """What a starved channel does."""

    HOLD = 'hold'
    """Nothing goes out: the controller holds its last setpoint."""
    FINISH = 'finish_and_hold'
    """The rows beyond the open-loop horizon play; then as `hold`."""
    ZERO = 'zero'
    """A zero goes out, once."""
    DECELERATE = 'decelerate'
    """The last speed runs out evenly; then as `hold`, or zero for a rate."""
    STOP = 'stop'
    """The episode ends."""


class Starvation:
    """Answer the commands of starved channels."""

    def __init__(
        self,
        kinds: Kinds | None = None,
        policies: Mapping[str, Starve] | None = None,
        *,
        period_ns: int = 10_000_000,
        decelerate_ns: int = DECELERATE_NS,
        limit_ns: int | None = None,
        act_ns: int | None = None,
    ) -> None:
        """
        Take a policy by channel; without one, rates go to zero and all others hold.

        `period_ns` is from one command to the next while a channel comes to rest; starved for
        longer than `limit_ns`, the episode ends, where an act counts from the age `act_ns` on.

        Raises
        ------
        KindRefused
            A rate would be held, or what is no rate would go to zero.

        """
        self._kinds = kinds or Kinds()
        self._policies = dict(policies or {})
        self._period_ns = period_ns
        self._decelerate_ns = decelerate_ns
        self.time = StarvedTime(limit_ns, act_ns)
        """The time without rows, against its bound."""
        self._since: int | None = None
        self._runs_out: dict[str, tuple[Any, Any]] = {}
        self.next_ns: int | None = None
        """When a starved channel's next command is due; None when none is."""
        for name, policy in self._policies.items():
            self._check(name, policy)

    @property
    def finishes(self) -> bool:
        """Whether the rows beyond the horizon are to be played."""
        return Starve.FINISH in self._policies.values()

    def end(self, record: Record) -> None:
        """Note that a plan plays again."""
        self._since = self.next_ns = None
        record.slowing.clear()

    def over(self) -> str | None:
        """Return the reason for which a channel that starves ends the episode; None if none."""
        stopping = [name for name, policy in self._policies.items() if policy is Starve.STOP]
        return f'starved: {", ".join(stopping)}' if stopping else None

    def due(self, since: int, record: Record, t: int) -> Commands:
        """Return what goes out at `t`, starved since `since`."""
        commands: dict[str, Any] = {}
        if self._since is None:
            self._since, self.next_ns = since, t
            self._runs_out = {}
            for name, last in record.last.items():
                policy = self._policy_of(name)
                if policy is Starve.ZERO:
                    commands[name] = 0 * last.value
                elif policy is Starve.DECELERATE:
                    self._begin(name, record, since)
        if self.next_ns is None or t < self.next_ns:
            return commands
        elapsed = min(t - self._since, self._decelerate_ns)
        for name in self._runs_out:
            commands[name] = self._running_out(name, elapsed)
        on = bool(self._runs_out) and elapsed < self._decelerate_ns
        self.next_ns = t + self._period_ns if on else None
        return commands

    def zeros(self, record: Record) -> Commands:
        """Return what stops every rate that was commanded (a held velocity is a runaway)."""
        return {
            name: 0 * last.value
            for name, last in record.last.items()
            if self._kinds[name].starve == ZERO
        }

    def give_up(self, record: Record) -> None:
        """Let rates alone run out from now on: what else was due may not go out."""
        rates = (name for name in self._runs_out if self._kinds[name].starve == ZERO)
        self._runs_out = {name: self._runs_out[name] for name in rates}
        record.slowing.clear()

    def _policy_of(self, name: str) -> Starve:
        return self._policies.get(name, Starve(self._kinds[name].starve))

    def _begin(self, name: str, record: Record, since: int) -> None:
        last = record.last[name].value
        if self._kinds[name].starve == ZERO:
            self._runs_out[name] = (last, None)
            return
        change = record.change(name, self._decelerate_ns, self._kinds)
        if change is not None:
            self._runs_out[name] = (last, change)
            record.slowing[name] = Slowing(change, since, self._decelerate_ns)

    def _running_out(self, name: str, elapsed: int) -> Any:
        """Return the value of a speed that falls evenly to zero."""
        value, change = self._runs_out[name]
        x = elapsed / self._decelerate_ns
        if change is None:
            return value * (1 - x)
        return self._kinds[name].moved(value, change * (x - x * x / 2))

    def _check(self, name: str, policy: Starve) -> None:
        rate = self._kinds[name].starve == ZERO
        if rate and policy in (Starve.HOLD, Starve.FINISH):
            raise KindRefused(
                f'channel {name!r} is a {self._kinds[name].name}: held, it would run away; '
                'expected zero, decelerate or stop'
            )
        if not rate and policy is Starve.ZERO:
            raise KindRefused(
                f'channel {name!r} is a {self._kinds[name].name}: zero is a place to go to; '
                'expected hold, finish_and_hold, decelerate or stop'
            )

"""Stop playing while an arm is unavailable."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, Protocol, runtime_checkable

from seq_harness.playback.layers import PassedOn, SessionLayer
from seq_harness.playback.session import Commands, Observation, POLL_NS, Session

AVAILABLE = ('available', 'ok', 'ready', 'running')
UNAVAILABLE = ('unavailable', 'error', 'fault', 'protective_stop', 'emergency_stop', 'stopped')


class OnRecovery(Enum):
    """What happens once every arm is available again."""

    REPLAN = 'replan'
    """The plan is made afresh; the old chunk never resumes (R86)."""
    HOLD = 'hold'
    """Nothing plays until `cancel` is called, which plans afresh."""
    RESUME = 'resume'
    """The held rows go on where they stopped, later by the time that was lost."""


class UnknownStatus(ValueError):
    """An arm reported a status that is neither available nor unavailable."""


@runtime_checkable
class Postponable(Protocol):
    """A session whose held rows can be moved to later."""

    def postpone(self, by_ns: int, observation: Observation, t: int) -> None:
        """
        Move what is held by `by_ns`; drop it where it no longer fits the measured state.

        `observation` and `t` are those of the round which resumes.
        """


class StopOnFault(SessionLayer):
    """Above the player: cancel what plays while any arm is unavailable (R84, R85, R86)."""

    name = 'stop_on_fault'

    def __init__(
        self,
        keys: Sequence[str] = ('status',),
        *,
        on_recovery: OnRecovery = OnRecovery.REPLAN,
        available: Iterable[str] = AVAILABLE,
        unavailable: Iterable[str] = UNAVAILABLE,
        poll_ns: int = POLL_NS,
    ) -> None:
        """`keys` are those of the observation that hold a status, or one for each arm by name."""
        self._keys = tuple(keys)
        self._on_recovery = on_recovery
        self._available = frozenset(available)
        self._unavailable = frozenset(unavailable)
        self._poll_ns = poll_ns

    def faulty(self, observation: Observation) -> list[str]:
        """
        Name the arms that are unavailable; none where the observation has no status (R85).

        Raises
        ------
        UnknownStatus
            A status is not among those that are known.

        """
        found = []
        for key in self._keys:
            if key in observation:
                for arm, status in _by_arm(key, observation[key]):
                    if self._is_fault(arm, status):
                        found.append(arm)
        return found

    def _over(self, inner: Session) -> Session:
        resumes = self._on_recovery is OnRecovery.RESUME
        if resumes and not isinstance(inner, Postponable):
            raise TypeError(
                f'{self.name!r} with on_recovery=resume must stand right above the player, or '
                f'above what can postpone its rows; {type(inner).__name__} cannot'
            )
        return _Stopping(inner, self, self._on_recovery, self._poll_ns)

    def _is_fault(self, arm: str, status: Any) -> bool:
        if isinstance(status, str) and status in self._available:
            return False
        if isinstance(status, str) and status in self._unavailable:
            return True
        known = sorted(self._available | self._unavailable)
        raise UnknownStatus(
            f'{arm} has the status {status!r}; expected one of {known}: name it as available or '
            'unavailable'
        )


class _Stopping(PassedOn):
    """The session of one episode under `StopOnFault`."""

    def __init__(
        self, inner: Session, rule: StopOnFault, on_recovery: OnRecovery, poll_ns: int
    ) -> None:
        super().__init__(inner)
        self._rule = rule
        self._on_recovery = on_recovery
        self._poll_ns = poll_ns
        self._stopped_at: int | None = None

    def __call__(self, observation: Observation, t: int) -> tuple[Commands, int]:
        if self._rule.faulty(observation):
            return self._stop(t), t + self._poll_ns
        if self._stopped_at is not None:
            if self._on_recovery is OnRecovery.HOLD:
                return {}, t + self._poll_ns
            self._go_on(self._stopped_at, observation, t)
        return self._inner(observation, t)

    def cancel(self) -> None:
        self._stopped_at = None
        super().cancel()

    def _stop(self, t: int) -> Commands:
        """Return what goes out as a fault begins: a rate that is held would run away."""
        if self._stopped_at is not None:
            return {}
        self._stopped_at = t
        commands = self.stop_commands(t)
        if self._on_recovery is not OnRecovery.RESUME:
            self._inner.cancel()
        return commands

    def _go_on(self, stopped_at: int, observation: Observation, t: int) -> None:
        self._stopped_at = None
        if isinstance(self._inner, Postponable) and self._on_recovery is OnRecovery.RESUME:
            self._inner.postpone(t - stopped_at, observation, t)


def _by_arm(key: str, value: Any) -> Iterable[tuple[str, Any]]:
    return value.items() if isinstance(value, Mapping) else [(key, value)]

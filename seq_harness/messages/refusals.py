"""The named errors with which a message is refused."""

from __future__ import annotations

from enum import Enum


class ImageRefused(ValueError):
    """An image that cannot be trusted; says what was expected and what came."""


class JointsFault(Enum):
    """What is wrong with the joints of a message."""

    ABSENT = 'absent'
    """The field holds no value at all, as velocity and effort may (G2)."""
    MISSING = 'missing'
    """A wanted joint is not named."""
    AMBIGUOUS = 'ambiguous'
    """A wanted joint is named more than once."""
    TOO_SHORT = 'too_short'
    """The field holds fewer values than there are names."""
    NOT_FINITE = 'not_finite'
    """A wanted value is NaN or infinite (G1)."""


class JointsRefused(ValueError):
    """Joint values that cannot be used; `fault` says which kind, the text names the joints."""

    def __init__(self, fault: JointsFault, text: str) -> None:
        """Keep the kind of fault beside the text."""
        super().__init__(text)
        self.fault = fault


class SetpointRefused(ValueError):
    """A setpoint message that cannot be made or read; says what was expected and what came."""

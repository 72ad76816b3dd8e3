"""What a started inference gives back at once."""

from typing import Protocol, TypeVar

T_co = TypeVar('T_co', covariant=True)


class NotAnswered(Exception):
    """The answer was read before it was there."""


class Answer(Protocol[T_co]):
    """The outcome of work that goes on elsewhere (R61)."""

    def done(self) -> bool:
        """Tell, without blocking, whether `result` would return or raise the outcome."""

    def result(self) -> T_co:
        """
        Return the outcome, or raise what the work raised.

        Raises
        ------
        NotAnswered
            While the work goes on.

        """

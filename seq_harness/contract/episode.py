"""What a policy that shares its copy keeps of one episode."""

from __future__ import annotations

from typing import Any


class Episode:
    """
    One episode as the policy sees it: the same object from its first act to its end.

    The policy keeps what it likes in `state`; nothing of it leaves the process.
    """

    __slots__ = ('_id', '_steps', 'state')

    state: dict[str, Any]

    def __init__(self, id: str) -> None:  # noqa: A002
        self._id = id
        self._steps = 0
        self.state = {}

    @property
    def id(self) -> str:
        """Return the episode's id, as the robot named it."""
        return self._id

    @property
    def steps(self) -> int:
        """Count the acts that were answered before this one."""
        return self._steps

    def __repr__(self) -> str:
        return f'Episode(id={self._id!r}, steps={self._steps})'


def count_answered(episode: Episode) -> None:
    """Count one more act as answered; the worker's to call."""
    episode._steps += 1

"""Trajectories that a controller does not take, seen from the state that it publishes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

REJECTED_NS = 1_000_000_000
"""A reference that stands this long, while commands lead elsewhere, takes none of them."""

STANDS_WITHIN, ELSEWHERE = 1e-6, 0.01
"""How little a reference moves that stands, and how far off a command leads, in rad or m."""


class RejectionWatch:
    """
    Compare what is commanded with the reference that the controller follows (G39).

    A joint_trajectory_controller answers nothing to a message on its topic; one that it rejects
    leaves its reference where it was.
    """

    def __init__(self, joints: Sequence[str], topic: str) -> None:
        """`joints` are those commanded; `topic` is the controller's, for people."""
        self._joints = tuple(joints)
        self._topic = topic
        self._commanded: tuple[float, ...] | None = None
        self._stood: tuple[float, ...] | None = None
        self._since_ns: int | None = None

    def commanded(self, message: Any) -> None:
        """Take a trajectory that was sent; from any thread, as it is replaced whole."""
        self._commanded = tuple(message.points[-1].positions)

    def look(self, state: Any, now_ns: int) -> str:
        """Take a control_msgs/JointTrajectoryControllerState; say what is wrong, or nothing."""
        reference = self._reference(state)
        commanded = self._commanded
        if reference is None or commanded is None or not _apart(commanded, reference, ELSEWHERE):
            self._since_ns = None
            return ''
        stood = self._stood
        if self._since_ns is None or stood is None or _apart(reference, stood, STANDS_WITHIN):
            self._since_ns, self._stood = now_ns, reference
        stood_ns = now_ns - self._since_ns
        if stood_ns < REJECTED_NS:
            return ''
        return (
            f'the controller of {self._topic} has followed no trajectory for '
            f'{stood_ns / 1e9:.1f} s: look into its log for the reason (a joint that it does not '
            'have, a partial set of joints, a time that is past, or it is not active)'
        )

    def _reference(self, state: Any) -> tuple[float, ...] | None:
        """Return the reference of our joints; called `desired` before ROS 2 Jazzy."""
        point = getattr(state, 'reference', None) or getattr(state, 'desired', None)
        if point is None:
            return None
        found = dict(zip(state.joint_names, point.positions, strict=False))
        if any(joint not in found for joint in self._joints):
            return None
        return tuple(found[joint] for joint in self._joints)


def _apart(one: Sequence[float], other: Sequence[float], by: float) -> bool:
    return any(abs(a - b) > by for a, b in zip(one, other, strict=True))

"""Grippers that may be commanded to close with no force."""

from __future__ import annotations

from seq_harness.settings import Settings

WITH_EFFORT = ('gripper_command', 'gripper_action')
"""Types whose message always holds an effort; the other leaves it out where none is set."""


def without_effort(settings: Settings) -> list[str]:
    """Say which grippers are sent an effort of 0, which each server reads in its own way (G56)."""
    return [
        f'channels.{item.name}.max_effort is 0, and is sent as 0: many controllers read that as '
        'no bound, a Franka hand as no force, so that it drops what it holds'
        for item in settings.channels
        if item.type in WITH_EFFORT and not item.max_effort
    ]

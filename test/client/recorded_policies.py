"""Policies that answer what they read, for workers that run as processes of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar


class Every:
    """Reads every step, and keeps the number of acts it answered."""

    observations: ClassVar[Mapping[str, Any]] = {'every': 1}

    def __init__(self) -> None:
        self.acts = 0

    def infer(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Answer the numbers of the steps, by the worker and by the robot."""
        self.acts += 1
        return {
            'steps': inputs['steps'],
            'numbers': [int(seen['number']) for seen in inputs['observations']],
            'sums': [int(seen['image'].sum()) for seen in inputs['observations']],
            'acts': self.acts,
        }


class Window:
    """Reads a window of one key and the newest of another; keeps nothing."""

    observations: ClassVar[Mapping[str, Any]] = {
        'streams': {'image': {'at': [-6, -3, 0]}, 'number': {'at': [-6, -3, 0]}}
    }

    def infer(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Answer the numbers of the steps, by the worker and by the robot."""
        return {
            'steps': inputs['steps'],
            'numbers': [int(seen['number']) for seen in inputs['observations']],
            'sums': [int(seen['image'].sum()) for seen in inputs['observations']],
        }

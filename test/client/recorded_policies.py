"""Policies that answer what they read, for workers that run as processes of their own."""

from __future__ import annotations

from collections.abc import Mapping
import os
import threading
from typing import Any, ClassVar

RAN = 'SEQ_HARNESS_RAN'
"""Names the file that a counted policy writes to."""


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


class Slow:
    """Takes two seconds for an answer, in which others may run."""

    def infer(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Answer in the end."""
        threading.Event().wait(2.0)
        return {}


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


class Counted(Window):
    """Reads a window, and writes down which act it runs, before it does anything else."""

    def __init__(self) -> None:
        self._ran = os.open(os.environ[RAN], os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def infer(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Answer as the window does."""
        os.write(self._ran, f'{inputs["observations"][-1]["number"]}\n'.encode())
        return super().infer(inputs)

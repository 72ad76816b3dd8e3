"""The worker as it is shipped, in a process of its own, and a robot that acts on it."""

from __future__ import annotations

from pathlib import Path
import signal
import subprocess
import sys
import threading
from typing import Any

from client.robot import Robot
import numpy as np
from support.ports import free_port
from support.waiting import PATIENCE_S


class WorkerProcess:
    """A worker that can be killed and started again on its port."""

    def __init__(self, policy: str) -> None:
        self._policy = policy
        self._port = free_port()
        self.url = ''
        self._process: subprocess.Popen[str] | None = None
        self.start()

    def start(self) -> None:
        """Start it and wait until it listens."""
        command = [
            *(sys.executable, '-m', 'seq_harness.cli.worker'),
            *(f'recorded_policies:{self._policy}', '--port', str(self._port)),
        ]
        self._process = subprocess.Popen(
            command, cwd=Path(__file__).parent, stdout=subprocess.PIPE, text=True
        )
        self.url = _first_line(self._process).split()[-1]

    def send(self, number: signal.Signals) -> None:
        """Send it a signal, such as one that freezes it."""
        if self._process is not None:
            self._process.send_signal(number)

    def kill(self) -> None:
        """Kill it, as nothing can be prepared for."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(PATIENCE_S)
            if self._process.stdout is not None:
                self._process.stdout.close()
            self._process = None


def _first_line(process: subprocess.Popen[str]) -> str:
    lines: list[str] = []
    stdout = process.stdout
    assert stdout is not None
    reader = threading.Thread(target=lambda: lines.append(stdout.readline()), daemon=True)
    reader.start()
    reader.join(PATIENCE_S)
    assert lines, 'the worker did not say where it listens'
    assert lines[0].startswith('serving'), lines[0]
    return lines[0]


def observation(number: int) -> dict[str, Any]:
    return {'number': number, 'image': np.full((48, 64, 3), number % 251, np.uint8)}


def check(read: dict[str, Any], skipped: set[int], base: int = 0) -> list[int]:
    """Check that what was read are the real observations of its steps; return them."""
    steps = [step + base for step in read['steps']]
    assert read['numbers'] == steps
    assert read['sums'] == [(step % 251) * 48 * 64 * 3 for step in steps]
    assert not skipped & set(steps)
    return steps


class Drive:
    """A robot that skips and observes between its acts, as a real one does."""

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        self.skipped: set[int] = set()

    def between(self, steps: int) -> None:
        """Observe `steps` steps, and skip each seventh."""
        for _ in range(steps):
            if (self.robot.number + 1) % 7 == 0:
                self.robot.number += 1
                self.skipped.add(self.robot.number)
                self.robot.scope.skip(self.robot.number)
            else:
                self.robot.observe(observation(self.robot.number + 1))

    def act(self) -> dict[str, Any]:
        """Ask about the next step and return what the policy read."""
        read: dict[str, Any] = self.robot.act(observation(self.robot.number + 1))
        return read

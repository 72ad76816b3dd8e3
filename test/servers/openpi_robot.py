"""A robot before a policy that openpi's own server serves."""

from __future__ import annotations

from contextlib import ExitStack
import json
from pathlib import Path
import time
from typing import Any

import numpy as np
from seq_harness.client.registry import policy_at
from seq_harness.playback.uplink import Step
from support.servers import OURS, served, ServerProcess
from support.waiting import PATIENCE_S

SCRIPT = Path(__file__).parent / 'serve_openpi.py'

FORGETFUL = {'server_keeps_state': False}
"""What the owner of a policy says that remembers nothing between two questions."""


class Robot:
    """The policy of a server, and what the user was told."""

    def __init__(self, port: int, **options: Any) -> None:
        self.port = port
        self.told: list[str] = []
        self.policy = policy_at(
            f'openpi+ws://127.0.0.1:{port}',
            on_state=self.told.append,
            **{'connect_timeout_s': PATIENCE_S, 'reconnect_s': 5.0, **options},
        )

    def heard(self, text: str) -> bool:
        """Tell whether the user was told of something."""
        return any(text in said for said in self.told)

    def scope(self) -> Any:
        return self.policy.open_episode(time.monotonic_ns)


def step(number: int = 0, observation: dict[str, Any] | None = None) -> Step:
    seen = {'state': np.zeros(6, np.float32), 'prompt': 'reach'}
    return Step(number, time.monotonic_ns(), observation or seen)


def count(outputs: Any) -> int:
    """Return which inference of its server an answer is."""
    return int(outputs['actions'][0][0])


def read(server: ServerProcess) -> list[Any]:
    """Return what the server was asked about, by type and shape."""
    lines = [line for line in server.output().splitlines() if line.startswith('{')]
    return [json.loads(line)['read'] for line in lines]


def robot_at(stack: ExitStack, *arguments: str, **options: Any) -> tuple[ServerProcess, Robot]:
    """Start a server and make a robot for it; both end with the stack."""
    server, port = stack.enter_context(served(SCRIPT, *arguments, variables=OURS))
    robot = Robot(port, **options)
    stack.callback(robot.policy.close)
    return server, robot

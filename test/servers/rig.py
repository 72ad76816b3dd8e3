"""A simulated arm and a harness as processes, and what goes out to the arm."""

from __future__ import annotations

from collections.abc import Callable
import json
from pathlib import Path
from typing import Any

from seq_harness.cli.children import Children
from seq_harness.ros.watcher import Watcher
from std_msgs.msg import Float64MultiArray
from support.driving import PATIENT
from support.waiting import PATIENCE_S, wait_for

CONFIG = Path(__file__).parents[2] / 'config' / 'demo.yaml'


class Rig:
    """An arm, a harness and a watcher of what goes out."""

    def __init__(self, children: Children, watcher: Watcher) -> None:
        self._children = children
        self.watcher = watcher
        self.setpoints: list[list[float]] = []
        topic = 'forward_position_controller/commands'
        watcher.node.create_subscription(Float64MultiArray, topic, self._heard, 10)

    def _heard(self, said: Any) -> None:
        self.setpoints.append(list(said.data))

    def harness(self, url: str, **parameters: Any) -> None:
        """Start the node as a process; a parameter is written as JSON, which is YAML too."""
        command = ['harness', '--ros-args', '--params-file', str(CONFIG)]
        given = {'worker_url': url, **parameters}
        for parameter in (*PATIENT, *(f'{name}:={json.dumps(given[name])}' for name in given)):
            command += ['-p', parameter]
        self._children.start('harness', command)

    def until(self, condition: Callable[[], bool], within_s: float, what: str) -> None:
        self.watcher.wait(condition, within_s, what, lambda: None)

    def begin(self) -> None:
        """Start an episode once the harness is ready."""
        self.until(lambda: self.watcher.ready, PATIENCE_S, 'a ready harness')
        assert self.watcher.call('start') == ''

    def ended(self) -> str:
        """Return why the episode ended."""
        self.until(lambda: bool(self.watcher.reason), PATIENCE_S, 'the end of the episode')
        return self.watcher.reason

    def failure(self) -> str:
        """Return what the harness said before it refused to configure."""
        wait_for(lambda: self._children.ended('harness') is not None, PATIENCE_S, 'the refusal')
        assert self._children.ended('harness') == 1
        return self._children.log('harness').read_text()

"""The node over DDS, with a simulated arm and a positronic server as other processes."""

from __future__ import annotations

from collections.abc import Iterator
import json
from pathlib import Path
import subprocess
import sys
import time
from typing import Any

import pytest
from seq_harness.cli.children import Children
from seq_harness.ros.watcher import Watcher
from std_msgs.msg import Float64MultiArray
from support.driving import PATIENT, patient_demo
from support.servers import needs_servers, OURS, served, ServerProcess
from support.waiting import PATIENCE_S

pytestmark = needs_servers

SCRIPT = Path(__file__).parent / 'serve_positronic.py'
CONFIG = Path(__file__).parents[2] / 'config' / 'demo.yaml'
SETPOINTS = 'forward_position_controller/commands'
LATE_S = 0.5
"""Ten rows: what was sent before the end may be heard so late."""

REACH = {'form': 'reach'}


class Arm:
    """A simulated arm, a harness, and what it was commanded."""

    def __init__(self, children: Children, watcher: Watcher, port: int) -> None:
        self._children = children
        self._port = port
        self.watcher = watcher
        self.setpoints: list[float] = []
        watcher.node.create_subscription(
            Float64MultiArray, SETPOINTS, lambda _: self.setpoints.append(time.monotonic()), 10
        )

    def begin(self, **params: Any) -> None:
        """Start an episode in a session of these parameters; return once the arm moves."""
        command = ['harness', '--ros-args', '--params-file', str(CONFIG)]
        said = json.dumps({**REACH, **params})
        url = f'positronic+ws://127.0.0.1:{self._port}'
        for parameter in (*PATIENT, f'worker_url:={url}', f"policy_params:='{said}'"):
            command += ['-p', parameter]
        self._children.start('harness', command)
        self._until(lambda: self.watcher.ready, PATIENCE_S, 'a ready harness')
        assert self.watcher.call('start') == ''
        self._until(lambda: len(self.setpoints) > 5, PATIENCE_S, 'setpoints')

    def ended(self) -> str:
        """Return why the episode ended, and check that no setpoint came after it."""
        self._until(lambda: bool(self.watcher.reason), PATIENCE_S, 'the end of the episode')
        ended = time.monotonic()
        self._until(lambda: time.monotonic() > ended + LATE_S + 0.5, PATIENCE_S, 'a while')
        assert not [at for at in self.setpoints if at > ended + LATE_S]
        return self.watcher.reason

    def _until(self, condition: Any, within_s: float, what: str) -> None:
        self.watcher.wait(condition, within_s, what, lambda: self._children.check(['harness']))


@pytest.fixture
def server() -> Iterator[tuple[ServerProcess, int]]:
    with served(SCRIPT, variables=OURS) as started:
        yield started


@pytest.fixture
def arm(tmp_path: Path, server: tuple[ServerProcess, int]) -> Iterator[Arm]:
    with Children(tmp_path) as children:
        children.start('sim_arm', ['sim-arm'])
        with Watcher() as watcher:
            yield Arm(children, watcher, server[1])


def test_the_demo_reaches_its_targets_with_a_policy_that_it_serves(tmp_path: Path) -> None:
    file = tmp_path / 'figures.json'
    with served(SCRIPT, '--defaults', json.dumps({**REACH, 'jumps': 1}), variables=OURS) as (
        _,
        port,
    ):
        command = [
            *(sys.executable, '-m', 'seq_harness.cli.main', 'demo'),
            *('--params-file', str(patient_demo(tmp_path))),
            *('--worker', f'positronic+ws://127.0.0.1:{port}', '--json', str(file)),
        ]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
    assert done.returncode == 0, done.stderr
    figures = json.loads(file.read_text())
    assert figures['reason'] == 'policy:targets_reached'
    rows = figures['rows']
    dropped = sum(rows['dropped'].values())
    assert rows['scheduled'] == rows['emitted'] + rows['merged'] + dropped + rows['held']
    acts = figures['policy']['acts']
    assert acts['answered'] == acts['asked'] > 3
    assert acts['handler_ms']['p50'] <= acts['round_trip_ms']['p50']
    assert figures['policy']['server']['infer_ms']['count'] == acts['answered']


def test_a_failed_inference_ends_the_episode_by_its_name(arm: Arm) -> None:
    arm.begin(fail_at=2)
    assert arm.ended() == 'policy_error: the gripper model has no weights'


def test_a_killed_server_ends_the_episode(arm: Arm, server: tuple[ServerProcess, int]) -> None:
    arm.begin()
    server[0].kill()
    reason = arm.ended()
    assert reason.startswith('policy_state_lost: the session was lost, and with it')

"""The node as a process: who else commands its arm, and what it shows of the policy."""

from __future__ import annotations

from pathlib import Path
import re
from typing import Any

from seq_harness.cli.children import Children
from seq_harness.ros.watcher import Watcher
from std_msgs.msg import Float64MultiArray
from support.waiting import PATIENCE_S, wait_for
from trajectory_msgs.msg import JointTrajectory

CONFIG = Path(__file__).parents[2] / 'config' / 'demo.yaml'
HOLD = 'seq_harness.worker.policies.hold:Hold'
TOPIC = 'forward_position_controller/commands'


def serve(children: Children) -> str:
    """Start a worker and the simulated arm; return where the worker listens."""
    children.start('sim_arm', ['sim-arm'])
    children.start('worker', ['worker', HOLD, '--port', '0'])
    log = children.log('worker')
    pattern = re.compile(r'serving \S+ on (ws://\S+)')
    wait_for(lambda: bool(pattern.search(log.read_text())), PATIENCE_S, 'the worker')
    found = pattern.search(log.read_text())
    return found.group(1) if found else ''


def test_g45_the_node_does_not_start_beside_another_commander_and_ends_when_one_comes(
    tmp_path: Path,
) -> None:
    with Children(tmp_path) as children, Watcher() as watcher:
        url = serve(children)
        shown: list[Any] = []
        watcher.node.create_subscription(JointTrajectory, 'harness/chunk', shown.append, 1)
        teleop = watcher.node.create_publisher(Float64MultiArray, TOPIC, 1)
        command = ['harness', '--ros-args', '--params-file', str(CONFIG)]
        children.start('harness', [*command, '-p', f'worker_url:={url}'])
        watcher.wait(lambda: watcher.ready, PATIENCE_S, 'a ready harness', lambda: None)
        assert 'another publisher commands /forward_position' in watcher.call('start')

        watcher.node.destroy_publisher(teleop)
        watcher.wait(lambda: watcher.call('start') == '', PATIENCE_S, 'a start', lambda: None)
        watcher.wait(lambda: bool(shown), PATIENCE_S, 'a chunk', lambda: None)
        assert re.fullmatch(r'step-\d+/r-[0-9a-f]{8}', shown[0].header.frame_id)
        assert len(shown[0].joint_names) == 6

        watcher.node.create_publisher(Float64MultiArray, TOPIC, 1)
        watcher.wait(
            lambda: bool(watcher.reason), PATIENCE_S, 'the end of the episode', lambda: None
        )
        assert watcher.reason.startswith('other_publisher: another publisher commands')

"""The same policy on the real node: a simulated arm, a worker and the harness as processes."""

from __future__ import annotations

from dataclasses import dataclass
import json
import os
from pathlib import Path
import re
import tempfile

from _goes import GOES
from _going_on import Case, DRAINING
import numpy as np
from seq_harness.cli.children import Children
from seq_harness.ros.watcher import Watcher
from std_msgs.msg import Float64MultiArray

ROOT = Path(__file__).parents[1]
COMMANDS = 'forward_position_controller/commands'
WITHIN_S = 40.0
EPISODE_S = 20.0
WAY_S, CLEAR_RAD = 1.0, 0.1
"""The arm goes one way where it comes that far in that time."""


@dataclass
class NodeRan:
    """What an episode came to: joint 1's progress and its steps back, in rad."""

    progress: float
    largest_back: float
    steps_back: int
    stood_s: float
    reason: str
    said: list[str]
    """What the node said of chunks and answers."""


def on_the_node(case: Case, tail_s: float = 0.0, drains: bool = False) -> NodeRan:
    """Play one episode of the policy in the default mode, or by `drain`."""
    os.environ['PYTHONPATH'] = os.pathsep.join(
        [str(Path(__file__).parent), os.environ.get('PYTHONPATH', '')]
    )
    of = {'rows': case.rows, 'hz': case.hz, 'delay': case.delay(0), 'tail': tail_s}
    os.environ[GOES] = json.dumps(of)
    mode = [f'{name}:={value}' for name, value in DRAINING.items()] if drains else []
    with tempfile.TemporaryDirectory() as logs, Children(Path(logs)) as children:
        children.start('sim_arm', ['sim-arm', '--ros-args', '-p', 'joint_rate_hz:=500.0'])
        children.start('worker', ['worker', '_goes:Goes', '--port', '0'])
        with Watcher() as watcher:
            url = _served(children, watcher)
            given = [f'worker_url:={url}', f'episode_s:={EPISODE_S}', *mode]
            words = [word for item in given for word in ('-p', item)]
            demo = ['--params-file', str(ROOT / 'config' / 'demo.yaml')]
            children.start('harness', ['harness', '--ros-args', *demo, *words])
            return _episode(children, watcher)


def _served(children: Children, watcher: Watcher) -> str:
    pattern, log = re.compile(r'serving \S+ on (ws://\S+)'), children.log('worker')
    watcher.wait(
        lambda: bool(pattern.search(log.read_text())), WITHIN_S, 'the worker', children.check
    )
    found = pattern.search(log.read_text())
    return found.group(1) if found else ''


def _episode(children: Children, watcher: Watcher) -> NodeRan:
    sent: list[tuple[float, float]] = []

    def note(message: Float64MultiArray) -> None:
        sent.append((watcher.node.get_clock().now().nanoseconds / 1e9, message.data[0]))

    watcher.node.create_subscription(Float64MultiArray, COMMANDS, note, 50)
    each = children.check
    watcher.wait(lambda: watcher.ready, WITHIN_S, 'a ready harness', each)
    watcher.wait(lambda: not watcher.figures['missing_inputs'], WITHIN_S, 'inputs', each)
    refused = watcher.call('start')
    if refused:
        raise RuntimeError(f'the start was refused: {refused}')
    watcher.wait(lambda: bool(watcher.reason) and not watcher.live, WITHIN_S, 'an end', each)
    progress, back = _motion(sent)
    log = children.log('harness').read_text()
    return NodeRan(
        progress=progress,
        largest_back=max(back, default=0.0),
        steps_back=len(back),
        stood_s=float(watcher.figures['starved_s']),
        reason=watcher.reason,
        said=re.findall(r'chunk [0-9.]+ s, answers.*', log),
    )


def _motion(sent: list[tuple[float, float]]) -> tuple[float, list[float]]:
    """Return how far joint 1 went, and its steps against the way it was going."""
    instants, values = np.array(sent).T
    # The way is what a second comes to; near a turn it comes to little.
    around = [np.interp(instants + side * WAY_S / 2, instants, values) for side in (-1, 1)]
    way = around[1] - around[0]
    steps = np.diff(values) * np.sign(way[1:])
    clear = np.abs(way[1:]) > CLEAR_RAD
    back = [float(-step) for step in steps[clear] if step < -1e-5]
    return float(np.sum(steps[clear])), back

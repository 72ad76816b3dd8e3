"""The node over DDS with a scripted roboarena server."""

from __future__ import annotations

from collections.abc import Iterator
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from seq_harness.cli.children import Children
from seq_harness.ros.watcher import Watcher
from servers.scripted import Scripted, scripted
from std_msgs.msg import Float64MultiArray
from support.waiting import wait_for

CONFIG = Path(__file__).parents[2] / 'config' / 'demo.yaml'

GREETING = {
    'image_resolution': [120, 160],
    'needs_wrist_camera': False,
    'n_external_cameras': 1,
    'needs_session_id': True,
}
STATE = 'observation/joint_position'

KEYS = {
    'observation/exterior_image_1_left': 'front',
    STATE: 'state',
    'observation/gripper_position': None,
    'observation/cartesian_position': None,
}


def holding(connection: Any, message: dict[str, Any]) -> Any:
    """Answer rows that hold the arm where it is."""
    if message['endpoint'] == 'reset':
        return 'reset successful'
    return np.tile(message[STATE], (8, 1))


class Rig:
    """A server, an arm, a harness, and a watcher of what goes out."""

    def __init__(self, server: Scripted, children: Children, watcher: Watcher) -> None:
        self.server = server
        self.children = children
        self.watcher = watcher
        self.setpoints: list[list[float]] = []
        topic = 'forward_position_controller/commands'
        watcher.node.create_subscription(Float64MultiArray, topic, self._heard, 10)

    def _heard(self, said: Any) -> None:
        self.setpoints.append(list(said.data))

    def harness(self, **parameters: Any) -> None:
        url = f'roboarena+ws://127.0.0.1:{self.server.port}'
        command = ['harness', '--ros-args', '--params-file', str(CONFIG)]
        for name, value in {'worker_url': url, **parameters}.items():
            command += ['-p', f'{name}:={json.dumps(value)}']
        self.children.start('harness', command)

    def until(self, condition: Any, within_s: float, what: str) -> None:
        self.watcher.wait(condition, within_s, what, lambda: None)


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    with scripted(holding, GREETING) as server, Children(tmp_path) as children:
        children.start('sim_arm', ['sim-arm'])
        with Watcher() as watcher:
            yield Rig(server, children, watcher)


def test_roboarena_policy_holds_the_arm_with_what_the_greeting_asks_for(rig: Rig) -> None:
    joints = [f'joint_{i}' for i in range(1, 7)]
    rig.harness(
        server_keys=json.dumps(KEYS), server_columns=joints, asking='drain', handoff='arrival'
    )
    rig.until(lambda: rig.watcher.ready, 30.0, 'a ready harness')
    warm = [message['endpoint'] for message in rig.server.messages]
    assert warm == ['reset', 'infer']
    assert rig.watcher.call('start') == ''
    rig.until(lambda: len(rig.setpoints) > 30, 20.0, 'setpoints of several chunks')
    assert rig.watcher.call('stop') == ''
    rig.until(lambda: bool(rig.watcher.reason), 5.0, 'the stop')
    assert rig.watcher.reason == 'stop'
    said = rig.server.messages[2:]
    assert [message['endpoint'] for message in said[:3]] == ['reset', 'infer', 'infer']
    assert said[1]['observation/exterior_image_1_left'].shape == (120, 160, 3)
    assert said[1]['prompt'] == 'reach for the target'
    assert len({message['session_id'] for message in said}) == 1
    assert np.ptp(np.array(rig.setpoints), axis=0).max() < 0.05


def test_roboarena_greeting_that_no_input_satisfies_is_refused_naming_both(rig: Rig) -> None:
    rig.harness(server_columns=[f'joint_{i}' for i in range(1, 7)])
    wait_for(lambda: rig.children.ended('harness') is not None, 30.0, 'the refusal')
    said = rig.children.log('harness').read_text()
    assert "['cartesian', 'exterior_1', 'gripper', 'joints'], which no input gives" in said
    assert "['front', 'prompt', 'state']" in said
    assert "cartesian -> 'observation/cartesian_position'" in said

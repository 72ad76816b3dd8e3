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
from servers.rig import Rig
from servers.scripted import Scripted, scripted
from support.waiting import PATIENCE_S

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


@pytest.fixture
def server() -> Iterator[Scripted]:
    with scripted(holding, GREETING) as listening:
        yield listening


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    with Children(tmp_path) as children, Watcher() as watcher:
        children.start('sim_arm', ['sim-arm'])
        yield Rig(children, watcher)


def url(server: Scripted) -> str:
    return f'roboarena+ws://127.0.0.1:{server.port}'


def test_roboarena_policy_holds_the_arm_with_what_the_greeting_asks_for(
    rig: Rig, server: Scripted
) -> None:
    joints = [f'joint_{i}' for i in range(1, 7)]
    rig.harness(
        url(server),
        server_keys=json.dumps(KEYS),
        server_columns=joints,
        asking='drain',
        handoff='arrival',
    )
    rig.until(lambda: rig.watcher.ready, PATIENCE_S, 'a ready harness')
    warm = [message['endpoint'] for message in server.messages]
    assert warm == ['reset', 'infer']
    assert rig.watcher.call('start') == ''
    rig.until(lambda: len(rig.setpoints) > 30, PATIENCE_S, 'setpoints of several chunks')
    assert rig.watcher.call('stop') == ''
    assert rig.ended() == 'stop'
    said = server.messages[2:]
    assert [message['endpoint'] for message in said[:3]] == ['reset', 'infer', 'infer']
    assert said[1]['observation/exterior_image_1_left'].shape == (120, 160, 3)
    assert said[1]['prompt'] == 'reach for the target'
    assert len({message['session_id'] for message in said}) == 1
    assert np.ptp(np.array(rig.setpoints), axis=0).max() < 0.05


def test_roboarena_greeting_that_no_input_satisfies_is_refused_naming_both(
    rig: Rig, server: Scripted
) -> None:
    rig.harness(url(server), server_columns=[f'joint_{i}' for i in range(1, 7)])
    said = rig.failure()
    assert "['cartesian', 'exterior_1', 'gripper', 'joints'], which no input gives" in said
    assert "['front', 'prompt', 'state']" in said
    assert "cartesian -> 'observation/cartesian_position'" in said

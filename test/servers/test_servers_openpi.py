"""Policies behind openpi's own server, in a process of its own."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
import subprocess
import threading
import time

import numpy as np
import pytest
from seq_harness.client import plain_link, plain_websocket
from seq_harness.client.key_map import KeyMapRefused
from seq_harness.contract.images import fit_image
from seq_harness.playback.uplink import (
    PolicyError,
    Retired,
)
from servers.openpi_robot import count, FORGETFUL, read, Robot, robot_at, SCRIPT, step
from support.ports import free_port
from support.servers import needs_servers, OURS, PYTHON, served, ServerProcess
from support.waiting import PATIENCE_S, wait_for

pytestmark = needs_servers

DROID = {
    'exterior': np.zeros((224, 224, 3), np.uint8),
    'wrist': np.zeros((224, 224, 3), np.uint8),
    'joints': np.zeros(7, np.float32),
    'gripper': np.zeros(1, np.float32),
    'prompt': 'fold',
}


Start = Callable[..., tuple[ServerProcess, Robot]]


@pytest.fixture
def start(stack: ExitStack) -> Start:
    """Start a server and make a robot for it; both end with the test."""
    return partial(robot_at, stack)


def test_openpi_rows_are_answered_to_own_keys_without_any_map(start: Start) -> None:
    server, robot = start('--metadata', '{"reset_pose": [0.0, 1.0]}')
    declaration = robot.policy.connect()
    assert declaration.actions is not None
    assert declaration.actions.key == 'actions'
    assert declaration.observations is not None
    assert declaration.observations.streams is None
    outputs = robot.scope().infer(step())
    assert outputs['actions'].shape == (8, 6)
    assert not outputs['actions'].flags.writeable
    assert read(server) == [{'state': ['<f4', 6], 'prompt': 'reach'}]


def test_openpi_droid_reads_its_keys_at_its_sizes(start: Start) -> None:
    server, robot = start('--width', '8', server={'server_preset': 'droid'})
    declaration = robot.policy.connect()
    assert declaration.columns == [*(f'joint_{i}' for i in range(1, 8)), 'gripper']
    robot.policy.warm_up(DROID)
    assert read(server) == [
        {
            'observation/exterior_image_1_left': ['|u1', 224, 224, 3],
            'observation/wrist_image_left': ['|u1', 224, 224, 3],
            'observation/joint_position': ['<f4', 7],
            'observation/gripper_position': ['<f4', 1],
            'prompt': 'fold',
        }
    ]


def test_openpi_aloha_reads_nested_frames_channels_first(start: Start) -> None:
    keys = '{"images": {"cam_left_wrist": null, "cam_right_wrist": null}}'
    server, robot = start(server={'server_preset': 'aloha', 'server_keys': keys})
    robot.policy.connect()
    seen = {
        'state': np.zeros(14, np.float32),
        'cam_high': np.zeros((224, 224, 3), np.uint8),
        'prompt': 'open',
    }
    robot.policy.warm_up(seen)
    assert read(server) == [
        {'state': ['<f4', 14], 'images': {'cam_high': ['|u1', 3, 224, 224]}, 'prompt': 'open'}
    ]


def test_openpi_map_that_does_not_fit_fails_while_warming_up(start: Start) -> None:
    server, robot = start(server={'server_preset': 'droid'})
    robot.policy.connect()
    with pytest.raises(KeyMapRefused, match=r"joint_position' 7 numbers .* 'joints' float32\[6\]"):
        robot.policy.warm_up({**DROID, 'joints': np.zeros(6, np.float32)})
    assert read(server) == [], 'nothing was sent'


def test_openpi_server_that_reads_other_keys_is_told_of_with_what_the_robot_gave(
    start: Start,
) -> None:
    _, robot = start('--reach', '--frame-key', 'observation/image')
    robot.policy.connect()
    both = r"KeyError: 'observation/image'.*'state' float32\[6\], 'prompt' text; the own keys"
    with pytest.raises(PolicyError, match=both):
        robot.policy.warm_up(step().observation)


def test_openpi_frames_are_fitted_as_its_client_fits_them(tmp_path: Path) -> None:
    frame = np.random.default_rng(0).integers(0, 255, (480, 640, 3), np.uint8)
    np.save(tmp_path / 'frame.npy', frame)
    code = (
        'import numpy, sys; from openpi_client.image_tools import resize_with_pad as fit\n'
        'frame = numpy.load(sys.argv[1]); numpy.save(sys.argv[2], fit(frame, 224, 224))'
    )
    files = [str(tmp_path / name) for name in ('frame.npy', 'fitted.npy')]
    subprocess.run([PYTHON, '-c', code, *files], check=True, env={}, timeout=PATIENCE_S)
    ours = fit_image(frame, 224, 224, mode='pad', filter='bilinear')
    assert np.array_equal(ours, np.load(files[1]))


@pytest.mark.parametrize('key', ['action', 'chunk'])
def test_openpi_rows_are_found_where_forks_put_them(start: Start, key: str) -> None:
    named = {} if key == 'action' else {'server_rows_key': key}
    _, robot = start('--rows-key', key, server=named)
    robot.policy.connect()
    assert robot.scope().infer(step())['actions'].shape == (8, 6)


def test_openpi_answer_without_rows_names_what_came(start: Start) -> None:
    _, robot = start('--rows-key', 'chunk')
    robot.policy.connect()
    with pytest.raises(PolicyError, match=r"'actions', 'action'.*'chunk', 'server_timing'"):
        robot.policy.warm_up(step().observation)


def test_openpi_traceback_is_an_error_and_the_next_question_goes_over_another_connection(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    _, robot = start('--fail-at', '1', server=FORGETFUL)
    robot.policy.connect()
    scope = robot.scope()
    assert count(scope.infer(step())) == 0
    with pytest.raises(PolicyError, match=r'^ValueError: told to fail$'):
        scope.infer(step(1))
    assert 'Traceback (most recent call last)' in caplog.text
    assert count(scope.infer(step(2))) == 2
    assert scope.figures().reconnects == 1


def test_openpi_policy_that_returns_no_mapping_is_an_error(start: Start) -> None:
    _, robot = start('--list-at', '0')
    robot.policy.connect()
    with pytest.raises(PolicyError, match='TypeError'):
        robot.scope().infer(step())


def test_openpi_question_that_is_given_up_ends_at_once_and_leaves_no_answer_behind(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plain_link, 'SHORTEST_S', 0.1)
    server, robot = start('--slow-at', '0', '--slow-s', '5', reconnect_s=0.2)
    robot.policy.connect()
    scope = robot.scope()
    failed: list[BaseException] = []

    def ask() -> None:
        try:
            scope.infer(step())
        except Retired as error:
            failed.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    wait_for(lambda: len(read(server)) == 1, PATIENCE_S, 'the question')
    began = time.monotonic()
    scope.close()
    asking.join(PATIENCE_S)
    assert failed
    assert time.monotonic() - began < 4.0, 'it ends before the inference'
    assert robot.policy.connected, 'we left by ourselves: the server is not lost'
    assert count(robot.scope().infer(step())) == 1, 'a busy server is waited for'


def test_openpi_server_that_answers_nothing_while_it_infers_is_waited_for(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its loop answers no ping for so long; a first inference may compile for minutes."""
    monkeypatch.setattr(plain_websocket, 'PROGRESS_S', 0.3)
    _, robot = start('--slow-at', '0', '--slow-s', '5', act_timeout_s=2.0)
    robot.policy.connect()
    robot.policy.warm_up(step().observation)
    assert robot.heard('has not answered for')
    assert count(robot.scope().infer(step())) == 1


def test_openpi_server_that_starts_late_is_waited_for(stack: ExitStack) -> None:
    port = free_port()
    robot = Robot(port)
    stack.callback(robot.policy.close)
    connecting = threading.Thread(target=robot.policy.connect)
    connecting.start()
    wait_for(lambda: robot.heard('waiting for the server'), PATIENCE_S, 'a word of it')
    stack.enter_context(served(SCRIPT, port=port, variables=OURS))
    connecting.join(PATIENCE_S)
    assert robot.policy.connected
    assert count(robot.scope().infer(step())) == 0


def test_openpi_greeting_waits_behind_the_inference_of_another_client(
    start: Start, stack: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plain_websocket, 'PROGRESS_S', 0.2)
    server, robot = start('--slow-at', '0', '--slow-s', '1.0')
    robot.policy.connect()
    asking = threading.Thread(target=lambda: robot.scope().infer(step()))
    asking.start()
    wait_for(lambda: len(read(server)) == 1, PATIENCE_S, 'the question')
    second = Robot(robot.port)
    stack.callback(second.policy.close)
    second.policy.connect()
    asking.join(PATIENCE_S)
    assert second.policy.connected


def test_openpi_answer_over_the_limit_is_an_error(start: Start) -> None:
    _, robot = start('--rows', '1000', max_message_bytes=10_000)
    robot.policy.connect()
    with pytest.raises(PolicyError, match='longer than is read'):
        robot.scope().infer(step())

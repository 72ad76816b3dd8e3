"""The node over DDS, and the demo, with openpi's own server as another process."""

from __future__ import annotations

from collections.abc import Iterator
import json
import math
from pathlib import Path
import re
import signal
import subprocess
import sys

import pytest
from seq_harness.cli.children import Children
from seq_harness.ros.watcher import Watcher
from servers.rig import CONFIG, Rig
from support.driving import patient_demo
from support.ports import free_port
from support.servers import needs_servers, OURS, served
from support.waiting import PATIENCE_S

pytestmark = needs_servers

SCRIPT = Path(__file__).parent / 'serve_openpi.py'

KEYS = {
    'observation/image': {
        'from': 'front',
        'camera': {'width': 320, 'height': 240, 'resize': 'stretch', 'filter': 'bilinear'},
        'layout': 'chw',
    },
    'observation/state': {'from': ['state'], 'length': 6},
    'prompt': 'prompt',
}
STILL = {'channels.arm.max_start_distance': 10.0, 'guard_start': 'ramp', 'guard_step': 'ramp'}
"""Rows that count inferences lie anywhere: they are approached slowly."""

JOINTS = [f'joint_{i}' for i in range(1, 7)]

REACHES = (
    '--reach',
    '--jumps',
    '1',
    '--frame-key',
    'observation/image',
    '--state-key',
    'observation/state',
)


def url(port: int) -> str:
    return f'openpi+ws://127.0.0.1:{port}'


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    with Children(tmp_path) as children, Watcher() as watcher:
        children.start('sim_arm', ['sim-arm'])
        yield Rig(children, watcher)


def test_openpi_policy_moves_the_arm_to_its_targets_by_a_key_map(rig: Rig) -> None:
    with served(SCRIPT, *REACHES, variables=OURS) as (_, port):
        rig.harness(url(port), server_keys=json.dumps(KEYS))
        rig.begin()
        assert rig.ended() == 'policy:targets_reached'
        figures = rig.watcher.figures
    rows = figures['rows']
    lost = sum(rows['dropped'].values())
    assert rows['scheduled'] == rows['emitted'] + rows['merged'] + lost + rows['held']
    assert figures['policy']['acts']['answered'] > 3
    assert len(rig.setpoints) > 20
    assert all(math.isfinite(value) for row in rig.setpoints for value in row)


def test_openpi_server_that_dies_over_a_question_is_asked_again_when_it_is_back(
    rig: Rig,
) -> None:
    with served(SCRIPT, '--die-at', '3', variables=OURS) as (server, port):
        rig.harness(url(port), reconnect_s=PATIENCE_S, server_keeps_state=False, **STILL)
        rig.begin()
        assert server.wait() == 1
    with served(SCRIPT, port=port, variables=OURS) as (server, _):
        rig.until(lambda: 'read' in server.output(), PATIENCE_S, 'another question')
        assert rig.watcher.reason == ''
        assert rig.watcher.call('stop') == ''
        assert rig.ended() == 'stop'


def test_openpi_server_that_dies_in_an_episode_ends_it_by_name(rig: Rig) -> None:
    with served(SCRIPT, '--die-at', '3', variables=OURS) as (_, port):
        rig.harness(url(port), reconnect_s=PATIENCE_S, **STILL)
        rig.begin()
        assert rig.ended().startswith('policy_state_lost')


def test_openpi_traceback_ends_the_episode_by_name(rig: Rig) -> None:
    with served(SCRIPT, '--fail-at', '2', variables=OURS) as (_, port):
        rig.harness(url(port), **STILL)
        rig.begin()
        assert rig.ended() == 'policy_error: ValueError: told to fail'


def test_openpi_map_that_reads_what_no_input_gives_is_refused_naming_both(rig: Rig) -> None:
    with served(SCRIPT, variables=OURS) as (server, port):
        rig.harness(url(port), server_preset='libero', server_columns=JOINTS)
        said = rig.failure()
        assert "reads the keys ['wrist'], which no input gives" in said
        assert "['front', 'prompt', 'state']" in said
        assert "wrist -> 'observation/wrist_image'" in said
        assert 'read' not in server.output(), 'nothing was asked'


def test_openpi_columns_that_no_channel_takes_are_refused_naming_both(rig: Rig) -> None:
    with served(SCRIPT, variables=OURS) as (_, port):
        rig.harness(url(port), server_columns=['x', 'y', 'z'])
        assert re.search(
            r"wants the columns \['joint_1'.*declares \['x', 'y', 'z'\]", rig.failure()
        )


def test_openpi_rows_of_another_width_never_play(rig: Rig) -> None:
    with served(SCRIPT, '--width', '7', variables=OURS) as (_, port):
        rig.harness(url(port))
        assert 'rows of 6 columns were expected' in rig.failure()
    assert rig.setpoints == []


def test_openpi_map_that_does_not_fit_is_found_by_preflight() -> None:
    with served(SCRIPT, variables=OURS) as (_, port):
        keys = json.dumps({'observation/state': {'from': 'state', 'length': 8}})
        command = [sys.executable, '-m', 'seq_harness.cli.main', 'preflight']
        command += ['--params-file', str(CONFIG), '--seconds', '1', '--']
        command += ['-p', f'server_keys:={json.dumps(keys)}']
        command += ['-p', f'worker_url:=openpi+ws://127.0.0.1:{port}']
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
    assert done.returncode != 0
    assert (
        "for 'observation/state' 8 numbers were expected; the robot gives 'state'" in done.stdout
    )


def test_openpi_server_moves_the_arm_of_the_demo(tmp_path: Path) -> None:
    figures_file = tmp_path / 'figures.json'
    with served(SCRIPT, '--reach', '--jumps', '1', variables=OURS) as (_, port):
        command = [sys.executable, '-m', 'seq_harness.cli.main', 'demo']
        command += ['--worker', f'openpi+ws://127.0.0.1:{port}']
        command += ['--params-file', str(patient_demo(tmp_path))]
        command += ['--seconds', '50', '--json', str(figures_file)]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=2 * PATIENCE_S, check=False
        )
        assert done.returncode == 0, done.stderr
    assert json.loads(figures_file.read_text())['targets_reached'] >= 1


def test_openpi_server_that_is_not_there_yet_is_told_of_by_the_demo() -> None:
    command = [sys.executable, '-m', 'seq_harness.cli.main', 'demo']
    command += ['--worker', f'openpi+ws://127.0.0.1:{free_port()}', '--params-file', str(CONFIG)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as demo:
        assert demo.stderr is not None
        try:
            told = next((line for line in demo.stderr if 'waiting for the server' in line), '')
        finally:
            demo.send_signal(signal.SIGINT)
    assert 'refused' in told

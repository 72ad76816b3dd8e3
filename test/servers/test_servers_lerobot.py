"""Policies that LeRobot saved, served by our worker in a process that has LeRobot."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
import json
import os
from pathlib import Path
import shutil
import subprocess
import time
from typing import Any

from client.robot import Robot
import numpy as np
import pytest
from seq_harness.client.sequence import SequencePolicy
from support.servers import ROS_ONLY
from support.sources import ROOT
from worker.worker_wire import Client, client_of

PYTHON = os.environ.get('SEQ_HARNESS_LEROBOT_PYTHON', '')
"""The Python of an environment with LeRobot, 0.4 or newer, and what our worker needs."""

pytestmark = pytest.mark.skipif(
    not PYTHON, reason='SEQ_HARNESS_LEROBOT_PYTHON names no Python that has LeRobot'
)

HERE = Path(__file__).parent
RUN_S = 100.0
MEAN = np.array([1.0, 2.0, 3.0], np.float32)
"""The mean of the actions that the policies were, so to say, trained on."""


def environment() -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if key not in ROS_ONLY}
    return {**kept, 'PYTHONPATH': f'{ROOT}:{ROOT / "test"}', 'HF_HUB_OFFLINE': '1'}


def lerobot(*arguments: object) -> str:
    """Run the script that has LeRobot, to its end."""
    command = [PYTHON, str(HERE / 'lerobot_files.py'), *map(str, arguments)]
    done = subprocess.run(
        command, env=environment(), capture_output=True, text=True, timeout=RUN_S, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def worker(*arguments: object) -> subprocess.Popen[str]:
    command = [PYTHON, '-m', 'seq_harness.cli.worker', '--port', '0', *map(str, arguments)]
    return subprocess.Popen(
        command,
        env=environment(),
        cwd=HERE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@contextmanager
def listening(*arguments: object) -> Iterator[str]:
    """Serve a policy until the block ends; give the worker's URL."""
    process = worker(*arguments)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().split()[-1]
    finally:
        process.terminate()
        process.communicate(timeout=RUN_S)


@contextmanager
def serving(*arguments: object) -> Iterator[tuple[Client, dict[str, Any]]]:
    """Serve a policy; give a client and what is declared."""
    with listening(*arguments) as url, client_of(url) as client:
        declared = client.connect()
        assert declared.status == 200, declared.body
        yield client, declared.body


def refused(*arguments: object) -> str:
    """Return why a worker ended that could not load its policy."""
    _, told = worker(*arguments).communicate(timeout=RUN_S)
    return told


def observation(number: int) -> dict[str, Any]:
    pixels = np.arange(96 * 128 * 3) * (number + 1)
    state = np.linspace(0.5, 3.5, 3) + 0.25 * number
    front = (pixels % 256).astype(np.uint8).reshape(96, 128, 3)
    return {'front': front, 'state': state.astype(np.float32)}


def by_lerobot(folder: Path, observations: list[dict[str, Any]]) -> Any:
    """Return the rows that LeRobot itself answers."""
    path = folder.parent / 'observations.npz'
    fronts, states = ([seen[key] for seen in observations] for key in ('front', 'state'))
    np.savez(path, front=np.stack(fronts), state=np.stack(states))
    return json.loads(lerobot('answer', folder, '--observations', path).splitlines()[-1])


@pytest.fixture(scope='module')
def act(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp('act') / 'policy'
    lerobot('act', folder)
    return folder


@pytest.fixture(scope='module')
def flow(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp('flow') / 'policy'
    lerobot('flow', folder)
    return folder


def test_act_answers_what_lerobot_answers(act: Path) -> None:
    seen = observation(0)
    with serving(f'lerobot:{act}', '--set', 'hz=30') as (client, declared):
        rows = client.act(seen).outputs['actions']
    assert declared['observations']['streams'] == {
        'front': {'camera': {'width': 128, 'height': 96, 'layout': 'chw_float'}},
        'state': {},
    }
    assert declared['actions'] == {'key': 'actions', 'hz': 30.0, 'open_loop_horizon': 8}
    assert not declared['rtc']
    assert not declared['keeps_state']
    assert rows.shape == (12, 3)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(rows[:8], by_lerobot(act, [seen]), atol=1e-5)


def test_our_client_acts_on_it(act: Path) -> None:
    seen = observation(0)
    with listening(f'lerobot:{act}') as url:
        policy = SequencePolicy(url, connect_timeout_s=RUN_S, act_timeout_s=RUN_S)
        try:
            robot = Robot(policy)
            answers = [robot.act(seen)['actions'] for _ in range(2)]
        finally:
            policy.close()
    np.testing.assert_array_equal(answers[0], answers[1])
    assert answers[0].shape == (12, 3)


def test_what_does_not_fit_the_policy_is_refused_naming_both_sides(act: Path) -> None:
    seen = observation(0)
    with serving(f'lerobot:{act}', '--set', 'keys={"observation.images.front": "wrist"}') as (
        client,
        _,
    ):
        frame = seen['front']
        small = client.act({'wrist': frame[:48], 'state': seen['state']})
        assert '128x48; the policy reads 128x96' in small.body['detail']
        wide = client.act({'wrist': frame, 'state': np.zeros(4, np.float32)})
        assert "'state' has shape [4]" in wide.body['detail']
        assert 'shape [3]' in wide.body['detail']
        missing = client.act({'front': frame, 'state': seen['state']})
        assert "['wrist']" in missing.body['detail']
        assert client.act({'wrist': frame, 'state': seen['state']}).status == 200


def test_a_policy_of_two_observations_reads_the_last_two(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp('diffusion') / 'policy'
    lerobot('diffusion', folder)
    seen = [observation(number) for number in range(3)]
    with serving(f'lerobot:{folder}') as (client, declared):
        assert declared['observations']['streams']['state'] == {'at': [-1, 0]}
        client.observe('e', dict(enumerate(seen[:2])))
        answer = client.act(seen[2], episode_id='e', seq=2, seed=7)
        again = client.act(seen[2], episode_id='f', seq=0, seed=7)
    np.testing.assert_allclose(answer.outputs['actions'], by_lerobot(folder, seen), atol=1e-5)
    assert np.abs(answer.outputs['actions'] - again.outputs['actions']).max() > 1e-4


def test_the_rows_of_a_plan_are_gone_on_from_in_the_robots_units(flow: Path) -> None:
    state = {'state': MEAN + 1, 'prompt': 'go'}
    held = np.tile(MEAN - 1, (8, 1)).astype(np.float32)
    plan = {'prefix': held, 'delay_rows': 3, 'executed_rows': 4}
    with serving('servers.tiny_flow:Flow', '--set', f'source={flow}') as (client, declared):
        assert declared['rtc']
        free = client.act(state, seed=1).outputs['actions']
        guided = client.act(state, seed=1, plan=plan).outputs['actions']
    np.testing.assert_allclose(free, np.tile(MEAN + 1, (12, 1)), atol=1e-3)
    np.testing.assert_allclose(guided[:3], held[:3], atol=0.3)
    np.testing.assert_allclose(guided[8:], free[8:], atol=1e-3)


def test_how_a_plan_is_gone_on_from_is_set_for_the_worker_and_by_each_act(flow: Path) -> None:
    state = {'state': MEAN + 1, 'prompt': 'go'}
    held = np.tile(MEAN - 1, (8, 1)).astype(np.float32)
    plan = {'prefix': held, 'delay_rows': 2, 'executed_rows': 4}
    given = ['rtc_schedule=ZEROS', 'rtc_execution_horizon=6', 'simulated_latency_s=0.3']
    settings = [word for value in given for word in ('--set', value)]
    with serving('servers.tiny_flow:Flow', '--set', f'source={flow}', *settings) as (client, told):
        assert {name: param['default'] for name, param in told['params'].items()} == {
            'rtc_schedule': 'ZEROS',
            'rtc_max_guidance_weight': 10.0,
            'rtc_execution_horizon': 6,
            'simulated_latency_s': 0.3,
        }
        began = time.monotonic()
        zeros = client.act(state, seed=1, plan=plan).outputs['actions']
        assert time.monotonic() - began >= 0.3
        quick = {'simulated_latency_s': 0.0}
        ones = client.act(state, seed=1, plan=plan, params={'rtc_schedule': 'ONES', **quick})
        faint = {'rtc_max_guidance_weight': 1e-6, **quick}
        free = client.act(state, seed=1, plan=plan, params=faint).outputs['actions']
        wrong = client.act(state, plan=plan, params={'rtc_schedule': 'SQUARE'})
        late = client.act(state, plan={**plan, 'delay_rows': 9})
    np.testing.assert_allclose(zeros[2:], np.tile(MEAN + 1, (10, 1)), atol=1e-3)
    np.testing.assert_allclose(ones.outputs['actions'][:6], held[:6], atol=0.3)
    np.testing.assert_allclose(ones.outputs['actions'][6:], zeros[6:], atol=1e-3)
    np.testing.assert_allclose(free, np.tile(MEAN + 1, (12, 1)), atol=1e-3)
    assert 'LINEAR' in wrong.body['detail']
    assert '4 rows of a chunk of 12 were executed and 9 more' in late.body['detail']


def test_settings_of_chunking_are_refused_for_a_policy_without_it(act: Path) -> None:
    told = refused(f'lerobot:{act}', '--set', 'rtc_schedule=EXP')
    assert 'a policy of type act has not' in told


def test_a_prompt_is_needed_where_the_policy_reads_one(flow: Path) -> None:
    with serving('servers.tiny_flow:Flow', '--set', f'source={flow}') as (client, _):
        assert "['prompt']" in client.act({'state': MEAN}).body['detail']
        wrong = client.act({'state': MEAN, 'prompt': 3})
        assert 'text was expected' in wrong.body['detail']


def test_a_processor_that_names_a_class_is_not_loaded(act: Path, tmp_path: Path) -> None:
    folder = tmp_path / 'policy'
    shutil.copytree(act, folder)
    steps = folder / 'policy_preprocessor.json'
    saved = json.loads(steps.read_text())
    saved['steps'].append({'class': 'pathlib.Path', 'config': {}})
    steps.write_text(json.dumps(saved))
    assert 'names a class to import' in refused(f'lerobot:{folder}')


def test_weights_of_another_policy_are_refused(act: Path, tmp_path: Path) -> None:
    folder = tmp_path / 'policy'
    shutil.copytree(act, folder)
    config = folder / 'config.json'
    config.write_text(config.read_text().replace('"n_encoder_layers": 1', '"n_encoder_layers": 2'))
    assert 'is not of the policy' in refused(f'lerobot:{folder}')


def test_a_pickle_is_no_policy(act: Path, tmp_path: Path) -> None:
    folder = tmp_path / 'policy'
    shutil.copytree(act, folder)
    (folder / 'model.safetensors').rename(folder / 'pytorch_model.bin')
    assert 'model.safetensors were expected' in refused(f'lerobot:{folder}')

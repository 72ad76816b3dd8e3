"""What is refused of a policy of LeRobot's before LeRobot itself is needed."""

from __future__ import annotations

import json
from pathlib import Path
import sys
from typing import Any

import pytest
from seq_harness.cli.worker import find_policy
from seq_harness.contract.errors import ErrorCode, TransportError
from seq_harness.worker.declaration import PolicyRefused

STEPS: dict[str, Any] = {'steps': [{'registry_name': 'to_batch_processor', 'config': {}}]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ('config.json', 'model.safetensors'):
        (tmp_path / name).touch()
    for name in ('policy_preprocessor.json', 'policy_postprocessor.json'):
        (tmp_path / name).write_text(json.dumps(STEPS))
    return tmp_path


def load(folder: Path) -> None:
    find_policy(f'lerobot:{folder}', {}).load()


def test_a_worker_without_lerobot_says_what_to_install(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, 'torch', None)
    with pytest.raises(TransportError, match='pip install lerobot') as error:
        load(folder)
    assert error.value.code is ErrorCode.DEPENDENCY_MISSING


def test_a_folder_that_is_not_there_is_no_name_on_the_hub() -> None:
    with pytest.raises(PolicyRefused, match='there is no folder /nowhere/at/all'):
        load(Path('/nowhere/at/all'))


def test_weights_in_a_pickle_are_not_read(folder: Path) -> None:
    (folder / 'model.safetensors').rename(folder / 'pytorch_model.bin')
    with pytest.raises(PolicyRefused, match=r'model\.safetensors were expected'):
        load(folder)


def test_what_was_saved_before_processors_is_to_be_converted(folder: Path) -> None:
    (folder / 'policy_postprocessor.json').unlink()
    with pytest.raises(PolicyRefused, match='migrate_policy_normalization'):
        load(folder)


@pytest.mark.parametrize('which', ['policy_preprocessor.json', 'policy_postprocessor.json'])
def test_a_step_that_names_a_class_is_not_imported(folder: Path, which: str) -> None:
    step = {'class': 'subprocess.Popen', 'config': {'args': ['true']}}
    (folder / which).write_text(json.dumps({'steps': [*STEPS['steps'], step]}))
    with pytest.raises(PolicyRefused, match='names a class to import'):
        load(folder)


@pytest.mark.parametrize('text', ['', '[]', '{"steps": 3}', '{"steps": [4]}', '{}'])
def test_a_processor_that_is_no_list_of_steps_is_refused(folder: Path, text: str) -> None:
    (folder / 'policy_preprocessor.json').write_text(text)
    with pytest.raises(PolicyRefused, match='is no list of steps'):
        load(folder)

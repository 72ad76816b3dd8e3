"""Each fault of a set-up by name, with its remedy and an exit status, before anything moves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
import json
from pathlib import Path
from typing import Any

import pytest
from sensor_msgs.msg import Image
from seq_harness.cli.children import Children
from seq_harness.cli.preflight import main
from std_msgs.msg import Float64MultiArray
from support.composing import Composition, composition, parameters
import yaml

Found = dict[str, Any]
Check = Callable[..., tuple[int, Found]]


@pytest.fixture
def composed(tmp_path: Path) -> Iterator[Composition]:
    with Children(tmp_path) as children, composition(children) as made:
        yield made


@pytest.fixture
def check(composed: Composition, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Check:
    """Run the command against what is composed; returns its status and its JSON."""

    def run(*more: str, **changes: Any) -> tuple[int, Found]:
        values = {item.name: item.value for item in parameters(composed.url, **changes)}
        file = tmp_path / 'parameters.yaml'
        file.write_text(yaml.safe_dump({'/**': {'ros__parameters': values}}))
        status = main(['--params-file', str(file), '--seconds', '1.5', *more])
        out = capsys.readouterr().out
        return status, json.loads(out) if '--json' in more else {'text': out}

    return run


def said(found: Found, severity: str, subject: str) -> list[str]:
    return [
        item['said']
        for item in found['findings']
        if (item['severity'], item['subject']) == (severity, subject)
    ]


def test_a_sound_set_up_has_no_fault_and_shows_the_whole_map(
    composed: Composition, check: Check
) -> None:
    arm = composed.arm()
    composed.spin()
    status, found = check('--json', rt_priority=0)
    assert (status, found['worst'], found['counts']['FAULT']) == (0, 'OK', 0)
    assert 'a second' in said(found, 'OK', 'input state')[0]
    assert any('joint_1' in line for line in said(found, 'OK', 'worker'))
    assert 'bytes' in said(found, 'OK', 'observation')[0]
    assert arm.commands == [], 'nothing is commanded'


def test_what_is_missing_misnamed_or_of_another_type_is_a_fault_with_a_remedy(
    composed: Composition, check: Check
) -> None:
    arm = composed.arm()
    arm.create_publisher(Float64MultiArray, 'other', 1)
    composed.spin()
    changes = {
        'input_names': ['state', 'front', 'wrong'],
        'inputs.front.topic': 'camera',
        'inputs.front.type': 'image',
        'inputs.wrong.topic': 'other',
        'inputs.wrong.type': 'image',
    }
    status, found = check('--json', **changes)
    assert (status, found['worst']) == (2, 'FAULT')
    assert said(found, 'FAULT', 'input front') == ['nobody publishes /camera']
    assert 'std_msgs/msg/Float64MultiArray' in said(found, 'FAULT', 'input wrong')[0]
    assert all(item['remedy'] for item in found['findings'] if item['severity'] != 'OK')


def test_joints_that_the_robot_does_not_name_are_a_fault(
    composed: Composition, check: Check
) -> None:
    composed.arm()
    composed.spin()
    names = [f'shoulder_{number}' for number in range(6)]  # YAML of ROS takes no aliases
    changes = {'inputs.state.joints': names, 'channels.arm.joints': list(names)}
    status, found = check('--json', **changes)
    assert status == 2
    assert any('joint_1' in text for text in said(found, 'FAULT', 'input state'))


def test_g45_another_commander_is_a_fault_and_a_topic_without_listeners_a_warning(
    composed: Composition, check: Check
) -> None:
    arm = composed.arm()
    arm.create_publisher(Float64MultiArray, 'taken', 1)
    composed.spin()
    _, found = check('--json', channels__arm__topic='taken')
    assert 'arm already' in said(found, 'FAULT', 'channel arm')[0]
    assert 'nobody listens' in said(found, 'WARNING', 'channel arm')[0]


def test_g6_a_measured_value_outside_its_limits_hints_at_the_units(
    composed: Composition, check: Check
) -> None:
    composed.arm()
    composed.spin()
    _, found = check('--json', channels__arm__lower=[0.5] * 6)
    assert 'outside its limits' in said(found, 'WARNING', 'channel arm')[0]


def test_a_large_frame_and_small_shared_memory_are_a_warning(
    composed: Composition, check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    arm = composed.arm()
    camera = arm.create_publisher(Image, 'camera', 1)
    frame = Image(height=480, width=640, encoding='rgb8', step=1920, data=bytes(921600))
    arm.create_timer(0.05, lambda: camera.publish(frame))
    composed.spin()
    for name in ('FASTDDS_DEFAULT_PROFILES_FILE', 'FASTRTPS_DEFAULT_PROFILES_FILE'):
        monkeypatch.delenv(name, raising=False)
    changes = {
        'input_names': ['state', 'front'],
        'inputs.front.topic': 'camera',
        'inputs.front.type': 'image',
        'inputs.front.reliability': 'reliable',
    }
    _, found = check('--json', **changes)
    warned = said(found, 'WARNING', 'input front')
    assert any('921600' in text for text in warned)


@pytest.mark.parametrize(
    ('changes', 'subject', 'text'),
    [
        ({'worker_url': 'ws://127.0.0.1:1', 'connect_timeout_s': 0.5}, 'worker', '127.0.0.1:1'),
        ({'rate_hz': -1.0}, 'parameters', 'rate_hz'),
    ],
)
def test_a_worker_that_is_away_and_a_wrong_parameter_are_faults_by_name(
    composed: Composition, check: Check, changes: dict[str, Any], subject: str, text: str
) -> None:
    composed.arm()
    composed.spin()
    status, found = check('--json', **changes)
    assert status == 2
    assert text in said(found, 'FAULT', subject)[0]


def test_for_people_the_worst_comes_first_with_what_to_do(
    composed: Composition, check: Check
) -> None:
    composed.spin()
    status, found = check()
    lines = found['text'].splitlines()
    assert status == 2
    assert lines[0] == 'FAULT    input state: nobody publishes /joint_states'
    assert lines[1].startswith('           -> start its node')

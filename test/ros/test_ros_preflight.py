"""Each fault of a set-up by name, with its remedy and an exit status, before anything moves."""

from __future__ import annotations

from collections.abc import Callable
import json
import math
from pathlib import Path
import re
from typing import Any

import pytest
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import Image, JointState
from seq_harness.cli.preflight import main
from seq_harness.ros.preflight_hardware import THRESHOLD
from std_msgs.msg import Bool, Float64, Float64MultiArray, String
from support.composing import Composition, JOINTS, parameters
import yaml

BEST_EFFORT = QoSProfile(depth=5, reliability=ReliabilityPolicy.BEST_EFFORT)
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)

Found = dict[str, Any]
Check = Callable[..., tuple[int, Found]]


@pytest.fixture
def check(composed: Composition, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Check:
    """Run the command against what is composed; returns its status and its JSON."""

    def run(*more: str, **changes: Any) -> tuple[int, Found]:
        values = {item.name: item.value for item in parameters(composed.url, **changes)}
        file = tmp_path / 'parameters.yaml'
        file.write_text(yaml.safe_dump({'/**': {'ros__parameters': values}}))
        status = main(['--params-file', str(file), '--seconds', '3', *more])
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
    assert [item for item in found['findings'] if item['severity'] == 'FAULT'] == []
    assert (status, found['worst']) == (0, 'OK')
    assert 'a second' in said(found, 'OK', 'input state')[0]
    assert any('joint_1' in line for line in said(found, 'OK', 'worker'))
    assert said(found, 'OK', 'pace')[0].startswith('chunk 0.80 s, answers ')
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


def camera_of(arm: Any, qos: QoSProfile | int, width: int, height: int, encoding: str) -> None:
    """Have an arm publish frames."""
    camera = arm.create_publisher(Image, 'camera', qos)
    bytes_a_pixel = 2 if encoding == 'yuv422_yuy2' else 3
    frame = Image(height=height, width=width, encoding=encoding, step=bytes_a_pixel * width)
    frame.data = bytes(bytes_a_pixel * width * height)

    def publish() -> None:
        frame.header.stamp = arm.get_clock().now().to_msg()
        camera.publish(frame)

    arm.create_timer(0.05, publish)


WITH_CAMERA = {
    'input_names': ['state', 'front'],
    'inputs.front.topic': 'camera',
    'inputs.front.type': 'image',
}


def test_g19_a_qos_that_the_publisher_does_not_offer_is_a_fault_by_policy(
    composed: Composition, check: Check
) -> None:
    camera_of(composed.arm(), BEST_EFFORT, 64, 48, 'rgb8')
    composed.spin()
    _, found = check('--json', **WITH_CAMERA, **{'inputs.front.reliability': 'reliable'})
    (text,) = said(found, 'FAULT', 'input front')
    assert 'camera offers another RELIABILITY' in text


def test_frames_are_shown_with_size_encoding_rate_and_qos(
    composed: Composition, check: Check
) -> None:
    camera_of(composed.arm(), BEST_EFFORT, 64, 48, 'yuv422_yuy2')
    composed.spin()
    _, found = check('--json', **WITH_CAMERA)
    (text,) = said(found, 'OK', 'input front')
    assert re.search(r'camera, \d+\.\d a second, 64x48 yuv422_yuy2, best_effort volatile', text)


def test_g38_the_bytes_and_ms_of_an_observation_are_shown(
    composed: Composition, check: Check
) -> None:
    camera_of(composed.arm(), 1, 320, 240, 'rgb8')
    composed.spin()
    _, found = check('--json', **WITH_CAMERA)
    (text,) = said(found, 'OK', 'observation')
    assert re.match(r'23\d{4} bytes, made in \d+\.\d ms; 4\.\d\d MB/s', text)


def test_g9_an_encoding_that_nobody_knows_is_a_fault(composed: Composition, check: Check) -> None:
    camera_of(composed.arm(), 1, 64, 48, 'thermal')
    composed.spin()
    status, found = check('--json', **WITH_CAMERA)
    assert status == 2
    assert 'thermal' in said(found, 'FAULT', 'input front')[0]


def test_g15_a_stamp_of_zero_is_a_warning(composed: Composition, check: Check) -> None:
    arm = composed.arm()
    states = arm.create_publisher(JointState, 'unstamped', 1)
    state = JointState(name=list(JOINTS), position=[0.0] * 6)
    arm.create_timer(0.05, lambda: states.publish(state))
    composed.spin()
    _, found = check('--json', **{'inputs.state.topic': 'unstamped'})
    assert any('stamp is zero' in text for text in said(found, 'WARNING', 'input state'))


def test_a_topic_that_is_published_and_says_nothing_is_a_fault(
    composed: Composition, check: Check
) -> None:
    composed.arm().moves = False
    composed.spin()
    _, found = check('--json')
    assert said(found, 'FAULT', 'input state') == ['joint_states is published and says nothing']


def test_a_rate_below_what_is_expected_or_may_be_old_is_a_warning(
    composed: Composition, check: Check
) -> None:
    composed.arm()
    composed.spin()
    slow = {'inputs.state.expected_hz': 200.0, 'inputs.state.max_age_s': 0.01}
    _, found = check('--json', **slow)
    warned = ' '.join(said(found, 'WARNING', 'input state') + said(found, 'FAULT', 'input state'))
    assert 'and 200 are expected' in warned
    assert 'older than max_age_s' in warned or 'would end every episode as stale' in warned


def test_joints_of_the_topic_that_nobody_reads_are_shown(
    composed: Composition, check: Check
) -> None:
    composed.arm()
    composed.spin()
    five = {'inputs.state.joints': list(JOINTS[:5]), 'channels.arm.joints': list(JOINTS[:5])}
    bounds = {f'channels.arm.{name}': [1.0] * 5 for name in ('upper', 'max_velocity')}
    _, found = check('--json', **five, **bounds, **{'channels.arm.lower': [-1.0] * 5})
    assert "joint_states has ['joint_6'] too, which are not read" in said(
        found, 'OK', 'input state'
    )


def test_g5_g6_joints_are_shown_as_the_policy_counts_them(
    composed: Composition, check: Check
) -> None:
    composed.arm()
    composed.spin()
    changes = {
        'mapped_joints': ['joint_1', 'joint_6'],
        'joints.joint_1.unit': 'deg',
        'joints.joint_1.offset': math.pi / 2,
        'joints.joint_6.open_closed': [0.0, 0.04],
        'joints.joint_6.policy_open_closed': [100.0, 0.0],
    }
    _, found = check('--json', **changes)
    shown = [text for text in said(found, 'OK', 'input state') if 'as the policy' in text]
    assert shown == ['as the policy counts now: joint_1 -90.000; joint_6 100.000']
    assert any(
        'joint_6: the policy says 100 for open (0)' in text for text in said(found, 'OK', 'worker')
    )


@pytest.mark.parametrize(
    ('kind', 'qos', 'text'),
    [
        (Float64, 1, 'takes std_msgs/msg/Float64 from /heard'),
        (Float64MultiArray, LATCHED, 'asks for kept messages'),
    ],
)
def test_a_listener_of_another_type_or_that_wants_kept_messages_is_a_fault(
    composed: Composition, check: Check, kind: Any, qos: Any, text: str
) -> None:
    composed.arm().create_subscription(kind, 'heard', print, qos)
    composed.spin()
    _, found = check('--json', channels__arm__topic='heard')
    assert text in said(found, 'FAULT', 'channel arm')[0]


def test_the_declaration_is_shown_with_rate_width_and_keys(
    composed: Composition, check: Check
) -> None:
    composed.arm()
    composed.spin()
    _, found = check('--json')
    (text,) = said(found, 'OK', 'policy')
    assert text.startswith('20 rows a second (')
    assert 'columns' in text
    assert 'reads' in text


def test_a_policy_that_wants_another_key_is_a_fault_naming_both_sides(
    composed: Composition, check: Check
) -> None:
    composed.arm()
    composed.spin()
    _, found = check('--json', **{'inputs.state.key': 'proprio'})
    (text,) = said(found, 'FAULT', 'worker')
    assert "['state']" in text
    assert 'proprio' in text


def test_a_deadman_and_a_heartbeat_that_nobody_publishes_are_faults(
    composed: Composition, check: Check
) -> None:
    composed.arm().create_publisher(Bool, 'held', 1)
    composed.spin()
    wanted = {'require_heartbeat': True, 'require_watchdog': True}
    _, found = check('--json', deadman_topic='hold_me', stop_topic='stop', **wanted)
    assert [text.partition(',')[0] for text in said(found, 'FAULT', 'safety')] == [
        'nobody publishes /stop',
        'nobody publishes /hold_me',
        'nobody publishes /harness/watchdog',
    ]
    _, found = check('--json', '--seconds', '3', deadman_topic='held', stop_topic='stop')
    assert said(found, 'OK', 'safety') == ['deadman_topic /held is published']
    assert 'the stop_topic' in said(found, 'WARNING', 'safety')[0]


def test_g16_simulated_time_without_a_clock_is_a_fault(
    composed: Composition, check: Check
) -> None:
    composed.arm()
    composed.spin()
    _, found = check('--json', use_sim_time=True)
    assert 'nobody publishes /clock' in said(found, 'FAULT', 'clock')[0]


def test_an_arm_that_says_it_is_not_available_is_a_warning(
    composed: Composition, check: Check
) -> None:
    arm = composed.arm()
    arm.create_publisher(Bool, 'running', LATCHED).publish(Bool(data=False))
    composed.spin()
    changes = {
        'input_names': ['state', 'running'],
        'inputs.running.topic': 'running',
        'inputs.running.type': 'bool',
        'inputs.running.available': ['true'],
        'inputs.running.on_stale': 'continue',
    }
    _, found = check('--json', **changes)
    assert "running says 'false'" in said(found, 'WARNING', 'arm')[0]


def description(**given: str) -> str:
    params = ''.join(f'<param name="{name}">{value}</param>' for name, value in given.items())
    plugin = '<plugin>topic_based_ros2_control/TopicBasedSystem</plugin>'
    return (
        '<robot name="r"><ros2_control name="arm" type="system">'
        f'<hardware>{plugin}{params}</hardware></ros2_control></robot>'
    )


def test_g44_what_a_hardware_layer_of_topics_waits_for_is_said(
    composed: Composition, check: Check
) -> None:
    robot = composed.arm().create_publisher(String, 'robot_description', LATCHED)
    robot.publish(String(data=description(joint_states_topic='/sim_states')))
    composed.spin()
    _, found = check('--json')
    (text,) = said(found, 'FAULT', 'hardware arm')
    assert 'nobody publishes /sim_states' in text
    assert 'sends no command on /robot_joint_commands' in text
    assert 'a policy that holds the arm sends none' in said(found, 'OK', 'hardware arm')[0]
    given = {'joint_states_topic': '/joint_states', 'trigger_joint_command_threshold': '-1'}
    robot.publish(String(data=description(**given)))
    _, found = check('--json', '--seconds', '3')
    assert said(found, 'FAULT', 'hardware arm') == []
    assert said(found, 'OK', 'hardware arm') == ['/joint_states is published']
    robot.publish(String(data=description(**{**given, THRESHOLD: 'no number'})))
    _, found = check('--json', '--seconds', '3')
    assert 'is published' in said(found, 'OK', 'hardware arm')[0]


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

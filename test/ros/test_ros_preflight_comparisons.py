"""What preflight compares without a graph: controllers with channels, frames with memory."""

from __future__ import annotations

import os
from pathlib import Path
import re
from types import SimpleNamespace
from typing import Any

import pytest
from rclpy.topic_endpoint_info import TopicEndpointInfo
from seq_harness.ros.findings import Severity
from seq_harness.ros.preflight import process_findings, worker_findings
from seq_harness.ros.preflight_commands import command_findings, compared, following_findings
from seq_harness.ros.shared_memory import ProfilesUnreadable, segment_bytes
from support.forms import REFUSED
from support.robots import settings_of


def controller(name: str, kind: str, state: str, *joints: str) -> Any:
    return SimpleNamespace(
        name=name,
        type=kind,
        state=state,
        required_command_interfaces=[f'{joint}/position' for joint in joints],
    )


FORWARD = 'forward_command_controller/ForwardCommandController'
TRAJECTORY = 'joint_trajectory_controller/JointTrajectoryController'


@pytest.mark.parametrize(
    ('controllers', 'topic', 'severity', 'text'),
    [
        ([controller('fpc', FORWARD, 'active', 'j1', 'j2')], 'fpc/commands', 'OK', 'is active'),
        ([controller('fpc', FORWARD, 'inactive')], 'fpc/commands', 'FAULT', 'is inactive'),
        ([controller('fpc', FORWARD, 'active', 'j2', 'j1')], 'fpc/commands', 'FAULT', 'order'),
        ([controller('fpc', FORWARD, 'active', 'j1')], 'fpc/commands', 'FAULT', "commands ['j1']"),
        ([controller('jtc', TRAJECTORY, 'active')], 'jtc/commands', 'FAULT', 'takes a joint_traj'),
        ([controller('jtc', TRAJECTORY, 'active')], 'fpc/commands', 'WARNING', "are ['jtc']"),
    ],
)
def test_a_channel_is_compared_with_the_controller_that_its_topic_names(
    controllers: list[Any], topic: str, severity: str, text: str
) -> None:
    settings = settings_of(channels__arm__topic=topic)
    found = list(compared(controllers, settings.channels))
    assert any(
        item.severity.name == severity and text in item.said and item.subject == 'channel arm'
        for item in found
    )


def test_a_controller_that_no_channel_commands_is_shown() -> None:
    others = [controller('jsb', 'joint_state_broadcaster/JointStateBroadcaster', 'active')]
    found = list(compared([*others, controller('fpc', FORWARD, 'active')],
                          settings_of(channels__arm__topic='fpc/commands').channels))  # fmt: skip
    assert [item.said for item in found if item.subject == 'controllers'] == [
        'jsb (joint_state_broadcaster/JointStateBroadcaster) is active'
    ]


@pytest.mark.parametrize(
    ('text', 'size'),
    [
        ('<profiles><segment_size>33554432</segment_size></profiles>', 33554432),
        ('<dds xmlns="x"><segment_size> 1048576 </segment_size></dds>', 1048576),
        ('<profiles/>', 524288),
    ],
)
def test_the_size_of_a_segment_is_read_from_the_profiles(
    text: str, size: int, tmp_path: Path
) -> None:
    file = tmp_path / 'profiles.xml'
    file.write_text(text)
    assert segment_bytes({'FASTDDS_DEFAULT_PROFILES_FILE': str(file)}) == size
    assert segment_bytes({}) == 524288


@pytest.mark.parametrize('served', [True, False])
@pytest.mark.parametrize('kind', ['gripper_action', 'parallel_gripper_action'])
def test_the_server_of_an_action_is_named_or_missed(kind: str, served: bool) -> None:
    """A graph stands in for one with control_msgs, which not every ROS has."""
    servers = {'/grip/_action/status': [TopicEndpointInfo(node_name='hand', node_namespace='/')]}
    node: Any = SimpleNamespace(
        resolve_topic_name=lambda name: f'/{name}',
        get_publishers_info_by_topic=lambda name: servers.get(name, []) if served else [],
    )
    channel: Any = SimpleNamespace(name='gripper', topic='grip', type=kind)
    *_, last = command_findings(node, channel, preview=False)
    assert (last.severity.name, last.said) == (
        ('OK', 'the action /grip is served by /hand')
        if served
        else ('FAULT', 'nobody serves the action /grip')
    )


@pytest.mark.parametrize(('rt_priority', 'niceness'), [(0, 0), (20, -10)])
def test_what_the_system_grants_to_the_process_is_said(rt_priority: int, niceness: int) -> None:
    usual = os.getpriority(os.PRIO_PROCESS, 0)
    *asked, malloc = process_findings(rt_priority, niceness)
    assert [finding.subject for finding in asked] == ['scheduling', 'niceness']
    for finding in asked:
        refused = 'was refused' in finding.said
        assert finding.severity is (Severity.WARNING if refused else Severity.OK)
        assert bool(finding.remedy) == refused
    assert malloc.subject == 'malloc'
    assert os.getpriority(os.PRIO_PROCESS, 0) == usual, 'asking is to change nothing'


def test_what_the_system_refuses_to_the_process_is_a_warning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*args: object) -> None:
        raise PermissionError('not for you')

    monkeypatch.setattr(os, 'sched_setscheduler', refuse)
    monkeypatch.setattr(os, 'setpriority', refuse)
    scheduling, niceness, _ = process_findings(20, -10)
    for finding in (scheduling, niceness):
        assert finding.severity is Severity.WARNING
        assert 'not for you' in finding.said
        assert finding.remedy


def test_profiles_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(ProfilesUnreadable, match=r'nowhere\.xml'):
        segment_bytes({'FASTRTPS_DEFAULT_PROFILES_FILE': str(tmp_path / 'nowhere.xml')})


@pytest.mark.parametrize('form', ['batch', 'nothing', *REFUSED])
def test_g51_and_is_a_fault_in_preflight(form: str) -> None:
    url = f'embedded:support.forms:Form?form={form}'
    settings = settings_of(worker_url=url, channels__arm__columns=['joint_1', 'joint_2'])
    found = list(worker_findings(settings, {}))
    worst = max(found, key=lambda finding: finding.severity)
    expected = {'batch': Severity.OK, 'nothing': Severity.WARNING}.get(form, Severity.FAULT)
    assert worst.severity == expected
    if expected is not Severity.OK:
        assert (worst.subject, worst.remedy != '') == ('policy', True)
        assert re.search(REFUSED.get(form, 'answered nothing'), worst.said)


def test_an_arm_that_nothing_watches_over_is_a_warning_as_are_columns_of_a_rotation_vector() -> (
    None
):
    found = [*following_findings(settings_of(channels__arm__columns=['rx', 'ry'], preview=True))]
    assert [item.severity for item in found] == [Severity.WARNING] * 2
    assert 'channels.arm has no max_tracking_error' in found[0].said
    assert "['rx', 'ry'] of channels.arm look like a rotation vector" in found[1].said
    assert not [*following_findings(settings_of(channels__arm__max_tracking_error=0.2))]

"""What each type of channel sends, over the messages of ROS."""

from __future__ import annotations

from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

from builtin_interfaces.msg import Time
import numpy as np
import pytest
from seq_harness.pipeline import Pipeline
from seq_harness.ros import topics
from seq_harness.ros.gripper_action import GripperAction
from seq_harness.settings.parameters import SettingsError
from support.robots import MS, settings_of

POSE = ['x', 'y', 'z', 'qx', 'qy', 'qz', 'qw']
TWIST = ['vx', 'vy', 'vz', 'wx', 'wy', 'wz']


def pose_settings(**changes: Any) -> Any:
    values = {
        'input_names': ['pose'],
        'inputs__pose__topic': 'current_pose',
        'inputs__pose__type': 'pose_stamped',
        'channels__arm__type': 'pose_stamped',
        'channels__arm__kind': 'pose',
        'channels__arm__state': 'pose',
        'channels__arm__joints': POSE,
        'channels__arm__lower': [-1.0, -1.0, 0.0],
        'channels__arm__upper': [1.0, 1.0, 1.0],
        'channels__arm__max_velocity': [0.5, 1.0],
        **changes,
    }
    return settings_of_plain(**values)


def settings_of_plain(**values: Any) -> Any:
    """Return settings without the joint_state input of the bench."""
    from seq_harness.settings import parse

    kept = {
        'channel_names': ['arm'],
        'channels.arm.topic': 'commands',
        **{name.replace('__', '.'): value for name, value in values.items()},
    }
    return parse(kept)


def encoded(settings: Any, values: list[float]) -> Any:
    publisher: Any = SimpleNamespace(publish=lambda message: None)
    made = topics.output(publisher, settings.channels[0], 100 * MS, lambda: Time(sec=7))
    return made.encode(np.array(values))


def test_a_pose_goes_out_stamped_with_the_present_in_its_frame() -> None:
    settings = pose_settings(channels__arm__frame='panda_link0')
    message = encoded(settings, [0.1, 0.2, 0.3, 0.0, 0.0, 0.6, 0.8])
    assert message.header.stamp.sec == 7
    assert message.header.frame_id == 'panda_link0'
    assert (message.pose.position.z, message.pose.orientation.w) == (0.3, 0.8)


def test_a_pose_is_measured_by_a_pose_and_shown_with_its_workspace() -> None:
    from seq_harness.contract import Actions, WorkerDeclaration

    declaration = WorkerDeclaration(instance='one', actions=Actions(hz=10))
    shown = Pipeline(pose_settings(), declaration).describe()
    assert 'column 2 z -> z in [0, 1]' in shown
    assert 'column 6 qw -> qw' in shown


def test_a_twist_needs_no_measured_state_and_is_stamped_for_servo() -> None:
    settings = settings_of(
        channels__arm__type='twist_stamped',
        channels__arm__kind='velocity',
        channels__arm__controller_timeout_s=0.1,
        channels__arm__state='',
        channels__arm__joints=TWIST,
        channels__arm__lower=[-1.0] * 6,
        channels__arm__upper=[1.0] * 6,
        channels__arm__max_velocity=[9.0] * 6,
    )
    message = encoded(settings, [1, 2, 3, 4, 5, 6])
    assert (message.twist.linear.x, message.twist.angular.z) == (1.0, 6.0)
    assert message.header.stamp.sec == 7


def test_joints_go_out_as_a_joint_state() -> None:
    message = encoded(settings_of(channels__arm__type='joint_state'), [0.1, 0.2])
    assert list(message.name) == ['j1', 'j2']
    assert list(message.position) == [0.1, 0.2]
    assert list(message.velocity) == []


@pytest.mark.skipif(find_spec('control_msgs') is not None, reason='control_msgs is installed')
def test_a_message_that_is_not_installed_is_named_with_its_package() -> None:
    settings = settings_of(
        channels__arm__type='joint_jog',
        channels__arm__kind='velocity',
        channels__arm__controller_timeout_s=0.1,
    )
    with pytest.raises(LookupError, match=r'control_msgs.*install ros-\*-control_msgs'):
        encoded(settings, [0.0, 0.0])


@pytest.mark.skipif(find_spec('control_msgs') is not None, reason='control_msgs is installed')
def test_an_action_that_is_not_installed_is_named_with_its_package() -> None:
    node: Any = None
    settings = settings_of_plain(
        input_names=['state'],
        inputs__state__topic='joint_states',
        inputs__state__type='joint_state',
        inputs__state__joints=['finger'],
        channels__arm__type='gripper_action',
        channels__arm__state='state',
        channels__arm__joints=['finger'],
        channels__arm__lower=[0.0],
        channels__arm__upper=[1.0],
        channels__arm__max_velocity=[1.0],
    )
    said = r'control_msgs/action/GripperCommand .*install ros-\*-control_msgs'
    with pytest.raises(LookupError, match=said):
        GripperAction(node, settings.channels[0], print)


@pytest.mark.parametrize(
    ('change', 'said'),
    [
        ({'channels__arm__type': 'twist_stamped'}, r"'channels.arm.joints' must name 6"),
        ({'channels__arm__type': 'float64'}, r"'channels.arm.joints' must name 1"),
        (
            {'channels__arm__type': 'joint_jog'},
            r"'channels.arm.kind' must be one of \['velocity', 'delta'\]",
        ),
        ({'channels__arm__kind': 'pose'}, "'channels.arm.joints' must name 7"),
        ({'channels__arm__state': ''}, "'channels.arm.state' must name an input"),
    ],
)
def test_a_channel_that_its_message_cannot_carry_is_refused(
    change: dict[str, Any], said: str
) -> None:
    with pytest.raises(SettingsError, match=said):
        settings_of(**change)

"""Messages of other types become numbers by name, or words; other packages add types."""

from __future__ import annotations

from collections.abc import Callable
import math
from math import nan
import os
from pathlib import Path
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from seq_harness.messages.converters import converter, CONVERTERS, Form
from seq_harness.messages.refusals import JointsRefused
from seq_harness.settings.input_types import INPUT_TYPES, NAMES
from support.sources import ROOT

Of = Callable[[str], Callable[..., Any]]


def read(kind: str, message: Any, *names: str) -> Any:
    return converter(kind).read(message, names or NAMES[kind], 'position')


def test_a_pose_is_seven_numbers_by_name(of: Of) -> None:
    point = of('geometry_msgs/msg/Point')(x=1.0, y=2.0, z=3.0)
    turn = of('geometry_msgs/msg/Quaternion')(x=0.0, y=0.0, z=0.6, w=0.8)
    pose = of('geometry_msgs/msg/Pose')(position=point, orientation=turn)
    found = read('pose_stamped', of('geometry_msgs/msg/PoseStamped')(pose=pose))
    assert list(found.values()) == [1.0, 2.0, 3.0, 0.0, 0.0, 0.6, 0.8]


@pytest.mark.parametrize(
    ('kind', 'outer', 'inner', 'parts'),
    [
        ('wrench_stamped', 'WrenchStamped', 'Wrench', ('force', 'torque')),
        ('twist_stamped', 'TwistStamped', 'Twist', ('linear', 'angular')),
    ],
)
def test_a_wrench_and_a_twist_are_six_numbers_by_name(
    of: Of, kind: str, outer: str, inner: str, parts: tuple[str, str]
) -> None:
    first = of('geometry_msgs/msg/Vector3')(x=1.0, y=2.0, z=3.0)
    second = of('geometry_msgs/msg/Vector3')(x=4.0, y=5.0, z=6.0)
    held = of(f'geometry_msgs/msg/{inner}')(**dict(zip(parts, (first, second), strict=True)))
    message = of(f'geometry_msgs/msg/{outer}')(**{inner.lower(): held})
    assert list(read(kind, message).values()) == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]


def test_an_array_gives_its_numbers_in_its_own_order_to_as_many_names(of: Of) -> None:
    message = of('std_msgs/msg/Float64MultiArray')(data=[1.0, 2.0])
    assert read('float64_multi_array', message, 'a', 'b') == {'a': 1.0, 'b': 2.0}
    with pytest.raises(JointsRefused, match='expected 3 numbers, got 2'):
        read('float64_multi_array', message, 'a', 'b', 'c')


def test_axes_and_buttons_of_a_joystick_are_numbers_by_name(of: Of) -> None:
    message = of('sensor_msgs/msg/Joy')(axes=[0.5, -1.0], buttons=[1])
    assert read('joy', message, 'axis_1', 'button_0') == {'axis_1': -1.0, 'button_0': 1.0}
    with pytest.raises(JointsRefused, match=r"\['axis_2'\] missing"):
        read('joy', message, 'axis_2')


def test_g1_a_number_that_is_not_finite_is_refused_by_name(of: Of) -> None:
    message = of('std_msgs/msg/Float64MultiArray')(data=[1.0, math.nan])
    with pytest.raises(JointsRefused, match='b = nan'):
        read('float64_multi_array', message, 'a', 'b')


@pytest.mark.parametrize(
    ('kind', 'name', 'data', 'word'),
    [
        ('bool', 'Bool', True, 'true'),
        ('int32', 'Int32', 3, '3'),
        ('uint8', 'UInt8', 7, '7'),
        ('string', 'String', 'RUNNING', 'RUNNING'),
    ],
)
def test_words_are_what_people_would_write(
    of: Of, kind: str, name: str, data: Any, word: str
) -> None:
    assert converter(kind).read(of(f'std_msgs/msg/{name}')(data=data), (), '') == word


@pytest.mark.parametrize(
    ('mode', 'word'), [(1, 'idle'), (2, 'move'), (4, 'reflex'), (5, 'user_stopped'), (9, '9')]
)
def test_the_mode_of_a_franka_is_the_word_of_its_number(mode: int, word: str) -> None:
    message = SimpleNamespace(robot_mode=mode)
    assert converter('franka_robot_state').read(message, (), '') == word


@pytest.mark.parametrize(
    ('code', 'word'), [(-1, 'invalid'), (0, 'no_warning'), (5, 'halt_for_collision'), (9, '9')]
)
def test_the_status_of_servo_is_the_word_of_its_code(code: int, word: str) -> None:
    assert converter('servo_status').read(SimpleNamespace(code=code), (), '') == word


@pytest.mark.parametrize(
    ('percent', 'word'),
    [(100.0, 'full'), (99.9997, 'full'), (40.0, 'slowed'), (0.0, 'stopped'), (nan, 'stopped')],
)
def test_g62_a_speed_scaling_is_full_slowed_or_stopped(percent: float, word: str) -> None:
    assert converter('speed_scaling').read(SimpleNamespace(data=percent), (), '') == word


def test_every_type_that_may_be_set_has_a_converter() -> None:
    assert set(CONVERTERS) <= set(INPUT_TYPES)
    numbers = {kind for kind, made in CONVERTERS.items() if made.form is Form.NUMBERS}
    assert numbers == set(NAMES)


def test_an_unknown_type_says_how_to_add_one() -> None:
    with pytest.raises(LookupError, match=r"entry point of the group 'seq_harness.inputs'"):
        converter('thermometer')


def test_another_package_adds_a_type_by_an_entry_point(tmp_path: Path) -> None:
    info = tmp_path / 'warmth-1.0.dist-info'
    info.mkdir()
    (info / 'METADATA').write_text('Metadata-Version: 2.1\nName: warmth\nVersion: 1.0\n')
    (info / 'entry_points.txt').write_text('[seq_harness.inputs]\nwarmth = warmth:WARMTH\n')
    (tmp_path / 'warmth.py').write_text(
        'from seq_harness.messages.converters import Converter, Form\n'
        "WARMTH = Converter('sensor_msgs/msg/Temperature', Form.NUMBERS,\n"
        "                   lambda message, names, field: {'warmth': message.temperature})\n"
    )
    program = (
        'from seq_harness.messages.converters import converter\n'
        'from seq_harness.settings.input_types import INPUT_TYPES\n'
        "print('warmth' in INPUT_TYPES, converter('warmth').message)\n"
    )
    paths = [str(tmp_path), str(ROOT), os.environ.get('PYTHONPATH', '')]
    answer = subprocess.run(
        [sys.executable, '-c', program],
        env={**os.environ, 'PYTHONPATH': os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    assert answer.stdout.split() == ['True', 'sensor_msgs/msg/Temperature']


def test_a_status_among_diagnostics_gives_its_level_or_the_value_of_a_key(of: Of) -> None:
    pair = of('diagnostic_msgs/msg/KeyValue')(key='mode', value='REMOTE')
    levels = pytest.importorskip('diagnostic_msgs.msg').DiagnosticStatus
    level = levels.ERROR if type(pair).__module__.startswith('diagnostic') else 2
    status = of('diagnostic_msgs/msg/DiagnosticStatus')(name='arm', level=level, values=[pair])
    message = of('diagnostic_msgs/msg/DiagnosticArray')(status=[status])
    assert read('diagnostic_array', message, 'arm') == 'error'
    assert read('diagnostic_array', message, 'arm', 'mode') == 'REMOTE'
    assert read('diagnostic_array', message, 'arm', 'other') is None
    assert read('diagnostic_array', message, 'gripper') is None

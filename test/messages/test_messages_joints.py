"""Joint values by name, from messages as drivers really send them."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan
from typing import Any

import numpy as np
import pytest
from seq_harness.messages.joints import (
    joint_values,
    joint_vector,
    JointsFault,
    JointsRefused,
)

Of = Callable[[str], Callable[..., Any]]

KIND = 'sensor_msgs/msg/JointState'
ARM = ['joint_1', 'joint_2', 'joint_3']


def test_g1_values_come_in_the_order_asked_for_not_the_one_sent(of: Of) -> None:
    message = of(KIND)(
        name=['joint_3', 'gripper', 'joint_1', 'joint_2'], position=[3.0, 9.0, 1.0, 2.0]
    )
    vector = joint_vector(message, ARM)
    np.testing.assert_array_equal(vector, [1.0, 2.0, 3.0])
    assert vector.dtype == np.float64


def test_velocity_and_effort_are_read_by_the_same_rule(of: Of) -> None:
    message = of(KIND)(
        name=['b', 'a'], position=[0.0, 0.0], velocity=[2.0, 1.0], effort=[4.0, 3.0]
    )
    np.testing.assert_array_equal(joint_vector(message, ['a', 'b'], 'velocity'), [1.0, 2.0])
    np.testing.assert_array_equal(joint_vector(message, ['a', 'b'], 'effort'), [3.0, 4.0])


@pytest.mark.parametrize('field', ['velocity', 'effort'])
def test_g2_an_empty_field_is_absent_and_position_is_still_read(of: Of, field: Any) -> None:
    message = of(KIND)(name=ARM, position=[1.0, 2.0, 3.0])
    with pytest.raises(JointsRefused, match=f'holds no {field}') as refused:
        joint_vector(message, ARM, field)
    assert refused.value.fault is JointsFault.ABSENT
    np.testing.assert_array_equal(joint_vector(message, ARM), [1.0, 2.0, 3.0])


def test_g1_nan_velocity_is_refused_and_position_is_still_read(of: Of) -> None:
    message = of(KIND)(name=ARM, position=[1.0, 2.0, 3.0], velocity=[nan, nan, nan])
    with pytest.raises(JointsRefused) as refused:
        joint_vector(message, ARM, 'velocity')
    assert refused.value.fault is JointsFault.NOT_FINITE
    np.testing.assert_array_equal(joint_vector(message, ARM), [1.0, 2.0, 3.0])


@pytest.mark.parametrize(
    ('name', 'position', 'fault', 'said'),
    [
        (['joint_1', 'joint_2'], [1.0, 2.0], JointsFault.MISSING, 'joint_3 missing from joint_1'),
        ([], [], JointsFault.MISSING, 'missing from a message without names'),
        (ARM, [1.0, 2.0], JointsFault.TOO_SHORT, '3 joints are named, with 2 values of position'),
        (ARM, [1.0, nan, 3.0], JointsFault.NOT_FINITE, 'joint_2 = nan'),
        (ARM, [1.0, 2.0, -inf], JointsFault.NOT_FINITE, 'joint_3 = -inf'),
        ([*ARM, 'joint_1'], [1.0, 2.0, 3.0, 4.0], JointsFault.AMBIGUOUS, 'named twice'),
    ],
)
def test_what_cannot_be_used_is_refused_by_name(
    of: Of, name: list[str], position: list[float], fault: JointsFault, said: str
) -> None:
    with pytest.raises(JointsRefused, match=said) as refused:
        joint_vector(of(KIND)(name=name, position=position), ARM)
    assert refused.value.fault is fault


def test_a_bad_value_of_a_joint_nobody_asked_for_does_no_harm(of: Of) -> None:
    message = of(KIND)(name=[*ARM, 'wheel'], position=[1.0, 2.0, 3.0, nan])
    np.testing.assert_array_equal(joint_vector(message, ARM), [1.0, 2.0, 3.0])


def test_g3_a_message_of_the_gripper_alone_gives_its_part(of: Of) -> None:
    gripper = of(KIND)(name=['gripper'], position=[0.4])
    assert joint_values(gripper, [*ARM, 'gripper']) == {'gripper': 0.4}
    assert joint_values(gripper, ARM) == {}

"""Joints that a policy counts otherwise than ROS does, in both directions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from seq_harness.settings.parameters import SettingsError
from support.robots import Bench, joint_state, settings_of


def mapped(**joint: Any) -> dict[str, Any]:
    """Return the parameters that map the second joint of the bench."""
    return {
        'mapped_joints': ['j2'],
        'channels__arm__lower': [-4.0, -4.0],
        'channels__arm__upper': [4.0, 4.0],
        **{f'joints__j2__{name}': value for name, value in joint.items()},
    }


def seen(bench: Bench, value: float) -> list[float]:
    """Return what the policy reads of the state while the second joint stands at `value`."""
    now = bench.clock.now
    bench.inputs.put('state', joint_state([0.5, value], now), now_ns=now, ros_now_ns=now)
    observation = bench.pipeline.spec.observe(bench.inputs.snapshot(), now, '')
    read = bench.pipeline.layers.encode(observation)['state']
    assert read.dtype == np.float32
    return [float(number) for number in read]


@pytest.mark.parametrize(
    ('joint', 'policy', 'ros'),
    [
        ({'unit': 'deg'}, 90.0, np.pi / 2),
        ({'unit': 'mm'}, 250.0, 0.25),
        ({'unit': 'deg', 'sign': -1}, 90.0, -np.pi / 2),
        ({'offset': 0.5}, 0.25, 0.75),
        ({'unit': 'deg', 'sign': -1, 'offset': 1.0}, 0.0, 1.0),
    ],
)
def test_g6_a_joint_in_the_units_of_the_policy_is_converted_both_ways(
    joint: dict[str, Any], policy: float, ros: float
) -> None:
    bench = Bench(**mapped(**joint))
    assert seen(bench, ros) == pytest.approx([0.5, policy], abs=1e-4)
    assert bench.pipeline.layers.names[-1] == 'joint_map'
    row = {'arm': np.array([0.5, policy])}
    layer = bench.pipeline.joint_map
    assert layer is not None
    assert layer.decode_row(row)['arm'] == pytest.approx([0.5, ros])
    assert layer.encode_row(layer.decode_row(row))['arm'] == pytest.approx([0.5, policy])


@pytest.mark.parametrize(
    ('ros', 'policy'),
    [((0.0, 0.8), (0.0, 1.0)), ((0.04, 0.0), (0.0, 1.0)), ((0.0, 0.8), (1.0, 0.0))],
)
def test_g5_a_gripper_opens_where_the_policy_says_open_whichever_is_larger(
    ros: tuple[float, float], policy: tuple[float, float]
) -> None:
    bench = Bench(**mapped(open_closed=list(ros), policy_open_closed=list(policy)))
    layer = bench.pipeline.joint_map
    assert layer is not None
    for mine, theirs in zip(ros, policy, strict=True):
        assert seen(bench, mine)[1] == pytest.approx(theirs, abs=1e-6)
        assert layer.decode_row({'arm': np.array([0.0, theirs])})['arm'][1] == pytest.approx(mine)


def test_g5_beyond_open_and_closed_is_clamped_both_ways_and_the_ends_are_shown() -> None:
    bench = Bench(**mapped(open_closed=[0.04, 0.0]))
    layer = bench.pipeline.joint_map
    assert layer is not None
    assert seen(bench, 0.05)[1] == 0.0
    assert layer.decode_row({'arm': np.array([0.0, 1.3])})['arm'][1] == 0.0
    shown = bench.pipeline.describe()
    assert 'j2: the policy says 0 for open (0.04) and 1 for closed (0)' in shown


def test_a_rate_has_a_unit_and_a_sign_and_no_zero() -> None:
    changes = mapped(unit='deg', sign=-1, offset=1.0)
    timed: dict[str, Any] = {
        'channels__arm__kind': 'velocity',
        'channels__arm__controller_timeout_s': 0.5,
    }
    layer = Bench(**changes, **timed).pipeline.joint_map
    assert layer is not None
    row = layer.decode_row({'arm': np.array([0.5, 90.0])})
    assert row['arm'] == pytest.approx([0.5, -np.pi / 2])


def test_a_continuous_joint_is_read_within_half_a_turn() -> None:
    bench = Bench(**mapped(unit='deg', continuous=True))
    assert seen(bench, 2 * np.pi + 0.1)[1] == pytest.approx(np.degrees(0.1), abs=1e-3)
    assert seen(bench, -1.5 * np.pi)[1] == pytest.approx(90.0, abs=1e-3)


def test_g4_what_is_not_a_number_stays_so_and_reaches_the_guard() -> None:
    bench = Bench(**mapped(open_closed=[0.0, 1.0]))
    layer = bench.pipeline.joint_map
    assert layer is not None
    assert np.isnan(layer.decode_row({'arm': np.array([0.0, np.nan])})['arm'][1])


@pytest.mark.parametrize(
    ('joint', 'said'),
    [
        ({'unit': 'grad'}, 'must be one of'),
        ({'sign': 0}, 'must be 1 or -1'),
        ({'open_closed': [0.1]}, 'two different numbers, open and closed'),
        ({'open_closed': [0.1, 0.1]}, 'two different numbers'),
        ({'open_closed': [0.0, 0.1], 'continuous': True}, 'must be false for a gripper'),
    ],
)
def test_a_wrong_map_of_a_joint_is_refused_by_name(joint: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        settings_of(**mapped(**joint))


def test_a_mapped_joint_that_nothing_has_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"'j9', which no input and no channel has"):
        settings_of(mapped_joints=['j9'])

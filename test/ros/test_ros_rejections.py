"""A controller that takes no trajectory is noticed by the reference that it follows."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from seq_harness.ros.rejections import RejectionWatch
from support.robots import MS, S


def trajectory(*positions: float) -> Any:
    return SimpleNamespace(points=[SimpleNamespace(positions=list(positions))])


def state(*positions: float, field: str = 'reference') -> Any:
    """Return a controller's state, its joints in another order than ours."""
    point = SimpleNamespace(positions=[positions[1], positions[0]])
    return SimpleNamespace(**{'joint_names': ['j2', 'j1'], field: point})


@pytest.fixture
def watch() -> RejectionWatch:
    return RejectionWatch(['j1', 'j2'], 'joint_trajectory_controller/joint_trajectory')


@pytest.mark.parametrize('field', ['reference', 'desired'])
def test_g39_a_controller_that_follows_no_trajectory_is_told(
    watch: RejectionWatch, field: str
) -> None:
    said = []
    for at in range(13):
        watch.commanded(trajectory(0.1 + at * 0.01, 0.0))
        said.append(watch.look(state(0.0, 0.0, field=field), S + at * 100 * MS))
    assert said[:10] == [''] * 10
    assert 'joint_trajectory has followed no trajectory for 1.2 s' in said[12]


def test_a_controller_that_lags_behind_follows(watch: RejectionWatch) -> None:
    for at in range(30):
        watch.commanded(trajectory(0.1 + at * 0.01, 0.0))
        assert watch.look(state(at * 0.01, 0.0), S + at * 100 * MS) == ''


def test_a_controller_that_was_told_to_stay_may_stand(watch: RejectionWatch) -> None:
    assert watch.look(state(0.3, 0.0), S) == '', 'nothing was commanded yet'
    watch.commanded(trajectory(0.3, 0.0))
    assert [watch.look(state(0.3, 0.0), S + at * S) for at in range(4)] == [''] * 4


def test_it_is_well_again_once_the_controller_moves(watch: RejectionWatch) -> None:
    watch.commanded(trajectory(0.5, 0.0))
    watch.look(state(0.0, 0.0), S)
    assert watch.look(state(0.0, 0.0), 3 * S)
    assert watch.look(state(0.1, 0.0), 3 * S + 10 * MS) == ''


def test_a_state_of_other_joints_says_nothing(watch: RejectionWatch) -> None:
    watch.commanded(trajectory(0.5, 0.0))
    other = SimpleNamespace(joint_names=['k'], reference=SimpleNamespace(positions=[0.0]))
    assert [watch.look(other, S + at * S) for at in range(4)] == [''] * 4

"""Recordings replayed in lockstep: the same every time, on the recording's own time."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from seq_harness.bags import (
    charged,
    charged_as_recorded,
    charged_real,
    replay,
    ReplayOptions,
    Run,
)
from seq_harness.bags.blanks import blank, serialised
from seq_harness.bags.charges import Cost, uncharged
from seq_harness.bags.records import BagError
from seq_harness.messages.commands import COMMANDS
from support.recordings import Follow, motion, MS, parameters, S, START_NS, write

PERIOD_NS = 50 * MS


class Still:
    """Answers the same rows, whatever it sees."""

    def infer(self, inputs: Any) -> Any:
        """Answer twenty rows."""
        return np.zeros((20, 2))


class Seeded(Still):
    """Remembers the seed and the parameter that each act was given."""

    params: ClassVar = {'gain': {'type': 'float', 'default': 1.0}}

    def __init__(self) -> None:
        self.given: list[tuple[int | None, float]] = []

    def infer(self, inputs: Any, seed: int | None = None, params: Any = None) -> Any:
        """Answer twenty rows."""
        self.given.append((seed, params['gain']))
        return super().infer(inputs)


@pytest.fixture(scope='module')
def bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp('bag') / 'motion', motion())


def _run(bag: Path, cost: Cost = uncharged, policy: Any = None, **changes: Any) -> Run:
    options = ReplayOptions(cost=cost)
    return replay(bag, parameters(**changes), policy or Follow(), options)


@pytest.mark.parametrize('cost', [uncharged, charged(0.12), charged_as_recorded([0.05, 0.21])])
def test_two_runs_give_the_same_setpoints_to_the_byte(bag: Path, cost: Cost) -> None:
    first, second = (_run(bag, cost) for _ in range(2))
    assert first.hash == second.hash
    assert len(first.setpoints['arm']) > 30
    np.testing.assert_array_equal(first.setpoints['arm'].values, second.setpoints['arm'].values)


def test_another_policy_or_another_cost_gives_another_hash(bag: Path) -> None:
    hashes = {_run(bag, cost).hash for cost in (uncharged, charged(0.12), charged(0.2))}
    hashes.add(_run(bag, policy=Follow(rows=6)).hash)
    assert len(hashes) == 4


def test_the_hash_tells_when_a_setpoint_was_sent(bag: Path) -> None:
    runs = [_run(bag, charged(cost_s), Still()) for cost_s in (0.11, 0.12)]
    first, second = (run.setpoints['arm'] for run in runs)
    np.testing.assert_array_equal(first.values, second.values)
    assert runs[0].hash != runs[1].hash


def test_an_uncharged_answer_plays_from_the_instant_that_asked(bag: Path) -> None:
    run = _run(bag)
    sent = run.setpoints['arm']
    assert run.acts[0].asked_ns == START_NS
    assert sent.t_ns[0] == START_NS
    assert set(np.diff(sent.t_ns)) == {PERIOD_NS}


def test_a_charged_answer_is_seen_only_once_it_is_paid(bag: Path) -> None:
    run = _run(bag, charged(0.12))
    assert run.acts[0].cost_ns == 120 * MS
    assert run.setpoints['arm'].t_ns[0] == START_NS + 120 * MS


def test_each_act_costs_what_it_did_in_the_other_run(bag: Path) -> None:
    costs = [0.01, 0.02, 0.03]
    run = _run(bag, charged_as_recorded(costs))
    assert [act.cost_ns for act in run.acts[:5]] == [10 * MS, 20 * MS, *3 * [30 * MS]]


def test_the_real_duration_is_charged(bag: Path) -> None:
    run = _run(bag, charged_real)
    assert all(act.cost_ns == act.real_ns > 0 for act in run.acts)
    assert run.setpoints['arm'].t_ns[0] == START_NS + run.acts[0].real_ns


def test_an_inference_sees_what_was_logged_up_to_its_instant(bag: Path) -> None:
    policy = Follow()
    run = replay(bag, parameters(), policy, ReplayOptions(warm_up=False))
    for act, seen in zip(run.acts, policy.seen, strict=True):
        newest = (act.asked_ns - START_NS) // (10 * MS) * 10 * MS / 1e9
        assert seen['state'][0] == pytest.approx(0.1 * np.sin(newest), abs=1e-6)


def test_setpoints_come_as_arrays_by_channel(bag: Path) -> None:
    sent = _run(bag).setpoints['arm']
    assert sent.joints == ('j1', 'j2')
    assert sent.values.shape == (len(sent), 2)
    assert sent.values.dtype == np.float64
    np.testing.assert_array_equal(sent.due_ns, sent.t_ns)


def test_a_trajectory_gives_one_row_a_point(bag: Path) -> None:
    run = _run(bag, channels__arm__type='joint_trajectory', channels__arm__horizon='chunk')
    sent = run.setpoints['arm']
    assert set(sent.t_ns[:5]) == {START_NS}
    assert set(np.diff(sent.due_ns[:5])) == {PERIOD_NS}


@pytest.mark.parametrize(
    ('kind', 'width', 'changes'),
    [
        ('joint_state', 2, {}),
        ('joint_jog', 2, {'kind': 'velocity', 'controller_timeout_s': 0.1}),
        ('joint_trajectory', 2, {}),
    ],
)
def test_every_kind_of_message_is_made(
    bag: Path, kind: str, width: int, changes: dict[str, Any]
) -> None:
    chosen = {f'channels.arm.{name}': value for name, value in changes.items()}
    run = replay(bag, {**parameters(channels__arm__type=kind), **chosen}, Follow())
    assert run.setpoints['arm'].values.shape == (len(run.setpoints['arm']), width)
    assert len(run.setpoints['arm']) > 30


def test_a_part_is_replayed(bag: Path) -> None:
    run = replay(bag, parameters(), Follow(), ReplayOptions(start_s=0.5, stop_s=1.0))
    assert run.start_ns == START_NS + S // 2
    assert run.setpoints['arm'].t_ns[0] == START_NS + S // 2
    assert run.end_ns < START_NS + S


def test_nothing_in_the_part_is_refused(bag: Path) -> None:
    with pytest.raises(BagError, match='holds nothing from 9 s on'):
        replay(bag, parameters(), Follow(), ReplayOptions(start_s=9.0))


def test_a_rate_paces_it(bag: Path) -> None:
    run = replay(bag, parameters(), Follow(), ReplayOptions(stop_s=0.5, rate=4.0))
    assert run.real_s > 0.12
    assert run.speed_x < 4.2


def test_the_end_says_why(bag: Path) -> None:
    assert _run(bag).reason == 'bag_ended'
    assert _run(bag, episode_s=1.0).reason == 'deadline'


def test_a_failing_policy_is_told_as_on_a_robot(bag: Path) -> None:
    def fail() -> None:
        raise RuntimeError('out of ideas')

    policy = Follow(on_infer=fail)
    run = replay(bag, parameters(), policy, ReplayOptions(warm_up=False))
    assert run.reason.startswith('policy_error')
    assert 'out of ideas' in run.reason
    assert not len(run.setpoints['arm'])


def test_a_policy_is_given_the_seed_and_the_parameters_of_the_robot(bag: Path) -> None:
    policy = Seeded()
    changed = parameters(seed=5, policy_params='{"gain": 0.5}', gateway_url='http://127.0.0.1:9')
    replay(bag, changed, policy)
    assert set(policy.given) == {(5, 0.5)}


def test_topics_are_renamed(bag: Path) -> None:
    changed = parameters(inputs__state__topic='arm/joint_states')
    options = ReplayOptions(remaps={'arm/joint_states': '/joint_states'})
    assert replay(bag, changed, Follow(), options).hash == _run(bag).hash


@pytest.mark.parametrize('kind', sorted({command.message for command in COMMANDS.values()}))
def test_a_blank_message_is_one_of_its_type(kind: str) -> None:
    message = blank(kind)
    assert message.__msgtype__ == kind
    assert len(serialised(message)) >= 4

"""A state that stays the same to the bit while its joints are commanded away (G47)."""

from __future__ import annotations

from collections.abc import Callable
import math
import random
from typing import Any

import numpy as np
import pytest
from seq_harness.playback.chunk import Chunk
from support.robots import Bench, joint_state, MS, S

T0 = 100 * S
Places = Callable[[float], tuple[float, float]]
"""Seconds since the start to where both joints are, or are to be."""


class Arm:
    """An arm whose state comes every 20 ms, under a policy that answers ten rows at once."""

    def __init__(self, goal: Places, measured: Places, **changes: Any) -> None:
        wide = {'channels__arm__lower': [-3.0, -3.0], 'channels__arm__upper': [3.0, 3.0]}
        self.bench = Bench(asking='drain', **{**wide, **changes})
        self.goal = goal
        self.measured = measured
        self.stamp_of: Callable[[int], int] = lambda now: now
        self.drivers: tuple[tuple[str, ...], ...] = (('j1', 'j2'),)
        self.answers = 1000

    def play(self, seconds: float) -> str:
        """Play for so long, or to the end; return its reason."""
        self.put()
        self.bench.harness.start()
        wake = self.bench.harness.round()
        while self.now_s < seconds and self.bench.live:
            self.bench.clock.now += 20 * MS
            self.put()
            self.answer()
            while wake <= self.bench.clock.now and self.bench.live:
                wake = self.bench.harness.round()
                self.answer()
        return self.bench.reason

    def put(self) -> None:
        now = self.bench.clock.now
        places = dict(zip(('j1', 'j2'), self.measured(self.now_s), strict=True))
        for names in self.drivers:
            held = [places[name] for name in names]
            message = joint_state(held, self.stamp_of(now), names)
            self.bench.inputs.put('state', message, now_ns=now, ros_now_ns=now)

    def answer(self) -> None:
        asked = self.bench.answers[: self.answers]
        if asked and not asked[-1].done():
            rows = [{'arm': np.array(self.goal(self.now_s + at / 10))} for at in range(10)]
            asked[-1].give(Chunk.at_rate(rows, 10))

    @property
    def now_s(self) -> float:
        return (self.bench.clock.now - T0) / S


def swing(t: float) -> tuple[float, float]:
    return 0.5 * math.sin(t), 0.0


def at_rest(t: float) -> tuple[float, float]:
    return 0.0, 0.0


def until(stop_s: float, places: Places) -> Places:
    return lambda t: places(min(t, stop_s))


def test_g47_a_state_that_freezes_while_its_arm_is_commanded_ends_the_episode_by_name() -> None:
    arm = Arm(swing, until(2.0, swing))
    reason = arm.play(8.0)
    assert reason.startswith('frozen_state: joint_states has been the same for 1.')
    assert 'while arm was commanded by 0.' in reason
    assert reason.endswith('rad (at j1)')
    assert 3.0 < arm.now_s < 3.5
    assert arm.bench.harness.report().figures['chunks']['refused'] == {'frozen': 1}


def test_g47_an_arm_that_follows_plays_on() -> None:
    assert Arm(swing, swing).play(60.0) == ''


def test_a_still_arm_may_take_its_time_to_begin_to_move() -> None:
    """At rest for long, and then 0.9 s behind its command."""

    def goal(t: float) -> tuple[float, float]:
        return (0.0, 0.0) if t < 5 else swing(t - 5)

    assert Arm(goal, lambda t: goal(t - 0.9)).play(15.0) == ''


def test_a_quantised_arm_with_a_dead_band_that_rests_under_a_policy_that_trembles_plays_on() -> (
    None
):
    chance = random.Random(7)
    step = 2 * math.pi / 4096

    def trembling(t: float) -> tuple[float, float]:
        return 0.3 + chance.uniform(-0.02, 0.02), -0.2 + chance.uniform(-0.02, 0.02)

    place = [0.3, -0.2]

    def measured(t: float) -> tuple[float, float]:
        """Follow what was sent beyond a dead band of 0.03 rad, in steps of the encoder."""
        sent = arm.bench.sent[-1][1] if arm.bench.sent else place
        for joint, goal in enumerate(sent):
            if abs(goal - place[joint]) > 0.03:
                place[joint] = goal
        return round(place[0] / step) * step, round(place[1] / step) * step

    arm = Arm(trembling, measured)
    assert arm.play(60.0) == ''


def test_an_arm_of_coarse_steps_need_not_follow_ten_of_them() -> None:
    """Steps of 0.02 rad, seen at first; then 0.15 rad that it does not follow."""

    def goal(t: float) -> tuple[float, float]:
        return (min(0.1, 0.1 * t) if t < 4 else 0.25, 0.0)

    def measured(t: float) -> tuple[float, float]:
        return 0.02 * round(min(0.1, 0.1 * t) / 0.02), 0.0

    assert Arm(goal, measured, channels__arm__max_velocity=[20.0, 20.0]).play(10.0) == ''
    assert Arm(goal, until(0.02, measured)).play(10.0).startswith('frozen_state')


def test_what_was_commanded_to_and_fro_counts_by_where_it_ends() -> None:
    assert Arm(lambda t: (0.04 * math.sin(9 * t), 0.0), at_rest).play(20.0) == ''


def test_an_arm_that_has_come_to_rest_far_from_where_it_began_plays_on() -> None:
    assert Arm(until(1.5, swing), until(1.5, swing)).play(10.0) == ''


def test_an_arm_that_is_held_at_rest_and_commanded_nowhere_plays_on() -> None:
    assert Arm(lambda t: (0.15, 0.0), at_rest).play(20.0) == ''


def test_values_are_judged_by_messages_with_stamps_of_their_own() -> None:
    """A clock that ticks every 300 ms: five new stamps take longer than a second."""
    arm = Arm(swing, until(2.0, swing), inputs__state__max_age_s=5.0)
    arm.stamp_of = lambda now: now // (300 * MS) * 300 * MS
    assert arm.play(8.0).startswith('frozen_state')
    assert 3.4 < arm.now_s < 4.2


def test_a_driver_without_stamps_that_freezes_is_found_too() -> None:
    arm = Arm(swing, until(2.0, swing))
    arm.stamp_of = lambda now: 0
    assert arm.play(8.0).startswith('frozen_state')


def test_an_arm_that_freezes_beside_a_gripper_that_lives_is_found() -> None:
    """The joints of one driver are frozen; another on the same topic goes on."""
    arm = Arm(swing, lambda t: (until(2.0, swing)(t)[0], 0.001 * t))
    arm.drivers = (('j1',), ('j2',))
    assert arm.play(8.0).startswith('frozen_state')


@pytest.mark.parametrize(
    'changes',
    [
        {'preview': True},
        {'channels__arm__kind': 'binary'},
        {
            'mapped_joints': ['j1'],
            'joints__j1__open_closed': [1.0, 0.0],
        },
    ],
)
def test_what_need_not_move_is_not_taken_for_frozen(changes: dict[str, Any]) -> None:
    arm = Arm(lambda t: (0.5 - 0.5 * math.cos(t), 0.0), at_rest, guard_start='ramp', **changes)
    assert arm.play(6.0) == ''


@pytest.mark.parametrize(('kind', 'of'), [('velocity', ''), ('delta', 'previous')])
def test_rates_and_changes_are_summed(kind: str, of: str) -> None:
    changes = {
        'channels__arm__kind': kind,
        'channels__arm__delta_of': of,
        'channels__arm__controller_timeout_s': 0.2 if kind == 'velocity' else 0.0,
    }
    value = 0.3 if kind == 'velocity' else 0.03
    arm = Arm(lambda t: (value, 0.0), until(2.0, lambda t: (0.3 * t, 0.0)), **changes)
    assert arm.play(8.0).startswith('frozen_state')
    assert 3.0 < arm.now_s < 3.6
    turning = Arm(lambda t: (math.copysign(value, math.sin(20 * t)), 0.0), at_rest, **changes)
    assert turning.play(8.0) == ''


def test_an_arm_that_is_starved_or_paused_may_stand_where_it_is() -> None:
    """It stops 0.1 rad before its goal, as its policy answers no more."""

    def goal(t: float) -> tuple[float, float]:
        return 0.3 * min(t, 0.9), 0.0

    arm = Arm(goal, until(0.5, goal))
    arm.answers = 1
    assert arm.play(8.0) == ''
    assert arm.bench.harness.report().figures['starved_s'] > 5


RATES = {
    'channels__arm__kind': 'velocity',
    'channels__arm__controller_timeout_s': 0.2,
    'channels__arm__state': '',
}


def test_a_rate_that_is_commanded_while_every_joint_stands_is_said_and_ends_nothing() -> None:
    arm = Arm(lambda t: (0.3, 0.0), at_rest, **RATES)
    assert arm.play(2.9) == ''
    assert arm.bench.pipeline.standing.said == {}
    stopped = Arm(lambda t: (0.3, 0.0), at_rest, **RATES)
    assert stopped.play(5.0) == ''
    said = stopped.bench.pipeline.standing.said['arm']
    assert said.startswith('arm has been commanded for 3.0 s, and no joint has moved')


@pytest.mark.parametrize(
    ('goal', 'measured'),
    [
        (lambda t: (0.3, 0.0), lambda t: (0.0, 0.003 * t)),
        (lambda t: (0.001, 0.0), at_rest),
        (lambda t: (0.3 if t % 4 < 2.5 else 0.0, 0.0), at_rest),
    ],
    ids=['some joint moves', 'it leads nowhere yet', 'it pauses'],
)
def test_a_rate_is_not_said_to_do_nothing_where(goal: Places, measured: Places) -> None:
    arm = Arm(goal, measured, **RATES)
    assert arm.play(20.0) == ''
    assert arm.bench.pipeline.standing.said == {}

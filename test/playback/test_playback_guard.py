"""What the guard refuses, clamps or ramps, and whether the robot follows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import given, strategies
import numpy as np
import pytest
from seq_harness.playback.asking import Drain
from seq_harness.playback.chunk import Chunk, ChunkRefused
from seq_harness.playback.expiry import Expiry
from seq_harness.playback.guard import Guard, GuardPolicy, Limits, OnBreach
from seq_harness.playback.handoff import ArriveAtStart
from seq_harness.playback.kinds import Angle, Binary, Delta, Kind, Kinds, Pose, Velocity
from seq_harness.playback.plan import Plan, Waypoint
from seq_harness.playback.player import ChunkPlayer
from seq_harness.playback.record import Emitted
from seq_harness.playback.session import POLL_NS
from seq_harness.playback.tracking import Tracking
from support.uplinks import HandUplink, MS, rows, S

PERIOD = 100 * MS
CLAMP, RAMP = OnBreach.CLAMP, OnBreach.RAMP
LIMITS = Limits(
    joints=('a', 'b'),
    lower=np.array([-1.0, -1.0]),
    upper=np.array([1.0, 1.0]),
    max_velocity=np.array([1.0, 1.0]),
    max_start_distance=np.array([0.2, 0.2]),
)


def guard(policy: GuardPolicy | None = None, limits: Limits = LIMITS, **kinds: Kind) -> Guard:
    return Guard({'arm': limits}, PERIOD, Kinds(kinds), policy)


def plan(*values: Any) -> Plan:
    chunk = Chunk.at_rate([{'arm': np.array(value, dtype=float)} for value in values], 10)
    return Plan.anchored(chunk, 0, 0, 0)


def checked(by: Guard, *values: Any, measured: Sequence[float] = (0.0, 0.0)) -> list[Any]:
    admitted = by.check_plan(plan(*values), {}, {'arm': np.array(measured)})
    return [np.round(row.commands['arm'], 9).tolist() for row in admitted.waiting()]


def test_a_chunk_without_fault_plays_as_it_is() -> None:
    fine = plan([0, 0], [0.1, 0])
    by = guard()
    assert by.check_plan(fine, {}, {'arm': np.zeros(2)}) is fine
    assert not by.changed


def test_limits_are_clamped_and_counted() -> None:
    by = guard(GuardPolicy(limits=CLAMP))
    near = (0.95, 0.0)
    assert checked(by, [0.99, 0], [1.05, 0], [1.0, 0], measured=near) == [
        [0.99, 0],
        [1, 0],
        [1, 0],
    ]
    assert by.changed == {'limits: clamp': 1}


def test_a_step_is_approached_as_fast_as_the_channel_may_move() -> None:
    by = guard(GuardPolicy(step=RAMP))
    assert checked(by, [0, 0], [0.25, 0], [0.25, 0], [0.25, 0]) == [
        [0, 0],
        [0.1, 0],
        [0.2, 0],
        [0.25, 0],
    ]
    assert by.changed == {'step: ramp': 2}


def test_a_far_start_is_ramped_from_the_measured_state_at_the_speed_limit() -> None:
    by = guard(GuardPolicy(start=RAMP, step=RAMP))
    assert checked(by, [0.5, 0], [0.5, 0]) == [[0.1, 0], [0.2, 0]]
    assert by.changed == {'start: ramp': 1, 'step: ramp': 1}


def test_a_far_start_is_clamped_to_its_distance() -> None:
    assert checked(guard(GuardPolicy(start=CLAMP)), [0.5, 0], [0.2, 0])[0] == [0.2, 0]


def test_a_ramp_past_a_position_limit_is_no_choice() -> None:
    with pytest.raises(ValueError, match='refused or clamped, not ramped'):
        GuardPolicy(limits=RAMP)


@pytest.mark.parametrize('value', [[np.nan, 0], [np.inf, 0], [0], [[0, 0]]])
def test_what_is_no_value_is_refused_by_every_policy(value: Any) -> None:
    with pytest.raises(ChunkRefused) as caught:
        checked(guard(GuardPolicy(CLAMP, CLAMP, CLAMP)), value)
    assert caught.value.cause in ('not_finite', 'width')


@pytest.mark.parametrize(
    ('values', 'cause'),
    [
        ([[0, 0], [0, 1.5]], 'limits'),
        ([[0, 0], [0, 0.2]], 'step'),
        ([[0.3, 0]], 'start'),
        ([[np.nan, 0]], 'not_finite'),
        ([[0, 0, 0]], 'width'),
    ],
)
def test_a_refusal_is_counted_by_its_cause(values: Any, cause: str) -> None:
    with pytest.raises(ChunkRefused) as caught:
        checked(guard(), *values)
    assert caught.value.cause == cause


noise = strategies.lists(
    strategies.tuples(strategies.floats(-2, 2), strategies.floats(-2, 2)), min_size=1, max_size=20
)


@given(noise)
def test_what_a_clamping_guard_admits_a_refusing_guard_admits_too(values: Any) -> None:
    admitted = checked(guard(GuardPolicy(CLAMP, CLAMP, CLAMP)), *values)
    assert checked(guard(), *admitted) == admitted


def test_an_emission_is_held_to_one_and_a_half_periods_of_its_last_command() -> None:
    last = {'arm': Emitted(np.zeros(2), 0)}
    near = Waypoint(2 * S, {'arm': np.array([0.15, 0.0])})
    assert guard().check_emission(near, last) == near.commands
    further = Waypoint(2 * S, {'arm': np.array([0.2, 0.0])})
    with pytest.raises(ChunkRefused, match=r'a makes a step of 0.2, beyond 0.15'):
        guard().check_emission(further, last)
    changed = guard(GuardPolicy(step=CLAMP)).check_emission(further, last)
    assert changed['arm'].tolist() == pytest.approx([0.15, 0.0])


def test_an_angles_step_is_its_nearest_turn() -> None:
    limits = Limits(('a', 'b'), *(np.full(2, v) for v in (-9.0, 9.0, 1.0, 0.2)))
    by = guard(None, limits, arm=Angle())
    assert len(checked(by, [3.1, 0], [-3.1, 0], measured=(3.1, 0.0))) == 2


def test_deltas_are_steps_in_themselves() -> None:
    by = guard(None, LIMITS, arm=Delta())
    assert len(checked(by, [0.1, 0], [0.1, 0], [-0.1, 0])) == 3
    with pytest.raises(ChunkRefused, match=r'a makes a step of 0\.15'):
        checked(by, [0.1, 0], [0.15, 0])


def test_switches_and_velocities_start_from_no_measured_state() -> None:
    for kind in (Binary(), Velocity()):
        by = Guard({'arm': LIMITS}, PERIOD, Kinds({'arm': kind}))
        assert by.check_plan(plan([1, 0]), {}, {}).held == 1
    with pytest.raises(ChunkRefused, match='no measured state to start from'):
        guard().check_plan(plan([0, 0]), {}, {})


def test_a_pose_stays_in_its_workspace_box_and_its_speeds() -> None:
    box = Limits(
        joints=('x', 'y', 'z'),
        lower=np.array([0.0, -0.5, 0.1]),
        upper=np.array([0.6, 0.5, 0.9]),
        max_velocity=np.array([1.0, 1.0]),
        max_start_distance=np.array([0.1, 0.2]),
    )
    here = [0.3, 0.0, 0.5, 0.0, 0.0, 0.0, 1.0]
    low = [0.3, 0.0, 0.05, 0.0, 0.0, 0.0, 1.0]
    turned = [0.3, 0.0, 0.5, 0.0, 0.0, np.sqrt(0.5), np.sqrt(0.5)]
    by = guard(None, box, arm=Pose())
    assert len(checked(by, here, here, measured=here)) == 2
    with pytest.raises(ChunkRefused, match=r'z is 0.05, outside \[0.1, 0.9\]'):
        checked(by, here, low, measured=here)
    with pytest.raises(ChunkRefused, match=r'y makes a step of 1\.57'):
        checked(by, here, turned, measured=here)
    with pytest.raises(ChunkRefused, match='quaternion of length 2'):
        checked(by, [*here[:6], 2.0], measured=here)


class Arm:
    """A measured state that a test moves."""

    def __init__(self) -> None:
        self.place = np.zeros(2)

    def __call__(self, observation: Any) -> dict[str, Any]:
        return {'arm': self.place}


def tracked(uplink: HandUplink, arm: Arm) -> ChunkPlayer:
    return ChunkPlayer(
        uplink,
        asking=Drain(),
        handoff=ArriveAtStart(),
        measured=arm,
        tracking=Tracking({'arm': np.full(2, 0.1)}, 200 * MS),
    )


def test_an_arm_that_does_not_follow_for_long_stops_the_play_and_drops_the_plan() -> None:
    arm = Arm()
    player = tracked(HandUplink([Chunk.at_rate(rows(*[np.array([0.3, 0.0])] * 9), 10)]), arm)
    sent = [player({}, t * 100 * MS)[0] for t in range(3)]
    assert all(sent)
    assert player.finished is None
    assert player({}, 300 * MS)[0] == {}
    assert player.finished is not None
    assert 'arm[0] is 0.3 from its command, beyond 0.1 for 0.2 s' in player.finished
    assert player.statistics.dropped == {'tracking': 6}


def test_an_arm_that_catches_up_in_time_goes_on() -> None:
    arm = Arm()
    player = tracked(HandUplink([Chunk.at_rate(rows(*[np.array([0.3, 0.0])] * 9), 10)]), arm)
    for t in range(9):
        arm.place = np.array([0.3 if t % 2 else 0.0, 0.0])
        assert player({}, t * 100 * MS)[0]
    assert player.finished is None


def aged(uplink: HandUplink, **bounds: int) -> ChunkPlayer:
    expiry = Expiry(**bounds, age_of=lambda observation, t: observation['age'])
    return ChunkPlayer(uplink, asking=Drain(), handoff=ArriveAtStart(), expiry=expiry)


def test_an_observation_too_old_is_not_asked_about() -> None:
    uplink = HandUplink()
    player = aged(uplink, request_ns=50 * MS)
    assert player({'age': 51 * MS}, 0)[1] == POLL_NS
    assert uplink.asks == []
    assert player.statistics.expired_observations == 1
    player({'age': 50 * MS}, POLL_NS)
    assert len(uplink.asks) == 1


def test_a_chunk_whose_observation_is_too_old_at_arrival_is_dropped_and_counted() -> None:
    uplink = HandUplink()
    player = aged(uplink, arrival_ns=100 * MS)
    player({'age': 20 * MS}, 0)
    uplink.answers[0].give(Chunk.at_rate(rows(1, 2), 10))
    assert player({'age': 0}, 81 * MS)[0] == {}
    assert player.statistics.dropped == {'expired': 2}
    player({'age': 20 * MS}, 91 * MS)
    uplink.answers[1].give(Chunk.at_rate(rows(1, 2), 10))
    assert player({'age': 0}, 171 * MS)[0] == {'arm': 1}

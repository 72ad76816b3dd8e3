"""What a header stamp is worth: one that stands, falls behind, or is of a clock that was set."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from seq_harness.inputs import Inputs, Verdict
from support.robots import Bench, joint_state, MS, S, settings_of

T0 = 100 * S


class Sensor:
    """Joint states that come every 50 ms, under a clock that a test holds."""

    def __init__(self, **changes: Any) -> None:
        self.inputs = Inputs(settings_of(**changes).inputs)
        self.now = T0
        self.verdicts: list[Verdict] = []
        self.reason = ''

    def put(self, stamp_ns: int, names: tuple[str, ...] = ('j1', 'j2')) -> None:
        """Let a message come 50 ms after the last one."""
        self.now += 50 * MS
        message = joint_state([self.now / S] * len(names), stamp_ns, names)
        arrival = self.inputs.put('state', message, now_ns=self.now, ros_now_ns=self.now)
        self.verdicts.append(arrival.verdict)
        self.reason = arrival.reason

    def run(self, stamp_of: Callable[[int], int], seconds: float) -> list[bool]:
        """Send for so long; tell for each message whether the input is fresh after it."""
        told = []
        for _ in range(round(20 * seconds)):
            self.put(stamp_of(self.now + 50 * MS))
            told.append(self.fresh)
        return told

    @property
    def fresh(self) -> bool:
        snapshot = self.inputs.snapshot()
        return not self.inputs.missing(snapshot) and not self.inputs.stale(snapshot, self.now)

    @property
    def age_s(self) -> float:
        return self.inputs.age_ns(self.inputs.snapshot(), self.now) / S


def test_a_sensor_that_hangs_never_becomes_fresh_again() -> None:
    sensor = Sensor()
    assert all(sensor.run(lambda now: now, 1.0))
    fresh = sensor.run(lambda now: T0 + S, 30.0)
    assert fresh.index(False) == 10
    assert not any(fresh[10:])
    assert sensor.age_s == pytest.approx(30.0)
    # The values of a clock that ticks slowly are taken all the same.
    assert sensor.inputs.snapshot()['state'].value['j1'] == sensor.now / S


def test_no_episode_begins_or_goes_on_with_a_sensor_that_hangs() -> None:
    bench = Bench()
    bench.state()
    stamp = bench.clock.now
    for _ in range(240):
        bench.clock.now += 50 * MS
        now = bench.clock.now
        bench.inputs.put('state', joint_state([0, 0], stamp), now_ns=now, ros_now_ns=now)
    bench.harness.start()
    bench.harness.round()
    assert bench.reason.startswith('stale_input: state (the header stamp has been the same for')
    assert bench.reason.endswith('set inputs.state.stamp to arrival)')
    assert not bench.answers


def test_a_driver_that_stamps_all_alike_ends_by_name_and_with_what_to_set() -> None:
    sensor = Sensor()
    fresh = sensor.run(lambda now: T0, 2.0)
    assert fresh[:9] == [True] * 9
    assert not any(fresh[10:])
    assert sensor.verdicts[-1] is Verdict.AGEING
    assert 'set inputs.state.stamp to arrival' in sensor.reason
    arrival = Sensor(inputs__state__stamp='arrival')
    assert all(arrival.run(lambda now: T0, 2.0))


@pytest.mark.parametrize('behind_s', [4250, -37])
def test_stamps_that_are_far_off_from_the_first_count_once_one_has_advanced(
    behind_s: int,
) -> None:
    sensor = Sensor()
    assert sensor.run(lambda now: now - behind_s * S, 5.0) == [False] + [True] * 99
    assert set(sensor.verdicts) == {Verdict.RESTAMPED}
    assert sensor.age_s == 0


def test_stamps_that_are_far_off_and_stand_are_missing_by_name() -> None:
    bench = Bench()
    bench.harness.start()
    for _ in range(110):
        bench.clock.now += 50 * MS
        now = bench.clock.now
        bench.inputs.put('state', joint_state([0, 0], 7 * S), now_ns=now, ros_now_ns=now)
        bench.harness.round()
    assert bench.reason.startswith('inputs_missing: state (the header stamp has been the same for')


def test_a_single_message_with_a_stamp_that_is_far_off_is_missing_by_name() -> None:
    bench = Bench()
    bench.harness.start()
    now = bench.clock.now
    bench.inputs.put('state', joint_state([0, 0], 7 * S), now_ns=now, ros_now_ns=now)
    bench.harness.round()
    bench.clock.now += 6 * S
    bench.harness.round()
    assert bench.reason == (
        'inputs_missing: state (the header stamp of its first message is 93.0 s before now, and '
        'none after it has advanced)'
    )


def test_an_old_message_that_may_be_as_old_as_it_is_counts_at_once() -> None:
    sensor = Sensor(inputs__state__max_age_s=60.0)
    sensor.put(T0 - 20 * S)
    assert sensor.fresh
    assert sensor.age_s == pytest.approx(20.05)


def test_stamps_of_zero_are_aged_from_their_arrival() -> None:
    sensor = Sensor()
    assert all(sensor.run(lambda now: 0, 2.0))
    assert set(sensor.verdicts) == {Verdict.RESTAMPED}


def test_an_age_that_grows_without_end_stays_stale() -> None:
    """Messages wait in a queue that grows: their stamps advance at half the pace."""
    sensor = Sensor()
    sensor.put(sensor.now)
    fresh = sensor.run(lambda now: T0 + (now - T0) // 2, 60.0)
    assert not any(fresh[22:])
    assert sensor.age_s == pytest.approx(30.0, abs=0.5)
    assert 'fallen 29.' in sensor.reason


def test_what_was_held_up_and_comes_at_last_is_as_old_as_its_stamp() -> None:
    sensor = Sensor()
    assert all(sensor.run(lambda now: now, 1.0))
    sensor.now += 20 * S
    assert sensor.run(lambda now: now - 20 * S, 5.0) == [False] * 100


@pytest.mark.parametrize('by_s', [-4250, -11, 37, 4250])
def test_a_clock_that_is_set_once_is_said_and_refreshes_on(by_s: int) -> None:
    sensor = Sensor()
    assert all(sensor.run(lambda now: now - 3 * MS, 2.0))
    assert all(sensor.run(lambda now: now + by_s * S, 5.0))
    assert set(sensor.verdicts[-100:]) == {Verdict.RESTAMPED}
    assert sensor.age_s < 0.05


def test_after_its_clock_was_set_a_sensor_that_hangs_is_stale() -> None:
    sensor = Sensor()
    sensor.run(lambda now: now, 2.0)
    sensor.run(lambda now: now - 100 * S, 5.0)
    last = sensor.now - 100 * S
    assert sensor.run(lambda now: last, 5.0)[12:] == [False] * 88


def test_after_its_clock_was_set_stamps_that_fall_behind_are_stale() -> None:
    sensor = Sensor()
    sensor.run(lambda now: now, 2.0)
    sensor.run(lambda now: now - 100 * S, 5.0)
    since = sensor.now
    fresh = sensor.run(lambda now: since - 100 * S + (now - since) // 2, 10.0)
    assert not any(fresh[30:])


def test_a_clock_that_drifts_away_slowly_refreshes_on() -> None:
    """Half a percent too fast: after a minute 0.3 s ahead, where no stamp is plausible."""
    sensor = Sensor()
    assert all(sensor.run(lambda now: T0 + round((now - T0) * 1.005), 60.0))
    assert sensor.verdicts[-1] is Verdict.RESTAMPED
    assert sensor.age_s == 0


def test_frames_of_a_ring_that_come_round_and_round_refresh_nothing() -> None:
    sensor = Sensor()
    sensor.run(lambda now: now, 1.0)
    sensor.now += 60 * S
    fresh = sensor.run(lambda now: T0 + (now // (50 * MS)) % 4 * 50 * MS, 20.0)
    assert not any(fresh[2:])


def test_stamps_are_compared_with_the_last_of_the_same_joints_alone() -> None:
    """Two drivers on one topic: one with our clock, one with a clock far from it, which hangs."""
    sensor = Sensor()
    for _ in range(40):
        sensor.put(sensor.now, ('j1',))
        sensor.put(sensor.now - 4250 * S, ('j2',))
        hung = sensor.now
    assert sensor.fresh
    assert sensor.age_s == pytest.approx(0.1)
    for _ in range(40):
        sensor.put(sensor.now, ('j1',))
        sensor.put(hung - 4250 * S, ('j2',))
    assert not sensor.fresh

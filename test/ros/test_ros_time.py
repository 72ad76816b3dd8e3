"""Simulated time that has not begun, stands, is coarse or jumps; a system clock that is set."""

from __future__ import annotations

from collections.abc import Iterator
import threading

import pytest
from rclpy.clock import ROSClock
from rclpy.time import Time
from seq_harness.ros.pacing import SimulatedPacer
from seq_harness.ros.time_watch import SETTLED_NS, SimulatedWatch, SystemWatch
from support.robots import HandClock, MS, S
from support.waiting import PATIENCE_S


class Simulated:
    """A ROS clock that a test sets, and the pacer on it."""

    def __init__(self, reanchor: bool = False) -> None:
        self.clock = ROSClock()
        self.clock._set_ros_time_is_active(True)
        self.jumps: list[int] = []
        self.pacer = SimulatedPacer(self.clock, self.jumps.append, reanchor=reanchor)

    def set(self, ns: int) -> None:
        self.clock.set_ros_time_override(Time(nanoseconds=ns, clock_type=self.clock.clock_type))

    def sleeping(self, until_ns: int) -> threading.Event:
        """Sleep on another thread; the event says that the sleep has ended."""
        self.pacer.sleep_until(0, lambda due: False)  # takes a wake that came before
        ended = threading.Event()

        def sleep() -> None:
            self.pacer.sleep_until(until_ns, lambda due: False)
            ended.set()

        threading.Thread(target=sleep, daemon=True).start()
        return ended


@pytest.fixture(params=[False, True])
def simulated(request: pytest.FixtureRequest) -> Iterator[Simulated]:
    made = Simulated(request.param)
    yield made
    made.pacer.close()


def test_g16_time_reads_0_until_the_clock_begins_and_its_first_tick_is_no_jump(
    simulated: Simulated,
) -> None:
    assert simulated.pacer.now_ns() == 0
    simulated.set(1_700_000_000 * S)
    assert simulated.pacer.now_ns() == 1_700_000_000 * S
    assert simulated.jumps == []


def test_a_clock_steps_as_far_as_it_usually_does_and_not_as_it_did_once(
    simulated: Simulated,
) -> None:
    assert simulated.pacer.step_ns() == 0
    ns = 10 * S
    simulated.set(ns)
    for step in [20 * MS] * 9 + [450 * MS]:
        ns += step
        simulated.set(ns)
    assert simulated.pacer.step_ns() == 20 * MS, 'one leap may be a freeze of ours'
    for _ in range(8):
        ns += 200 * MS
        simulated.set(ns)
    assert simulated.pacer.step_ns() == 200 * MS
    assert simulated.jumps == []


def test_a_tick_ends_the_sleep_whose_instant_it_reaches(simulated: Simulated) -> None:
    simulated.set(10 * S)
    ended = simulated.sleeping(10 * S + 30 * MS)
    simulated.set(10 * S + 20 * MS)
    assert not ended.wait(0.05)
    simulated.set(10 * S + 40 * MS)
    assert ended.wait(PATIENCE_S)


def test_a_wake_ends_a_sleep_while_the_clock_stands(simulated: Simulated) -> None:
    simulated.set(10 * S)
    ended = simulated.sleeping(11 * S)
    simulated.pacer.wake()
    assert ended.wait(PATIENCE_S)


@pytest.mark.parametrize('to_s', [2, 100])
def test_g17_a_jump_either_way_is_told_and_ends_the_sleep(simulated: Simulated, to_s: int) -> None:
    simulated.set(10 * S)
    ended = simulated.sleeping(200 * S)
    simulated.set(to_s * S)
    assert ended.wait(PATIENCE_S)
    assert simulated.jumps == [(to_s - 10) * S]


@pytest.mark.parametrize('to_s', [2, 100])
def test_g17_reanchored_playback_goes_on_as_if_no_time_had_passed(to_s: int) -> None:
    simulated = Simulated(reanchor=True)
    simulated.set(10 * S)
    simulated.set(to_s * S)
    assert simulated.pacer.now_ns() == 10 * S
    simulated.set(to_s * S + 30 * MS)
    assert simulated.pacer.now_ns() == 10 * S + 30 * MS
    simulated.pacer.close()


def test_the_largest_tick_is_told_once(simulated: Simulated) -> None:
    for ms in (0, 5, 105, 110):
        simulated.set(10 * S + ms * MS)
    assert simulated.pacer.take_largest_tick_ns() == 100 * MS
    assert simulated.pacer.take_largest_tick_ns() == 0


class Watched:
    """A watch of a simulated clock, on steady time that a test moves."""

    def __init__(self) -> None:
        self.ros, self.tick, self.steady = 0, 0, HandClock()
        self.watch = SimulatedWatch(lambda: self.ros, lambda: self.tick, self.steady.now_ns)

    def said(self) -> str:
        return self.watch.look(50 * MS)


def test_a_clock_that_has_not_come_stands_or_is_coarse_is_said_and_recovers() -> None:
    watched = Watched()
    assert 'no /clock has come yet' in watched.said()
    watched.ros = 5 * S
    assert watched.said() == ''
    watched.steady.now += 1100 * MS
    assert 'stands' in watched.said()
    watched.ros += 100 * MS
    watched.tick = 100 * MS
    assert '100.0 ms' in watched.said()
    watched.tick = 10 * MS
    assert watched.said() == ''


@pytest.mark.parametrize('by', [5 * S, -5 * S])
def test_a_stamp_from_before_the_system_clock_was_set_is_judged_by_that_clock(by: int) -> None:
    watch, wall = SystemWatch(), 1_700_000_000 * S
    assert watch.look(10 * S, wall) == 0
    stamp = wall + 20 * MS
    now, wall_now = 10 * S + 30 * MS, wall + 30 * MS + by
    assert watch.look(now, wall_now) == by
    assert watch.ros_now_ns(stamp, now, wall_now) - stamp == 10 * MS
    after = wall_now - 4 * MS
    assert watch.ros_now_ns(after, now, wall_now) == wall_now, 'a stamp from after it is as ever'
    assert watch.ros_now_ns(None, now, wall_now) == wall_now
    later = now + SETTLED_NS + 1
    assert watch.ros_now_ns(stamp, later, wall_now) == wall_now


def test_a_system_clock_that_drifts_is_not_taken_for_one_that_was_set() -> None:
    watch = SystemWatch()
    assert [watch.look(i * S, i * S + i * MS) for i in range(100)] == [0] * 100

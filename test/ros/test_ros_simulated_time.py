"""A harness on /clock: it waits for time, plays by it, and says when it goes back."""

from __future__ import annotations

from lifecycle_msgs.msg import Transition
from rosgraph_msgs.msg import Clock
from support.composing import Arm, Caller, Composition, keys, levels, values

STEP_S = 0.01
OK, WARN = 0, 1


class Time:
    """Publishes /clock for a test, as fast as the test spins."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._publisher = caller.node.create_publisher(Clock, '/clock', 10)
        self.now_s = 0.0
        self.step_s = STEP_S

    def tick(self) -> None:
        self.now_s += self.step_s
        message = Clock()
        message.clock.sec = int(self.now_s)
        message.clock.nanosec = round((self.now_s - int(self.now_s)) * 1e9)
        self._publisher.publish(message)

    def until(self, condition: object, what: str) -> None:
        """Let time pass until something holds."""

        def passed() -> bool:
            self.tick()
            return bool(condition())  # type: ignore[operator]

        self._caller.until(passed, what)


def bring_up(composed: Composition, caller: Caller, **changes: str) -> Arm:
    arm = composed.arm(simulated=True)
    composed.harness(use_sim_time=True, **changes)
    composed.spin()
    assert caller.change('/harness', Transition.TRANSITION_CONFIGURE)
    assert caller.change('/harness', Transition.TRANSITION_ACTIVATE)
    return arm


def test_g16_nothing_starts_before_the_clock_and_the_asker_is_told(
    composed: Composition, caller: Caller
) -> None:
    arm = bring_up(composed, caller)
    caller.until(lambda: 'fault.clock' in keys(arm.statuses, 'inputs'), 'the warning')
    answer = caller.trigger('/harness/start')
    assert (answer.success, 'no /clock has come yet' in answer.message) == (True, True)
    assert arm.commands == []
    time = Time(caller)
    time.now_s = 1000.0
    time.until(lambda: len(arm.commands) > 3, 'setpoints once time passes')
    time.until(lambda: 'fault.clock' not in keys(arm.statuses, 'inputs'), 'the recovery')
    assert levels(arm.statuses)['inputs'] == OK


def test_g18_playback_stands_while_the_clock_stands_and_a_stop_ends_it_all_the_same(
    composed: Composition, caller: Caller
) -> None:
    arm = bring_up(composed, caller)
    time = Time(caller)
    time.now_s = 1000.0
    time.until(lambda: caller.trigger('/harness/start').success, 'a start')
    time.until(lambda: len(arm.commands) > 3, 'setpoints')
    caller.until(lambda: 'fault.clock' in keys(arm.statuses, 'inputs'), 'that it stands')
    count = len(arm.commands)
    assert caller.trigger('/harness/stop').success
    caller.until(lambda: arm.episode.get('reason') == 'stop', 'the end')
    assert len(arm.commands) == count, 'nothing went out while no time passed'


def test_g18_a_clock_that_ticks_more_slowly_than_rows_come_is_said_and_recovers(
    composed: Composition, caller: Caller
) -> None:
    arm = bring_up(composed, caller)
    time = Time(caller)
    time.now_s = 1000.0
    time.until(lambda: caller.trigger('/harness/start').success, 'a start')
    time.until(lambda: len(arm.commands) > 3, 'setpoints')
    time.step_s = 0.07
    said = lambda: values(arm.statuses, 'inputs').get('fault.clock', '')  # noqa: E731
    time.until(lambda: '/clock ticks every 70.0 ms and rows come every 50.0 ms' in said(), 'it')
    assert levels(arm.statuses)['inputs'] == WARN
    time.step_s = STEP_S
    time.until(lambda: not said(), 'the recovery')
    assert arm.episode['state'] == 'running'


def test_g17_a_clock_that_goes_back_ends_the_episode_by_name(
    composed: Composition, caller: Caller
) -> None:
    arm = bring_up(composed, caller)
    time = Time(caller)
    time.now_s = 1000.0
    time.until(lambda: caller.trigger('/harness/start').success, 'a start')
    time.until(lambda: len(arm.commands) > 3, 'setpoints')
    time.now_s = 500.0
    time.until(lambda: arm.episode.get('reason') == 'time_went_back', 'the end')
    time.until(lambda: caller.trigger('/harness/start').success, 'another start')
    count = len(arm.commands)
    time.until(lambda: len(arm.commands) > count + 3, 'setpoints after it')


def test_g17_a_bag_that_loops_is_played_on_where_that_is_configured(
    composed: Composition, caller: Caller
) -> None:
    arm = bring_up(composed, caller, on_time_jump='reanchor')
    time = Time(caller)
    time.now_s = 1000.0
    time.until(lambda: caller.trigger('/harness/start').success, 'a start')
    for _ in range(3):
        count = len(arm.commands)
        time.until(lambda count=count: len(arm.commands) > count + 3, 'setpoints')
        time.now_s = 1000.0
    count = len(arm.commands)
    time.until(lambda: len(arm.commands) > count + 3, 'setpoints after the last loop')
    assert arm.episode['state'] == 'running'

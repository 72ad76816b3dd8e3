"""The goals of a gripper: one under way, the newest waits, and every one can be cancelled."""

from __future__ import annotations

import pytest
from seq_harness.ros.goals import ACCEPTED_WITHIN_NS, End, ENDS_WITHIN_NS, Goal, Goals, RETRY_NS

CHANGE = 0.01
MS = 1_000_000


class Gripper:
    """A server that notes what it is told, and the goals that are sent to it."""

    def __init__(self) -> None:
        self.sent: list[Goal] = []
        self.cancelled: list[float] = []
        self.told = ''
        self.is_there = True
        self.now_ns = 0
        self.goals = Goals(self, CHANGE, 'hand/gripper_cmd', self.tell, lambda: self.now_ns)

    def is_ready(self) -> bool:
        """Tell whether it is there."""
        return self.is_there

    def send(self, goal: Goal) -> None:
        """Take a goal."""
        self.sent.append(goal)

    def cancel(self, goal: Goal) -> None:
        """Note what is to end."""
        self.cancelled.append(goal.values[0])

    def tell(self, text: str) -> None:
        """Note the newest of what is told."""
        self.told = text

    def want(self, value: float) -> None:
        """Command a value, as a setpoint does."""
        self.goals.want(f'to {value}', [value])
        self.goals.look()

    def later(self, by_ns: int) -> None:
        """Let time pass; nothing is commanded."""
        self.now_ns += by_ns
        self.goals.look()

    def begun(self, value: float) -> Goal:
        """Command a value, and accept the goal of it."""
        self.want(value)
        self.goals.accepted(self.sent[-1])
        return self.sent[-1]

    @property
    def values(self) -> list[float]:
        """Return where the goals led that were sent."""
        return [goal.values[0] for goal in self.sent]


@pytest.fixture
def gripper() -> Gripper:
    return Gripper()


def test_a_value_is_a_goal_once_it_is_far_enough_from_the_last(gripper: Gripper) -> None:
    for value in (0.5, 0.5, 0.5 + CHANGE / 2, 0.5 - CHANGE / 2):
        gripper.want(value)
    assert (gripper.values, gripper.sent[0].message) == ([0.5], 'to 0.5')
    gripper.goals.accepted(gripper.sent[0])
    gripper.goals.ended(gripper.sent[0], End.REACHED)
    gripper.want(0.5 + CHANGE / 2)
    assert gripper.values == [0.5]
    gripper.want(0.5 + 2 * CHANGE)
    assert gripper.values == [0.5, 0.5 + 2 * CHANGE]


def test_g56_one_slow_closing_is_one_goal_and_only_the_newest_value_waits(
    gripper: Gripper,
) -> None:
    first = gripper.begun(0.0)
    for step in range(1, 21):
        gripper.want(step / 20)
    assert (gripper.values, gripper.cancelled) == ([0.0], [0.0])
    gripper.goals.ended(first, End.CANCELED)
    assert gripper.values == [0.0, 1.0]
    assert gripper.goals.counts == {'sent': 2, 'accepted': 1, 'preempted': 1}
    assert gripper.told == ''


def test_g56_a_goal_that_does_not_end_holds_up_the_next_for_half_a_second(
    gripper: Gripper,
) -> None:
    gripper.begun(0.0)
    gripper.want(1.0)
    gripper.later(ENDS_WITHIN_NS - MS)
    assert gripper.values == [0.0]
    gripper.later(MS)
    assert gripper.values == [0.0, 1.0]
    assert 'hand/gripper_cmd did not end the goal [0.0] within 0.5 s' in gripper.told


def test_a_value_that_is_wanted_again_is_sent_again_after_its_goal_was_cancelled(
    gripper: Gripper,
) -> None:
    first = gripper.begun(0.2)
    gripper.want(0.9)
    gripper.want(0.2)
    assert gripper.values == [0.2]
    gripper.goals.ended(first, End.CANCELED)
    assert gripper.values == [0.2, 0.2]


def test_a_goal_that_was_not_accepted_yet_is_cancelled_as_soon_as_it_is(gripper: Gripper) -> None:
    gripper.want(0.1)
    gripper.want(0.9)
    assert gripper.cancelled == []
    gripper.goals.accepted(gripper.sent[0])
    assert (gripper.values, gripper.cancelled) == ([0.1], [0.1])
    gripper.goals.ended(gripper.sent[0], End.CANCELED)
    assert gripper.values == [0.1, 0.9]


def test_g56_halt_cancels_all_that_were_sent_and_forgets_what_waits(gripper: Gripper) -> None:
    first = gripper.begun(0.0)
    gripper.want(0.5)
    gripper.later(ENDS_WITHIN_NS)
    second = gripper.sent[-1]
    gripper.goals.accepted(second)
    gripper.want(1.0)
    gripper.later(ENDS_WITHIN_NS)
    third = gripper.sent[-1]
    gripper.cancelled.clear()
    gripper.goals.halt()
    assert gripper.cancelled == [0.0, 0.5]
    gripper.goals.accepted(third)
    assert gripper.cancelled == [0.0, 0.5, 1.0]
    for goal in (first, second, third):
        gripper.goals.ended(goal, End.CANCELED)
    gripper.later(ENDS_WITHIN_NS)
    assert gripper.values == [0.0, 0.5, 1.0]


def test_after_a_halt_the_same_value_is_a_goal_once_the_last_has_ended(gripper: Gripper) -> None:
    first = gripper.begun(0.3)
    gripper.goals.halt()
    gripper.want(0.3)
    assert gripper.values == [0.3]
    gripper.goals.ended(first, End.CANCELED)
    assert gripper.values == [0.3, 0.3]
    assert gripper.goals.counts['canceled'] == 1


def test_a_server_that_takes_no_goal_beside_one_that_it_keeps_is_waited_for(
    gripper: Gripper,
) -> None:
    first = gripper.begun(0.0)
    gripper.want(0.5)
    gripper.later(ENDS_WITHIN_NS)
    gripper.goals.rejected(gripper.sent[-1])
    assert 'goals wait until it ends' in gripper.told
    for value in (0.6, 0.7):
        gripper.want(value)
        gripper.later(ENDS_WITHIN_NS)
    assert gripper.values == [0.0, 0.5]
    gripper.goals.ended(first, End.REACHED)
    assert gripper.values == [0.0, 0.5, 0.7]


def test_a_server_that_may_have_been_started_anew_is_asked_again(gripper: Gripper) -> None:
    gripper.begun(0.0)
    gripper.want(0.5)
    gripper.later(ENDS_WITHIN_NS)
    gripper.goals.rejected(gripper.sent[-1])
    gripper.later(RETRY_NS)
    assert gripper.values == [0.0, 0.5, 0.5]


def test_a_rejected_goal_is_told_and_not_repeated_until_the_value_changes(
    gripper: Gripper,
) -> None:
    gripper.want(0.4)
    gripper.goals.rejected(gripper.sent[0])
    assert 'rejected the goal [0.4]' in gripper.told
    gripper.want(0.4)
    assert gripper.values == [0.4]
    gripper.want(0.6)
    assert gripper.values == [0.4, 0.6]


def test_a_goal_that_is_not_answered_is_given_up_and_cancelled_should_it_be_accepted(
    gripper: Gripper,
) -> None:
    gripper.want(0.4)
    gripper.later(ACCEPTED_WITHIN_NS)
    assert gripper.values == [0.4]
    gripper.later(MS)
    assert 'did not answer a goal within 1 s' in gripper.told
    assert gripper.values == [0.4, 0.4]
    gripper.goals.accepted(gripper.sent[0])
    assert gripper.cancelled == [0.4]


def test_without_a_server_a_value_waits_and_is_told(gripper: Gripper) -> None:
    gripper.is_there = False
    gripper.want(0.4)
    assert gripper.values == []
    assert 'hand/gripper_cmd is not there: start it' in gripper.told
    gripper.is_there = True
    gripper.later(0)
    assert gripper.values == [0.4]


@pytest.mark.parametrize(
    ('end', 'told'),
    [(End.REACHED, ''), (End.STALLED, ''), (End.ABORTED, 'aborted'), (End.CANCELED, 'before')],
)
def test_what_became_of_the_goal_under_way_is_counted_and_told(
    gripper: Gripper, end: End, told: str
) -> None:
    goal = gripper.begun(0.4)
    gripper.told = 'before'
    gripper.goals.ended(goal, end)
    assert gripper.goals.counts[end.value] == 1
    assert told in gripper.told
    assert bool(told) is bool(gripper.told)

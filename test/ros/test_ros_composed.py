"""Harness nodes in an executor that is not theirs: several, beside others, and managed."""

from __future__ import annotations

import os
import signal
import sys

from lifecycle_msgs.msg import Transition
import pytest
from std_msgs.msg import Bool, Float64MultiArray
from support.composing import Caller, Composition, keys, levels
from support.forms import REFUSED
from support.waiting import PATIENCE_S, wait_for

CONFIGURE, ACTIVATE = Transition.TRANSITION_CONFIGURE, Transition.TRANSITION_ACTIVATE
DEACTIVATE, CLEANUP = Transition.TRANSITION_DEACTIVATE, Transition.TRANSITION_CLEANUP
OK, WARN, ERROR = 0, 1, 2


SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def streams_of_this_process() -> list[object]:
    return [(os.fstat(fd).st_ino, os.get_blocking(fd)) for fd in (1, 2)]


def bring_up(caller: Caller, harness: str) -> None:
    assert caller.change(harness, CONFIGURE)
    assert caller.change(harness, ACTIVATE)


def test_two_harnesses_in_namespaces_drive_their_own_arms_in_one_executor(
    composed: Composition, caller: Caller
) -> None:
    handlers = [signal.getsignal(number) for number in SIGNALS]
    interval, streams = sys.getswitchinterval(), streams_of_this_process()
    left, right = composed.arm('left'), composed.arm('right')
    composed.harness('left')
    composed.harness('right')
    composed.spin()
    for name in ('left', 'right'):
        bring_up(caller, f'/{name}/harness')
    assert caller.trigger('/left/harness/start').success
    caller.until(lambda: len(left.commands) > 3, 'setpoints of the left arm')
    assert right.commands == []
    assert caller.trigger('/right/harness/start').success
    caller.until(lambda: len(right.commands) > 3, 'setpoints of the right arm')
    assert caller.trigger('/left/harness/stop').success
    caller.until(lambda: left.episode.get('reason') == 'stop', 'the end of the left episode')
    assert right.episode['state'] == 'running'
    assert [signal.getsignal(number) for number in SIGNALS] == handlers
    assert (sys.getswitchinterval(), streams_of_this_process()) == (interval, streams)


def test_the_answer_to_a_start_says_that_nothing_watches_over_the_arm(
    composed: Composition, caller: Caller
) -> None:
    composed.arm()
    composed.harness(channels__arm__max_tracking_error=0.0)
    composed.spin()
    bring_up(caller, '/harness')
    answer = caller.trigger('/harness/start')
    assert answer.success
    assert answer.message.startswith('accepted, but channels.arm has no max_tracking_error')


def test_transitions_that_are_not_possible_are_answered_and_the_executor_goes_on(
    composed: Composition, caller: Caller
) -> None:
    arm = composed.arm()
    composed.harness()
    composed.spin()
    for transition in (ACTIVATE, DEACTIVATE, CLEANUP, 250):
        assert not caller.change('/harness', transition)
    bring_up(caller, '/harness')
    assert not caller.change('/harness', CONFIGURE)
    assert caller.trigger('/harness/start').success
    caller.until(lambda: len(arm.commands) > 3, 'setpoints')
    assert composed.failure == []


def test_deactivate_stops_now_and_cleanup_lets_it_be_configured_again(
    composed: Composition, caller: Caller
) -> None:
    arm = composed.arm()
    composed.harness()
    composed.spin()
    for _ in range(2):
        arm.commands.clear()
        bring_up(caller, '/harness')
        assert caller.trigger('/harness/start').success
        caller.until(lambda: len(arm.commands) > 3, 'setpoints')
        assert caller.change('/harness', DEACTIVATE)
        caller.until(lambda: arm.episode.get('reason') == 'deactivated', 'the end')
        refused = caller.trigger('/harness/start')
        assert (refused.success, 'activate' in refused.message) == (False, True)
        assert caller.change('/harness', CLEANUP)


def test_a_second_start_is_refused_to_its_asker(composed: Composition, caller: Caller) -> None:
    composed.arm()
    composed.harness()
    composed.spin()
    bring_up(caller, '/harness')
    assert caller.trigger('/harness/start').success
    refused = caller.trigger('/harness/start')
    assert (refused.success, 'running' in refused.message) == (False, True)


def test_a_stop_input_latches_until_it_is_reset(composed: Composition, caller: Caller) -> None:
    arm = composed.arm()
    composed.harness(stop_topic='stop')
    composed.spin()
    stop = caller.node.create_publisher(Bool, '/stop', 10)
    bring_up(caller, '/harness')
    caller.until(lambda: stop.get_subscription_count() > 1, 'the stop input')
    assert caller.trigger('/harness/start').success
    caller.until(lambda: len(arm.commands) > 3, 'setpoints')
    stop.publish(Bool(data=True))
    caller.until(
        lambda: str(arm.episode.get('reason')).startswith('stop_input'), 'the end', within_s=5.0
    )
    assert not caller.trigger('/harness/start').success
    assert not caller.trigger('/harness/reset_fault').success, 'it still says stop'
    caller.until(lambda: levels(arm.statuses).get('episode') == ERROR, 'an error')
    stop.publish(Bool(data=False))
    caller.until(lambda: caller.trigger('/harness/reset_fault').success, 'the reset')
    caller.until(lambda: levels(arm.statuses).get('episode') == OK, 'its recovery')
    assert caller.trigger('/harness/start').success


def test_letting_the_deadman_go_ends_the_episode(composed: Composition, caller: Caller) -> None:
    arm = composed.arm()
    composed.harness(deadman_topic='deadman', deadman_timeout_s=PATIENCE_S)
    composed.spin()
    deadman = caller.node.create_publisher(Bool, '/deadman', 10)
    bring_up(caller, '/harness')
    assert 'deadman' in caller.trigger('/harness/start').message
    caller.until(lambda: deadman.get_subscription_count() > 1, 'the deadman input')
    deadman.publish(Bool(data=True))
    caller.until(lambda: caller.trigger('/harness/start').success, 'a start while it is held')
    caller.until(lambda: len(arm.commands) > 3, 'setpoints')
    deadman.publish(Bool(data=False))
    caller.until(lambda: str(arm.episode.get('reason')).startswith('deadman'), 'the end')


def test_a_manual_command_passes_the_guard_while_nothing_plays(
    composed: Composition, caller: Caller
) -> None:
    arm = composed.arm()
    composed.harness(manual_commands=True)
    composed.spin()
    by_hand = caller.node.create_publisher(Float64MultiArray, '/harness/manual/arm', 1)
    bring_up(caller, '/harness')
    caller.until(lambda: by_hand.get_subscription_count() > 0, 'the manual topic')

    def moved() -> bool:
        by_hand.publish(Float64MultiArray(data=[0.05] * 6))
        return bool(arm.commands)

    caller.until(moved, 'a command that went out')
    assert arm.commands[-1] == pytest.approx([0.05] * 6)
    count = len(arm.commands)
    by_hand.publish(Float64MultiArray(data=[9.0] * 6))
    caller.until(lambda: 'manual.guard' in keys(arm.statuses, 'episode'), 'a refusal')
    assert all(command == pytest.approx([0.05] * 6) for command in arm.commands[count:])


def test_diagnostics_tell_rates_round_trips_and_recover(
    composed: Composition, caller: Caller
) -> None:
    arm = composed.arm()
    composed.harness()
    composed.spin()
    bring_up(caller, '/harness')
    assert caller.trigger('/harness/start').success
    caller.until(lambda: 'harness: setpoints' in arm.statuses, 'diagnostics')
    round_trip = [f'acts.round_trip_ms.{point}' for point in ('p50', 'p95', 'p99')]
    wanted = {
        'episode': ['rows.emitted'],
        'inputs': ['state.rate_hz', 'state.lost', 'state.lost_share'],
        'worker': [*round_trip, 'acts.handler_ms.p50', 'acts.network_share'],
        'setpoints': ['lateness_ms.p99'],
    }

    def told() -> bool:
        return all(set(of) <= set(keys(arm.statuses, part)) for part, of in wanted.items())

    caller.until(told, 'every figure')
    assert levels(arm.statuses)['inputs'] == OK
    arm.moves = False
    caller.until(lambda: levels(arm.statuses)['inputs'] == WARN, 'a warning')
    caller.until(lambda: levels(arm.statuses)['episode'] == ERROR, 'the end of the episode')
    arm.moves = True
    caller.until(lambda: levels(arm.statuses)['inputs'] == OK, 'its recovery')
    assert caller.trigger('/harness/start').success
    caller.until(lambda: levels(arm.statuses)['episode'] == OK, 'the recovery of the episode')


def test_a_node_that_was_destroyed_takes_no_more_requests(composed: Composition) -> None:
    arm = composed.arm()
    harness = composed.harness()
    composed.spin()
    composed.executor.remove_node(harness)
    composed.nodes.remove(harness)
    harness.close()
    harness.destroy_node()

    def left() -> list[str]:
        names = {name for name, _ in arm.get_service_names_and_types()}
        # rclpy itself keeps this one until the garbage collector finds the node.
        names.discard('/harness/get_type_description')
        return [name for name in names if name.startswith('/harness/')]

    wait_for(lambda: not left(), PATIENCE_S, 'that its services are gone')


@pytest.mark.parametrize('form', ['batch', *REFUSED])
def test_g51_a_policy_that_answers_otherwise_than_it_declares_does_not_configure(
    composed: Composition, caller: Caller, form: str
) -> None:
    arm = composed.arm()
    composed.harness(worker_url=f'embedded:support.forms:Form?form={form}')
    composed.spin()
    assert caller.change('/harness', CONFIGURE) is (form not in REFUSED)
    assert caller.trigger('/harness/start').success is False
    assert arm.commands == []

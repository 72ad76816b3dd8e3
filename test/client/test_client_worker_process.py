"""The client against the worker as it is shipped, in a process of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
import threading

from client.robot import Robot, Waited
from client.worker_process import check, Drive, WorkerProcess
import pytest
from seq_harness.client.runtime import Runtime
from seq_harness.client.sequence import SequencePolicy
from seq_harness.playback.uplink import StateLost, WorkerLost
from support.waiting import PATIENCE_S


@pytest.fixture
def processes() -> Iterator[Callable[[str], WorkerProcess]]:
    with ExitStack() as stack:

        def make(policy: str) -> WorkerProcess:
            process = WorkerProcess(policy)
            stack.callback(process.kill)
            return process

        yield make


Processes = Callable[[str], WorkerProcess]
Policies = Callable[..., SequencePolicy]


def test_a_policy_that_reads_every_step_reads_them_all(
    processes: Processes, policies: Policies
) -> None:
    drive = Drive(Robot(policies(processes('Every').url)))
    seen: list[int] = []
    for gap in (0, 3, 11, 1, 8, 0, 5):
        drive.between(gap)
        seen += check(drive.act(), drive.skipped)
    assert seen == [n for n in range(drive.robot.number + 1) if n not in drive.skipped]
    assert drive.robot.scope.figures().stream.resent == 0


@pytest.mark.parametrize('announced', [True, False])
def test_a_window_reads_the_real_observations_wherever_the_ask_falls(
    processes: Processes, policies: Policies, announced: bool
) -> None:
    drive = Drive(Robot(policies(processes('Window').url)))
    for gap, early in ((0, 0), (8, 0), (8, 5), (2, 0), (12, 9), (1, 0), (20, 20)):
        if announced:
            drive.robot.scope.expect(drive.robot.number + 1 + gap)
        drive.between(gap - early)
        steps = check(drive.act(), drive.skipped)
        newest = drive.robot.number
        assert steps == [
            step
            for step in (max(0, newest + offset) for offset in (-6, -3, 0))
            if step not in drive.skipped
        ]
    if announced:
        observed = drive.robot.number - 6 - len(drive.skipped)
        assert drive.robot.scope.figures().stream.posted < observed


def test_a_killed_worker_is_found_again_and_a_window_goes_on_from_what_was_kept(
    processes: Processes, policies: Policies, runtime: Runtime
) -> None:
    process = processes('Window')
    away = threading.Event()
    policy = policies(
        process.url,
        reconnect_s=PATIENCE_S,
        max_request_age_s=PATIENCE_S,
        on_state=lambda text: away.set() if 'away' in text else None,
    )
    drive = Drive(Robot(policy))
    for _ in range(3):
        drive.between(4)
        check(drive.act(), drive.skipped)
    drive.between(4)
    process.kill()
    acting = Waited(runtime, drive.act)
    assert away.wait(PATIENCE_S)
    process.start()
    read = acting.result(PATIENCE_S)
    base = read['numbers'][-1] - read['steps'][-1]
    assert base > 0
    steps = check(read, drive.skipped, base)
    newest = drive.robot.number
    assert steps == [n for n in (newest - 6, newest - 3, newest) if n not in drive.skipped]
    drive.between(5)
    check(drive.act(), drive.skipped, base)


def test_a_killed_worker_takes_the_state_of_a_fed_policy_with_it(
    processes: Processes, policies: Policies
) -> None:
    process = processes('Every')
    policy = policies(process.url, reconnect_s=PATIENCE_S, max_request_age_s=PATIENCE_S)
    drive = Drive(Robot(policy))
    drive.between(3)
    check(drive.act(), drive.skipped)
    drive.between(3)
    process.kill()
    process.start()
    with pytest.raises(StateLost):
        drive.act()
    drive.between(3)
    read = drive.act()
    assert read['acts'] == 1
    base = read['numbers'][-1] - read['steps'][-1]
    assert check(read, drive.skipped, base) == [4, 5, 6, 7, 8, 9, 10, 11]


def test_a_worker_that_is_killed_for_good_is_lost(
    processes: Processes, policies: Policies
) -> None:
    process = processes('Window')
    drive = Drive(Robot(policies(process.url, reconnect_s=0.3)))
    drive.act()
    process.kill()
    with pytest.raises(WorkerLost):
        drive.act()

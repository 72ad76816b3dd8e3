"""The steady clock of the paced thread: punctual, woken at once, prepared before its instant."""

from __future__ import annotations

import os
import sys
import threading
import time

import pytest
from seq_harness.ros.pacing import AHEAD_NS, LEAD_NS, PacedThread, QUIET_NS, SteadyPacer
from seq_harness.ros.scheduling import (
    Grant,
    KEPT_S,
    request_fifo,
    request_more,
    request_niceness,
)
from support.waiting import PATIENCE_S


@pytest.mark.parametrize('setpoint', [True, False])
def test_a_sleep_ends_at_its_instant_and_prepares_shortly_before(setpoint: bool) -> None:
    """A sleep that the system ends too late goes straight on: one of many is in time."""
    pacer = SteadyPacer()
    prepared: list[tuple[int, int]] = []
    for _ in range(100):
        instant = time.monotonic_ns() + 20_000_000

        def prepare(due: int) -> bool:
            prepared.append((due, time.monotonic_ns()))
            return setpoint

        pacer.sleep_until(instant, prepare)
        began = time.monotonic_ns()
        assert began >= instant - (AHEAD_NS if setpoint else 0)
        assert pacer.round_ns() >= instant
        pacer.await_instant(instant)
        assert time.monotonic_ns() >= instant
        if prepared:
            assert [due for due, _ in prepared] == [instant]
            assert prepared[0][1] >= instant - LEAD_NS
            return
    raise AssertionError('a hundred sleeps, and none prepared anything')


@pytest.mark.parametrize('setpoint', [True, False])
def test_the_reading_of_a_round_runs_ahead_for_a_setpoint_alone(setpoint: bool) -> None:
    pacer = SteadyPacer()
    for _ in range(5):
        before = pacer.now_ns()
        assert before <= pacer.round_ns() <= pacer.now_ns()
        pacer.sleep_until(pacer.now_ns() + 5_000_000, lambda due: setpoint)
        pacer.await_instant(pacer.round_ns())


def test_whoever_stands_aside_goes_on_once_the_instant_is_past() -> None:
    pacer = SteadyPacer()
    instants: list[int] = []
    asked: list[tuple[int, int]] = []
    ended = threading.Event()

    def pace() -> None:
        for _ in range(20):
            instants.append(time.monotonic_ns() + 20_000_000)
            pacer.sleep_until(instants[-1], lambda due: True)
            pacer.await_instant(instants[-1])
        pacer.sleep_until(0, lambda due: False)
        ended.set()

    paced = threading.Thread(target=pace)
    paced.start()
    while not ended.wait(0.0005):
        at = time.monotonic_ns()
        pacer.stand_aside()
        asked.append((at, time.monotonic_ns()))
    paced.join(PATIENCE_S)
    # The last ones to ask while it was quiet, by an instant; whoever asks just before may pass.
    near = [
        (instant, returned)
        for instant in instants
        for at, returned in asked
        if instant - QUIET_NS < at < instant
    ]
    assert near
    assert all(returned >= instant for instant, returned in near)
    assert min(returned - at for at, returned in asked) < 1_000_000


@pytest.mark.parametrize(('owns_process', 'kept_s'), [(True, KEPT_S), (False, 0.0005)])
def test_the_interpreter_is_kept_up_to_the_instant_in_a_process_of_our_own_alone(
    owns_process: bool, kept_s: float
) -> None:
    """An error of what is prepared lifts nothing for good."""
    pacer, seen = SteadyPacer(owns_process=owns_process), []

    def prepare(due: int) -> bool:
        seen.append(sys.getswitchinterval())
        raise ValueError('prepared')

    def sleep_until_prepared() -> None:
        while True:
            pacer.sleep_until(time.monotonic_ns() + 20_000_000, prepare)

    usual = sys.getswitchinterval()
    sys.setswitchinterval(0.0005)
    try:
        with pytest.raises(ValueError, match='prepared'):
            sleep_until_prepared()
        after = sys.getswitchinterval()
    finally:
        sys.setswitchinterval(usual)
    assert seen == [pytest.approx(kept_s)]
    assert after == pytest.approx(0.0005)


def test_a_wake_ends_the_sleep_and_nothing_is_prepared() -> None:
    pacer = SteadyPacer()
    pacer.wake()
    began = time.monotonic_ns()
    pacer.sleep_until(began + 10_000_000_000, lambda due: False)
    assert time.monotonic_ns() - began < 5_000_000_000


def test_a_sleep_to_an_instant_that_is_past_returns_at_once() -> None:
    pacer = SteadyPacer()
    pacer.sleep_until(0, lambda due: False)


def test_the_paced_thread_ends_after_its_round() -> None:
    rounds = threading.Semaphore(0)

    def run_round() -> int:
        rounds.release()
        return time.monotonic_ns() + 1_000_000

    paced = PacedThread(run_round, lambda due: False, SteadyPacer(), 0)
    paced.start()
    assert rounds.acquire(timeout=PATIENCE_S)
    assert rounds.acquire(timeout=PATIENCE_S)
    assert paced.close(5.0)
    assert paced.scheduling.startswith('normal')


@pytest.mark.parametrize('niceness', [0, -5])
def test_without_a_priority_the_paced_thread_asks_for_more_than_its_process(niceness: int) -> None:
    ran = threading.Event()
    found: list[int] = []

    def note() -> None:
        found.append(os.getpriority(os.PRIO_PROCESS, 0))

    def run_round() -> int:
        if not found:
            note()
            started = threading.Thread(target=note)
            started.start()
            started.join(PATIENCE_S)
            ran.set()
        return time.monotonic_ns() + 1_000_000

    usual = os.getpriority(os.PRIO_PROCESS, 0)
    paced = PacedThread(run_round, lambda due: False, SteadyPacer(), 0, niceness)
    paced.start()
    assert ran.wait(PATIENCE_S)
    assert paced.close(5.0)
    assert paced.scheduling.startswith('normal (rt_priority is 0)')
    if niceness == 0:
        assert (found, 'niceness' in paced.scheduling) == ([usual, usual], False)
    elif 'was refused' in paced.scheduling:
        assert found == [usual, usual]
    else:
        assert paced.scheduling.endswith('; niceness -15')
        assert found == [-15, 0], 'what it starts is not to hold it up'


def test_a_system_that_forbids_schedulers_ends_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object) -> None:
        raise PermissionError('no schedulers here')

    monkeypatch.setattr(os, 'sched_setscheduler', refuse)
    said: list[Grant] = []
    thread = threading.Thread(target=lambda: said.append(request_more(-15)))
    thread.start()
    thread.join(PATIENCE_S)
    assert said


def test_threads_that_a_punctual_thread_starts_do_not_inherit_its_priority() -> None:
    policies: list[int] = []
    said: list[Grant] = []

    def child() -> None:
        policies.append(os.sched_getscheduler(0))

    def punctual() -> None:
        said.append(request_fifo(5))
        started = threading.Thread(target=child)
        started.start()
        started.join(PATIENCE_S)

    thread = threading.Thread(target=punctual)
    thread.start()
    thread.join(PATIENCE_S)
    if not said[0].granted:
        pytest.skip(said[0].text)
    assert policies == [os.SCHED_OTHER]


def test_a_niceness_is_that_of_the_thread_and_of_those_it_starts_or_its_refusal_is_said() -> None:
    said: list[Grant] = []
    found: list[int] = []

    def own() -> None:
        found.append(os.getpriority(os.PRIO_PROCESS, 0))

    def favoured() -> None:
        said.append(request_niceness(-5))
        own()
        started = threading.Thread(target=own)
        started.start()
        started.join(PATIENCE_S)

    usual = os.getpriority(os.PRIO_PROCESS, 0)
    thread = threading.Thread(target=favoured)
    thread.start()
    thread.join(PATIENCE_S)
    granted, text = said[0]
    assert text == '-5' if granted else 'was refused' in text
    assert found == ([-5, -5] if granted else [usual, usual])
    assert os.getpriority(os.PRIO_PROCESS, 0) == usual

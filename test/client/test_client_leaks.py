"""What is left of an episode that ends while an act is in flight, and of connecting: nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
import gc
import os
import re
import socket
import threading
import time
from typing import Any
import weakref

from client.unanswered import Unanswered, WIRES
import numpy as np
import pytest
from seq_harness.client.cancel import Cancel
from seq_harness.client.endpoint import Endpoint
from seq_harness.client.opening import opened
from seq_harness.client.registry import policy_at
from seq_harness.client.runtime import MAX_UNREAD, Runtime
from seq_harness.client.transport import Unreachable
from seq_harness.playback.uplink import Step
from support.waiting import PATIENCE_S, wait_for

EPISODES = 100
CONNECTS = 200

Frames = list['weakref.ref[Any]']


@contextmanager
def uncollected() -> Iterator[None]:
    """Keep the collector of cycles out of the block, for it comes when it likes."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def descriptors() -> int:
    return len(os.listdir('/proc/self/fd'))


def interrupted(met: Unanswered, runtime: Runtime) -> Frames:
    """Play an episode that ends while its act is in flight; return what it saw."""
    scope = met.policy.open_episode(time.monotonic_ns)
    frames: Frames = []

    def seen(number: int) -> Step:
        step = Step(number, time.monotonic_ns(), met.observation())
        arrays = [value for value in step.observation.values() if isinstance(value, np.ndarray)]
        frames.extend(map(weakref.ref, arrays))
        return step

    scope.observe(seen(0))
    step = seen(1)
    runtime.start(lambda: scope.infer(step))
    met.await_act()
    scope.expect(9)  # which does not read the next step, so that it is kept as it is
    scope.observe(seen(2))
    scope.retire()
    runtime.retire()
    scope.close()
    met.let_go()
    assert runtime.reap(PATIENCE_S) == 0
    return frames


def alive(frames: Frames) -> int:
    return sum(frame() is not None for frame in frames)


@pytest.mark.parametrize('wire', WIRES)
def test_no_frame_and_no_descriptor_outlives_its_episode(wire: str) -> None:
    with WIRES[wire](connect_timeout_s=PATIENCE_S) as met, Runtime() as runtime, uncollected():
        met.policy.connect()
        frames = interrupted(met, runtime)
        before, threads = descriptors(), threading.active_count()
        for _ in range(EPISODES):
            frames += interrupted(met, runtime)
        wait_for(lambda: not alive(frames), PATIENCE_S, f'the end of all {len(frames)} frames')
        wait_for(lambda: descriptors() <= before, PATIENCE_S, f'{before} descriptors')
        wait_for(lambda: threading.active_count() <= threads, PATIENCE_S, f'{threads} threads')


@pytest.mark.parametrize(
    'scheme', ['ws', 'http', 'wss', 'openpi+ws', 'roboarena+ws', 'positronic+ws']
)
def test_connects_that_are_given_up_leave_no_descriptor(scheme: str) -> None:
    with socket.create_server(('127.0.0.1', 0)) as silent, Runtime() as runtime, uncollected():
        url = f'{scheme}://127.0.0.1:{silent.getsockname()[1]}'
        before, threads = descriptors(), threading.active_count()
        for _ in range(CONNECTS):
            policy = policy_at(url, connect_timeout_s=PATIENCE_S)
            runtime.start(policy.connect)
            accepted, _ = silent.accept()
            policy.close()
            accepted.close()
        wait_for(lambda: descriptors() <= before, PATIENCE_S, f'{before} descriptors')
        wait_for(lambda: threading.active_count() <= threads, PATIENCE_S, f'{threads} threads')


class Made:
    """A connection that notes its end."""

    def __init__(self) -> None:
        self.closed = threading.Event()

    def abort(self) -> None:
        """Do nothing: to end it is not to release it."""

    def close(self) -> None:
        self.closed.set()


@pytest.mark.parametrize('is_late', [True, False], ids=['after', 'as'])
def test_a_connection_that_is_made_when_nobody_waits_any_more_is_closed(is_late: bool) -> None:
    made, cancel, left = Made(), Cancel(), threading.Event()

    def make(deadline_s: float, given_up: Cancel) -> Made:
        cancel.set()
        if is_late:
            left.wait(PATIENCE_S)
        return made

    with pytest.raises(Unreachable, match='given up'):
        opened(Endpoint.read('ws://127.0.0.1:1'), make, PATIENCE_S, cancel)
    left.set()
    assert made.closed.wait(PATIENCE_S)


def test_whoever_connects_hears_at_once_that_nobody_waits_any_more() -> None:
    heard = threading.Event()

    def make(deadline_s: float, given_up: Cancel) -> Made:
        if given_up.wait(PATIENCE_S):
            heard.set()
        raise OSError('given up')

    with pytest.raises(Unreachable, match='within 0'):
        opened(Endpoint.read('ws://127.0.0.1:1'), make, 0.01, Cancel())
    assert heard.wait(PATIENCE_S)


def test_failures_that_nobody_reads_are_kept_in_bounds_and_each_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(number: int) -> None:
        raise ValueError(f'failure {number}.')

    def logged() -> list[str]:
        found = (re.search(r'failure \d+\.', record.getMessage()) for record in caplog.records)
        return [match.group() for match in found if match]

    with Runtime() as runtime:
        for number in range(2 * MAX_UNREAD):
            done = threading.Event()
            runtime.start(fail, number, on_done=done.set)
            assert done.wait(PATIENCE_S)
        assert logged() == [f'failure {number}.' for number in range(MAX_UNREAD)]
    assert logged() == [f'failure {number}.' for number in range(2 * MAX_UNREAD)]


def test_a_failure_keeps_nothing_of_what_was_worked_on() -> None:
    kept: Frames = []
    seen = [np.zeros(8)]

    def holds(closure: Callable[[], Any]) -> None:
        there = np.zeros(8)
        kept.append(weakref.ref(there))
        there[9]

    def ask() -> None:
        given = seen.pop()
        kept.append(weakref.ref(given))
        try:
            holds(lambda: given)
        except IndexError as error:
            raise ValueError('no such row') from error

    done = threading.Event()
    with Runtime() as runtime, uncollected():
        answer = runtime.start(ask, on_done=done.set)
        assert done.wait(PATIENCE_S)
        assert alive(kept) == 0
        with pytest.raises(ValueError, match='no such row'):
            answer.result()

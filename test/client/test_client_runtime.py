"""The runtime: answers at once, calls in order, nothing lost at the end."""

from collections.abc import Iterator
import contextvars
import logging
import queue
import threading
import time

import pytest
from seq_harness.client.runtime import Runtime, RuntimeClosed
from seq_harness.playback.answer import NotAnswered
from seq_harness.playback.uplink import Retired
from support.waiting import AT_ONCE_S, PATIENCE_S


@pytest.fixture
def runtime() -> Iterator[Runtime]:
    with Runtime('policy', close_within_s=PATIENCE_S) as opened:
        yield opened


def fail(message: str) -> None:
    raise ValueError(message)


def errors(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]


def test_a_started_call_is_answered_later(runtime: Runtime) -> None:
    go, done = threading.Event(), threading.Event()
    answer = runtime.start(lambda: go.wait(PATIENCE_S), on_done=done.set)
    assert not answer.done()
    with pytest.raises(NotAnswered):
        answer.result()
    go.set()
    assert done.wait(PATIENCE_S)
    assert answer.done()
    assert answer.result() is True


def test_a_failure_is_raised_with_its_own_type_and_message(runtime: Runtime) -> None:
    done = threading.Event()
    answer = runtime.start(fail, 'no grip', on_done=done.set)
    assert done.wait(PATIENCE_S)
    with pytest.raises(ValueError, match='no grip'):
        answer.result()


def test_calls_run_one_after_another_in_order(runtime: Runtime) -> None:
    order: queue.Queue[tuple[int, int]] = queue.Queue()
    done = threading.Event()
    for i in range(20):
        runtime.start(lambda i=i: order.put((i, threading.get_ident())))
    runtime.start(lambda: None, on_done=done.set)
    assert done.wait(PATIENCE_S)
    seen = [order.get_nowait() for _ in range(20)]
    assert [i for i, _ in seen] == list(range(20))
    assert len({thread for _, thread in seen}) == 1
    assert seen[0][1] != threading.get_ident()


def test_the_callback_runs_on_the_runtimes_thread_once_the_answer_is_there(
    runtime: Runtime,
) -> None:
    seen: queue.Queue[tuple[bool, str]] = queue.Queue()
    ready = threading.Event()

    def report() -> None:
        ready.wait(PATIENCE_S)
        seen.put((answer.done(), threading.current_thread().name))

    answer = runtime.start(lambda: None, on_done=report)
    ready.set()
    assert seen.get(timeout=PATIENCE_S) == (True, 'policy')


def test_a_failing_callback_does_not_stop_the_next_call(runtime: Runtime) -> None:
    done = threading.Event()
    runtime.start(lambda: None, on_done=lambda: fail('callback'))
    answer = runtime.start(lambda: 7, on_done=done.set)
    assert done.wait(PATIENCE_S)
    assert answer.result() == 7


def test_a_call_sees_a_copy_of_the_callers_context(runtime: Runtime) -> None:
    episode: contextvars.ContextVar[str] = contextvars.ContextVar('episode', default='none')
    episode.set('ep-1')
    done = threading.Event()

    def read_and_change() -> str:
        before = episode.get()
        episode.set('changed')
        return before

    answer = runtime.start(read_and_change, on_done=done.set)
    episode.set('ep-2')
    assert done.wait(PATIENCE_S)
    assert answer.result() == 'ep-1'
    assert episode.get() == 'ep-2'


def test_closing_cancels_what_is_queued_and_waits_for_what_runs() -> None:
    runtime = Runtime(close_within_s=PATIENCE_S)
    began, go = threading.Event(), threading.Event()

    def hold() -> str:
        began.set()
        go.wait(PATIENCE_S)
        return 'ran'

    running = runtime.start(hold)
    queued = runtime.start(lambda: 'never', on_done=go.set)  # its cancelling lets the other end
    assert began.wait(PATIENCE_S)
    runtime.close()
    assert running.result() == 'ran'
    with pytest.raises(RuntimeClosed):
        queued.result()


def test_closing_is_bounded_when_a_call_hangs(caplog: pytest.LogCaptureFixture) -> None:
    runtime = Runtime('hanging', close_within_s=0.05)
    began, go = threading.Event(), threading.Event()

    def hang() -> None:
        began.set()
        go.wait(PATIENCE_S)

    runtime.start(hang)
    assert began.wait(PATIENCE_S)
    before = time.monotonic()
    runtime.close()
    assert time.monotonic() - before < AT_ONCE_S
    assert any('hanging' in message and '0.1 s' in message for message in errors(caplog))
    go.set()


def test_a_start_after_closing_is_refused(runtime: Runtime) -> None:
    runtime.close()
    runtime.close()
    with pytest.raises(RuntimeClosed):
        runtime.start(lambda: None)


def test_a_failure_that_nobody_read_is_logged_at_closing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    done = threading.Event()
    with Runtime() as runtime:
        runtime.start(fail, 'unread', on_done=done.set)
        assert done.wait(PATIENCE_S)
        assert not errors(caplog)
    assert len(errors(caplog)) == 1
    assert 'ValueError: unread' in errors(caplog)[0]
    assert 'in fail' in errors(caplog)[0], 'where it was raised'


def test_a_failure_that_was_read_is_not_logged_again(caplog: pytest.LogCaptureFixture) -> None:
    done = threading.Event()
    with Runtime() as runtime:
        answer = runtime.start(fail, 'read', on_done=done.set)
        assert done.wait(PATIENCE_S)
        with pytest.raises(ValueError, match='read'):
            answer.result()
    assert not errors(caplog)


def test_retiring_frees_the_next_call_from_a_hung_one(runtime: Runtime) -> None:
    began, go, done = threading.Event(), threading.Event(), threading.Event()

    def hang() -> str:
        began.set()
        go.wait(PATIENCE_S)
        return 'late'

    hung = runtime.start(hang)
    waiting = runtime.start(lambda: 'of the episode that ended')
    assert began.wait(PATIENCE_S)
    runtime.retire()
    with pytest.raises(RuntimeClosed):
        waiting.result()
    fresh = runtime.start(lambda: 'fresh', on_done=done.set)
    assert done.wait(PATIENCE_S)
    assert fresh.result() == 'fresh'
    assert not hung.done()
    assert runtime.reap() == 1
    go.set()
    assert runtime.reap(PATIENCE_S) == 0
    assert hung.result() == 'late'


def test_closing_waits_for_a_retired_call_too() -> None:
    runtime = Runtime(close_within_s=PATIENCE_S)
    began, go = threading.Event(), threading.Event()

    def hang() -> str:
        began.set()
        go.wait(PATIENCE_S)
        return 'out'

    hung = runtime.start(hang)
    assert began.wait(PATIENCE_S)
    runtime.retire()
    runtime.start(lambda: None, on_done=go.set)
    runtime.close()
    assert hung.result() == 'out'


def test_a_call_that_ends_because_it_was_retired_is_no_failure(
    caplog: pytest.LogCaptureFixture,
) -> None:
    done = threading.Event()

    def give_up() -> None:
        raise Retired('given up')

    with Runtime() as runtime:
        runtime.start(give_up, on_done=done.set)
        assert done.wait(PATIENCE_S)
    assert not errors(caplog)

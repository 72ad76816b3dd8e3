"""Opening, closing, and the calls that are under way meanwhile, on a real runtime."""

from __future__ import annotations

from collections.abc import Iterator
import logging
from typing import Any

import pytest
from seq_harness.client.runtime import Runtime
from seq_harness.episode import LastCallCloses, Left, open_scope
from seq_harness.harness import Opened
from seq_harness.playback.session import NotASession, Observation
from seq_harness.playback.uplink import Retired, Step
from support.backends import Backend
from support.robots import Bench
from support.waiting import PATIENCE_S


@pytest.fixture
def runtime() -> Iterator[Runtime]:
    with Runtime(close_within_s=PATIENCE_S) as made:
        yield made


def test_r54_r55_r60_an_episode_closes_in_the_reverse_of_the_order_it_opened_in() -> None:
    bench = Bench()
    events: list[str] = []

    def on_open(opened: Opened) -> None:
        opened.stack.callback(events.append, 'session')

    bench.on_open = on_open
    bench.scope.retire = lambda: events.append('calls')  # type: ignore[method-assign]
    bench.scope.close = lambda: events.append('scope')  # type: ignore[method-assign]
    bench.begin()
    bench.harness.stop('stop')
    bench.harness.round()
    assert events == ['session', 'calls', 'scope']


def test_r54_finding_06_what_fails_to_open_closes_what_it_opened_and_its_asker_hears() -> None:
    bench = Bench()

    def on_open(opened: Opened) -> None:
        raise OSError('no such device')

    bench.on_open = on_open
    bench.state()
    bench.harness.start()
    bench.harness.round()
    assert bench.reason == 'exception: OSError: no such device'
    assert bench.scope.calls == ['retire', 'close']
    assert bench.harness.start().accepted


def test_r54_finding_13_what_is_no_session_closes_its_connection() -> None:
    bench = Bench()

    def on_open(opened: Opened) -> None:
        opened.session = lambda observation, t: ({}, t + 1)  # type: ignore[assignment]

    bench.on_open = on_open
    bench.begin()
    assert 'a session has __call__, cancel, close' in bench.reason
    assert bench.scope.calls == ['retire', 'close']


def test_r55_finding_07_closing_under_a_running_call_waits_for_it_to_leave(
    runtime: Runtime,
) -> None:
    backend = Backend()
    with open_scope(backend, runtime.retire) as scope:
        runtime.start(lambda: scope.infer(Step(0, 0, {})))
        assert backend.entered.wait(PATIENCE_S)
    assert backend.events == ['call', 'retire'], 'leaving waits for nothing and closes nothing'
    assert scope.reap(0) is Left.CALL_INSIDE
    backend.go.set()
    assert scope.reap(PATIENCE_S) is Left.CLOSED
    assert backend.events == ['call', 'retire', 'call left', 'close']


def test_r55_without_a_call_inside_the_backend_closes_at_once() -> None:
    backend = Backend()
    with open_scope(backend, lambda: None) as scope:
        assert scope.reap(0) is Left.CALL_INSIDE
    assert backend.events == ['retire', 'close']
    assert scope.reap(0) is Left.CLOSED
    scope.close()
    assert backend.events == ['retire', 'close'], 'closing again does nothing'


def test_r55_no_call_enters_a_scope_that_is_over() -> None:
    backend = Backend()
    scope = LastCallCloses(backend)
    scope.close()
    with pytest.raises(Retired, match='the episode has ended'):
        scope.infer(Step(0, 0, {}))
    assert backend.events == ['close']


def test_a_retired_call_leaves_and_frees_the_thread_for_the_next_within_a_second(
    runtime: Runtime,
) -> None:
    backend = Backend(heeds_retire=True)
    with open_scope(backend, runtime.retire) as scope:
        runtime.start(lambda: scope.infer(Step(0, 0, {})))
        assert backend.entered.wait(PATIENCE_S)
    assert runtime.reap(1.0) == 0
    assert backend.closed.wait(PATIENCE_S)


def test_r56_a_failure_in_retiring_still_closes_the_scope() -> None:
    backend = Backend()

    def broken() -> None:
        raise OSError('gone')

    with pytest.raises(OSError, match='gone'), open_scope(backend, broken):
        """Do nothing in it."""
    assert backend.events == ['retire', 'close']


def test_r56_the_end_of_an_episode_waits_for_no_call_and_the_next_one_reaps_it() -> None:
    reaped: list[float] = []
    still = [0]

    def reap(within_s: float) -> int:
        reaped.append(within_s)
        return still[0]

    bench = Bench(options={'reap': reap})
    bench.begin()
    assert reaped == [1.0]
    bench.harness.stop('stop')
    bench.harness.round()
    assert (bench.reason, reaped) == ('stop', [1.0])
    still[0] = 1
    bench.begin()
    assert bench.reason == 'policy_busy: 1 call(s) of the last episode still run'
    still[0] = 0
    bench.begin()
    assert bench.live


def test_r57_shutdown_waits_for_an_abandoned_call_within_its_bound(
    caplog: pytest.LogCaptureFixture,
) -> None:
    backend = Backend()
    runtime = Runtime(close_within_s=0.05)
    with open_scope(backend, runtime.retire) as scope:
        runtime.start(lambda: scope.infer(Step(0, 0, {})))
        assert backend.entered.wait(PATIENCE_S)
    with caplog.at_level(logging.ERROR):
        runtime.close()
    assert '1 call(s) of runtime still run' in caplog.text
    backend.go.set()
    assert scope.reap(PATIENCE_S) is Left.CLOSED


def test_r38_r58_a_failure_after_the_end_reaches_only_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    backend = Backend()
    backend.fails = ValueError('late and bad')
    with caplog.at_level(logging.ERROR):
        runtime = Runtime(close_within_s=PATIENCE_S)
        with open_scope(backend, runtime.retire) as scope:
            runtime.start(lambda: scope.infer(Step(0, 0, {})))
            assert backend.entered.wait(PATIENCE_S)
        backend.go.set()
        runtime.close()
    assert 'late and bad' in caplog.text


def test_a_failure_to_close_after_the_last_call_reaches_the_log(
    runtime: Runtime, caplog: pytest.LogCaptureFixture
) -> None:
    backend = Backend()
    scope = LastCallCloses(backend)

    def broken() -> None:
        raise OSError('half closed')

    backend.close = broken  # type: ignore[method-assign]
    runtime.start(lambda: scope.infer(Step(0, 0, {})))
    assert backend.entered.wait(PATIENCE_S)
    scope.close()
    with caplog.at_level(logging.ERROR):
        backend.go.set()
        assert scope.reap(PATIENCE_S) is Left.CLOSED
    assert 'half closed' in caplog.text


def test_r9_an_observation_only_policy_is_refused_before_an_episode_starts_on_it() -> None:
    bench = Bench()

    class ChunksOnly:
        def infer(self, observation: Observation) -> Any: ...

    def on_open(opened: Opened) -> None:
        opened.session = ChunksOnly()  # type: ignore[assignment]

    bench.on_open = on_open
    bench.begin()
    assert 'put a ChunkPlayer above it' in bench.reason
    assert NotASession.__name__ in bench.reason

"""Opening, closing, and the calls that are under way meanwhile, on a real runtime."""

from __future__ import annotations

from collections.abc import Iterator
import contextvars
import logging
import threading
from typing import Any

import numpy as np
import pytest
from seq_harness.client.runtime import Runtime, RuntimeClosed
from seq_harness.episode import Episode, LastCallCloses, Left, open_scope
from seq_harness.harness import Opened
from seq_harness.playback.answer import Answer, NotAnswered
from seq_harness.playback.chunk import Chunk
from seq_harness.playback.codecs import Rename, Units
from seq_harness.playback.layers import Layers
from seq_harness.playback.session import NotASession, Observation
from seq_harness.playback.uplink import Queued, Retired, Step
from support.robots import Bench, MS, S

WITHIN_S = 5.0
T0 = 100 * S


class Backend:
    """A policy's episode whose inference stays inside until a test lets it go."""

    def __init__(self, heeds_retire: bool = False) -> None:
        self.events: list[str] = []
        self.entered = threading.Event()
        self.go = threading.Event()
        self.closed = threading.Event()
        self.heeds_retire = heeds_retire
        self.fails: Exception | None = None
        self.seen: list[Any] = []

    def infer(self, step: Step, plan: Any = None) -> Any:
        self.seen.append((step, plan))
        self.events.append('call')
        self.entered.set()
        if not self.go.wait(WITHIN_S):
            raise TimeoutError('nobody let the call go')
        self.events.append('call left')
        if self.fails is not None:
            raise self.fails
        return [[0.5, 0.5]]

    def observe(self, step: Step) -> Queued:
        self.seen.append((step, None))
        return Queued.ACCEPTED

    def skip(self, number: int) -> None: ...

    def expect(self, next_ask: int) -> None: ...

    def retire(self) -> None:
        self.events.append('retire')
        if self.heeds_retire:
            self.go.set()

    def close(self) -> None:
        self.events.append('close')
        self.closed.set()


@pytest.fixture
def runtime() -> Iterator[Runtime]:
    with Runtime(close_within_s=WITHIN_S) as made:
        yield made


class Waiting:
    """Starts calls on a runtime, and can wait for the newest."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.there = threading.Event()
        self.ran_on: list[str] = []

    def __call__(self, work: Any) -> Answer[Any]:
        self.there.clear()
        return self.runtime.start(work, on_done=self.there.set)

    def wait(self) -> None:
        assert self.there.wait(WITHIN_S)


def chunk_of(answer: Any) -> Chunk | None:
    return Chunk.at_rate([{'arm': np.array(row)} for row in answer], 10)


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
        assert backend.entered.wait(WITHIN_S)
    assert backend.events == ['call', 'retire'], 'leaving waits for nothing and closes nothing'
    assert scope.reap(0) is Left.CALL_INSIDE
    backend.go.set()
    assert scope.reap(WITHIN_S) is Left.CLOSED
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
        assert backend.entered.wait(WITHIN_S)
    assert runtime.reap(1.0) == 0
    assert backend.closed.wait(1.0)


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
        assert backend.entered.wait(WITHIN_S)
    with caplog.at_level(logging.ERROR):
        runtime.close()
    assert '1 call(s) of runtime still run' in caplog.text
    backend.go.set()
    assert scope.reap(WITHIN_S) is Left.CLOSED


def test_r38_r58_a_failure_after_the_end_reaches_only_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    backend = Backend()
    backend.fails = ValueError('late and bad')
    with caplog.at_level(logging.ERROR):
        runtime = Runtime(close_within_s=WITHIN_S)
        with open_scope(backend, runtime.retire) as scope:
            runtime.start(lambda: scope.infer(Step(0, 0, {})))
            assert backend.entered.wait(WITHIN_S)
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
    assert backend.entered.wait(WITHIN_S)
    scope.close()
    with caplog.at_level(logging.ERROR):
        backend.go.set()
        assert scope.reap(WITHIN_S) is Left.CLOSED
    assert 'half closed' in caplog.text


def test_r61_an_answer_is_unread_until_it_is_there_and_done_never_blocks(
    runtime: Runtime,
) -> None:
    backend = Backend()
    start = Waiting(runtime)
    answer = start(lambda: backend.infer(Step(0, 0, {})))
    assert backend.entered.wait(WITHIN_S)
    assert not answer.done()
    with pytest.raises(NotAnswered):
        answer.result()
    backend.go.set()
    start.wait()
    assert answer.done()
    assert answer.result() == answer.result() == [[0.5, 0.5]]


def test_r62_calls_run_in_order_on_one_thread(runtime: Runtime) -> None:
    ran: list[tuple[int, str]] = []
    start = Waiting(runtime)
    for number in range(5):
        start(lambda n=number: ran.append((n, threading.current_thread().name)))
    start(lambda: None)
    start.wait()
    assert [number for number, _ in ran] == list(range(5))
    assert len({name for _, name in ran}) == 1


EPISODE: contextvars.ContextVar[str] = contextvars.ContextVar('episode', default='none')


def test_r63_a_call_runs_under_a_copy_of_its_callers_context(runtime: Runtime) -> None:
    def work() -> str:
        seen = EPISODE.get()
        EPISODE.set('changed below')
        return seen

    start = Waiting(runtime)
    EPISODE.set('seventh')
    answer = start(work)
    EPISODE.set('eighth')
    start.wait()
    assert (answer.result(), EPISODE.get()) == ('seventh', 'eighth')


def test_r66_a_call_after_closing_raises() -> None:
    runtime = Runtime()
    runtime.close()
    with pytest.raises(RuntimeClosed):
        runtime.start(lambda: None)


class _Lazy(dict[str, Any]):
    """An observation that notes on which thread it is read."""

    def __init__(self) -> None:
        super().__init__(state=np.zeros(2), front=np.zeros((4, 4, 3), np.uint8))
        self.read_on: set[str] = set()

    def __getitem__(self, key: str) -> Any:
        self.read_on.add(threading.current_thread().name)
        return super().__getitem__(key)


def test_r68_finding_05_finding_21_codecs_and_decoding_run_where_the_inference_runs(
    runtime: Runtime,
) -> None:
    decoded_on: list[str] = []

    def rows_of(answer: Any) -> Chunk | None:
        decoded_on.append(threading.current_thread().name)
        return chunk_of(answer)

    class Reading(Backend):
        def infer(self, step: Step, plan: Any = None) -> Any:
            self.image = step.observation['image']
            self.state = step.observation['state']
            return super().infer(step, plan)

    backend = Reading()
    backend.go.set()
    start = Waiting(runtime)
    layers = Layers(
        Rename(keys={'front': 'image'}), Units(['arm'], ['state'], policy='deg', robot='rad')
    )
    episode = Episode(backend, start, rows_of, 100 * MS, layers=layers)
    observation = _Lazy()
    answer = episode.ask(observation, T0)
    start.wait()
    assert answer is not None
    before = list(decoded_on)
    chunk = answer.result()
    assert decoded_on == before == ['runtime'], 'reading the result decodes nothing'
    assert observation.read_on == {'runtime'}
    assert chunk is not None
    assert chunk.rows[0].commands['arm'].tolist() == pytest.approx([0.5 * np.pi / 180] * 2)


def test_a_streamed_step_is_encoded_like_an_act_and_reads_nothing() -> None:
    backend = Backend()
    layers = Layers(Rename(keys={'front': 'image'}))
    episode = Episode(backend, lambda work: _Never(), chunk_of, 100 * MS, layers=layers)
    observation = _Lazy()
    episode.sample(observation, T0)
    step, _ = backend.seen[0]
    assert sorted(step.observation) == ['image', 'state']
    assert observation.read_on == set()


class _Never:
    def done(self) -> bool:
        return False

    def result(self) -> Any:
        raise NotAnswered


class _Ahead:
    prefix = ({'arm': np.array([np.pi, 0.0])},)
    delay_rows = 1
    executed_rows = 4


def test_a_plan_reaches_the_policy_in_its_own_columns(runtime: Runtime) -> None:
    backend = Backend()
    backend.go.set()
    start = Waiting(runtime)
    episode = Episode(
        backend,
        start,
        chunk_of,
        100 * MS,
        layers=Layers(Units(['arm'], policy='deg', robot='rad')),
        columns_of=lambda rows: np.array([row['arm'] for row in rows], np.float32),
    )
    episode.ask({}, T0, _Ahead())
    start.wait()
    _, plan = backend.seen[0]
    assert plan['prefix'].tolist() == [[180, 0]]
    assert {key: plan[key] for key in ('delay_rows', 'executed_rows')} == {
        'delay_rows': 1,
        'executed_rows': 4,
    }


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

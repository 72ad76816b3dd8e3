"""Calls on a real runtime: order, context, and where decoding runs."""

from __future__ import annotations

from collections.abc import Iterator
import contextvars
import threading
from typing import Any

import numpy as np
import pytest
from seq_harness.client.runtime import Runtime, RuntimeClosed
from seq_harness.contract import wire
from seq_harness.episode import Episode
from seq_harness.playback.answer import NotAnswered
from seq_harness.playback.chunk import Chunk
from seq_harness.playback.codecs import Units
from seq_harness.playback.layers import Layers, PREFIX
from seq_harness.playback.naming import Rename
from seq_harness.playback.uplink import Step
from support.backends import Backend, chunk_of, Waiting
from support.uplinks import MS, S
from support.waiting import PATIENCE_S

T0 = 100 * S


@pytest.fixture
def runtime() -> Iterator[Runtime]:
    with Runtime(close_within_s=PATIENCE_S) as made:
        yield made


def test_r61_an_answer_is_unread_until_it_is_there_and_done_never_blocks(
    runtime: Runtime,
) -> None:
    backend = Backend()
    start = Waiting(runtime)
    answer = start(lambda: backend.infer(Step(0, 0, {})))
    assert backend.entered.wait(PATIENCE_S)
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


def test_the_rows_of_a_plan_have_one_name_above_and_on_the_wire() -> None:
    assert PREFIX == wire.PLAN_PREFIX

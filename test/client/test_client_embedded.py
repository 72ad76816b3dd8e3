"""A policy in this process, under the rules of a worker far away."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
import threading
from typing import Any

import numpy as np
import pytest
from seq_harness.client.embedded import EmbeddedPolicy
from seq_harness.client.registry import policy_at
from seq_harness.contract import Actions, Observations, Stream
from seq_harness.playback.uplink import PolicyError, Queued, Retired, Step
from support.waiting import PATIENCE_S


class Windowed:
    """Reads the state of three steps, and says which it got."""

    observations = Observations({'state': Stream(at=[-4, -2, 0])})
    actions = Actions(key='actions', hz=10.0)

    def infer(self, inputs: dict[str, Any], seed: int | None = None) -> dict[str, Any]:
        """Answer one row: the states that were read."""
        states = [float(seen['state'][0]) for seen in inputs['observations']]
        return {'actions': np.array([states]), 'seed': seed}


class Broken:
    """Fails as it is loaded, or as it is asked."""

    def __init__(self, at_once: bool = False) -> None:
        if at_once:
            raise OSError('no weights')

    def infer(self, inputs: Any) -> Any:
        """Fail."""
        raise ValueError('no idea')


def _step(number: int) -> Step:
    return Step(number, number * 100, {'state': np.array([number], np.float32)})


@pytest.fixture
def windowed() -> Iterator[EmbeddedPolicy]:
    policy = EmbeddedPolicy(Windowed(), seed=7)
    policy.connect()
    yield policy
    policy.close()


def test_it_declares_what_a_worker_would(windowed: EmbeddedPolicy) -> None:
    declaration = windowed.connect()
    assert declaration.actions is not None
    assert declaration.actions.hz == 10.0
    assert declaration.columns is None


def test_it_reads_the_steps_that_it_declares_and_no_others(windowed: EmbeddedPolicy) -> None:
    scope = windowed.open_episode(lambda: 0)
    assert scope.infer(_step(0))['actions'].tolist() == [[0.0, 0.0, 0.0]]
    scope.expect(6)
    for number in range(1, 6):
        assert scope.observe(_step(number)) is Queued.ACCEPTED
    answer = scope.infer(_step(6))
    assert (answer['actions'].tolist(), answer['seed']) == ([[2.0, 4.0, 6.0]], 7)
    # Step 1 is the only one that neither this act nor a later one reads.
    assert (scope.figures().stream.posted, scope.figures().stream.skipped) == (4, 1)
    scope.close()


def test_what_is_flushed_is_not_handed_over_again(windowed: EmbeddedPolicy) -> None:
    scope = windowed.open_episode(lambda: 0)
    scope.infer(_step(0))
    scope.expect(4)
    for number in range(1, 4):
        scope.observe(_step(number))
        scope.flush()
    posted = scope.figures().stream.posted
    assert scope.infer(_step(4))['actions'].tolist() == [[0.0, 2.0, 4.0]]
    assert scope.figures().stream.posted == posted
    scope.close()


def test_a_failing_policy_is_told_by_type_and_message() -> None:
    policy = EmbeddedPolicy(Broken())
    policy.connect()
    with pytest.raises(PolicyError, match='ValueError: no idea'):
        policy.warm_up({'state': np.zeros(1)})
    policy.close()


def test_a_policy_that_does_not_load_is_told() -> None:
    policy = EmbeddedPolicy(Broken)
    policy.connect()
    policy.close()
    failing = policy_at('embedded:test_client_embedded:Broken?at_once=true')
    with pytest.raises(PolicyError, match=r'could not be loaded.*no weights'):
        failing.connect()
    failing.close()


def test_a_closed_episode_takes_no_act(windowed: EmbeddedPolicy) -> None:
    scope = windowed.open_episode(lambda: 0)
    scope.close()
    with pytest.raises(Retired):
        scope.infer(_step(0))


@pytest.mark.parametrize('text', ['embedded:', 'embedded:json', 'embedded:no.module:P'])
def test_what_names_no_policy_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match='names no policy'):
        policy_at(text)


class Late(asyncio.SelectorEventLoop):
    """A loop whose thread comes to run it only once there is work, as on a busy machine."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        super().__init__()

    def run_forever(self) -> None:
        assert self.asked.wait(PATIENCE_S)
        super().run_forever()

    # It passes on whatever its base takes.
    def call_soon_threadsafe(self, *args: Any, **options: Any) -> Any:  # type: ignore[override]
        handle = super().call_soon_threadsafe(*args, **options)
        self.asked.set()
        return handle


def test_a_policy_connects_before_the_thread_of_its_loop_has_come_to_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(asyncio, 'new_event_loop', Late)
    policy = EmbeddedPolicy(Windowed())
    policy.connect()
    assert policy.connected
    policy.close()

"""What a worker says while its policy loads, and when it cannot be loaded."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from seq_harness.contract.own_io import Actions, Observations, Stream
from seq_harness.worker.declaration import PolicyRefused
from seq_harness.worker.policy import Policy
from seq_harness.worker.running import served
from support.waiting import PATIENCE_S
from websockets.exceptions import ConnectionClosed
from worker.worker_wire import client_of


class SlowToLoad:
    """Load for as long as the test wants."""

    load_s = 120.0
    told = threading.Event()

    def __init__(self) -> None:
        self.steps = ['made']

    def load(self) -> None:
        assert self.told.wait(PATIENCE_S)
        self.steps.append('loaded')

    def warmup(self) -> None:
        self.steps.append('warm')

    def infer(self, inputs: Any) -> Any:
        return self.steps


def test_a_worker_that_loads_says_warming_and_when_it_may_be_ready() -> None:
    SlowToLoad.told.clear()
    with served(SlowToLoad) as url, client_of(url) as client:
        for method, body in (
            ('connect', {'model': 'm'}),
            ('act', {'inputs': 1}),
            ('observe', {'episode_id': 'e'}),
        ):
            answer = client.ask(method, body)
            assert (answer.status, answer.code) == (503, 'warming')
            assert answer.body['retryable'] is True
            assert 0 < answer.body['retry_after_s'] <= 1
            assert 0 < answer.body['details']['eta_s'] <= 120
        assert client.ask('ping', {}).status == 200
        SlowToLoad.told.set()
        assert client.connect().status == 200
        assert client.act(1).outputs == ['made', 'loaded', 'warm']


def test_g60_a_policy_is_loaded_warmed_up_and_asked_on_one_thread() -> None:
    class Compiled:
        def __init__(self) -> None:
            self.threads: list[int] = []

        def load(self) -> None:
            self.threads.append(threading.get_ident())

        def warmup(self) -> None:
            self.threads.append(threading.get_ident())

        def infer(self, inputs: Any) -> Any:
            self.threads.append(threading.get_ident())
            return [number - threading.get_ident() for number in self.threads]

    with served(Compiled) as url:
        for asked in range(2):
            with client_of(url) as client:
                assert client.connect().status == 200
                assert client.act(1).outputs == [0] * (3 + asked)


def test_a_policy_that_cannot_be_loaded_ends_the_worker() -> None:
    began = threading.Event()

    class Broken:
        def load(self) -> None:
            assert began.wait(PATIENCE_S)
            raise FileNotFoundError('no weights')

        def infer(self, inputs: Any) -> Any:
            return inputs

    with served(Broken) as url, client_of(url) as client:
        assert client.ask('act', {'inputs': 1}).code == 'warming'
        began.set()
        with pytest.raises(ConnectionClosed) as closed:
            client.socket.recv(PATIENCE_S)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1001


def refusal(policy: Any) -> str:
    try:
        Policy(policy).load().schedule(1024)
    except PolicyRefused as refused:
        return str(refused)
    return 'it was not refused'


class Infers:
    def infer(self, inputs: Any) -> Any:
        return inputs


def test_an_object_without_infer_is_no_policy() -> None:
    assert 'has no infer' in refusal(object())


def test_a_coroutine_is_no_infer() -> None:
    class Async:
        async def infer(self, inputs: Any) -> Any:
            return inputs

    assert 'plain function' in refusal(Async())


def test_a_window_longer_than_a_worker_keeps_is_refused() -> None:
    class Long(Infers):
        observations = Observations({'cam': Stream(at=[-1024, 0])})

    assert "'cam'" in refusal(Long())


def test_counts_in_seconds_need_a_rate() -> None:
    class Timed(Infers):
        observations = Observations({'cam': Stream(at=[-0.5, 0])}, unit='seconds')

    class Rated(Timed):
        actions = Actions(hz=10)

    assert 'rate' in refusal(Timed())
    schedule = Policy(Rated()).load().schedule(1024)
    assert schedule is not None
    assert schedule.windows == {'cam': (-5, 0)}


def test_own_inputs_and_the_robot_arm_contract_exclude_each_other() -> None:
    class Both(Infers):
        observations = Observations()
        action = {  # noqa: RUF012
            'robot': 'arm', 'action_space': 'joint_absolute', 'action_dim': 6,
            'control_frequency_hz': 20,
        }  # fmt: skip

    assert 'robot-arm contract' in refusal(Both())


@pytest.mark.parametrize(
    ('name', 'value'),
    [
        ('observations', ['cam']),
        ('observations', {'streams': {' cam': {}}}),
        ('actions', {'hz': 0}),
        ('columns', 'joint_1'),
        ('io', 'x' * 4001),
        ('episodes', 'mine'),
    ],
)
def test_a_declaration_that_is_none_is_refused_by_name(name: str, value: Any) -> None:
    policy = Infers()
    setattr(policy, name, value)
    assert name in refusal(policy)


def test_weights_named_params_are_no_declaration() -> None:
    class Weights(Infers):
        params = {'encoder': {'w': object()}}  # noqa: RUF012

    assert Policy(Weights()).load().params == {}


def test_a_class_is_made_with_its_arguments_when_it_is_loaded() -> None:
    class Made(Infers):
        def __init__(self, columns: list[str]) -> None:
            self.columns = columns

    assert Policy(Made, {'columns': ['a']}).load().columns == ['a']


def test_a_declaration_may_be_made_by_load() -> None:
    class Late(Infers):
        def load(self) -> None:
            self.observations = Observations(every=2)

    assert Policy(Late()).load().observations == Observations(every=2)
    late = Policy(Late())
    late.load()
    assert late.keeps_state

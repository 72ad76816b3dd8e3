"""What an act hands to a policy and brings back, over a real websocket."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from seq_harness.contract.episode import Episode
from seq_harness.contract.own_io import Actions, Observations, Stream
from seq_harness.contract.params import InferParam
from worker.worker_policies import Recorder, serving


def test_an_undeclared_policy_is_handed_the_inputs_as_they_are() -> None:
    with serving(Recorder()) as client:
        sent = {'state': np.arange(3, dtype=np.float32), 'prompt': 'go', 'raw': b'\x00'}
        read = client.act(sent).outputs['read']
    assert read['prompt'] == 'go'
    assert read['raw'] == b'\x00'
    np.testing.assert_array_equal(read['state'], sent['state'])
    assert read['state'].dtype == np.float32


def test_a_declared_policy_is_handed_observations_and_steps() -> None:
    with serving(Recorder(Observations({'state': Stream()}))) as client:
        read = client.act({'state': 1, 'other': 2}, episode_id='e', seq=0).outputs['read']
        alone = client.act({'state': 3}).outputs['read']
    assert read == {'observations': [{'state': 1}], 'steps': [0]}
    assert alone == {'observations': [{'state': 3}], 'steps': [0]}


def test_every_answer_names_the_instance_of_the_worker() -> None:
    with serving(Recorder()) as client:
        answers = [
            client.ask('ping', {}),
            client.connect(),
            client.act(1),
            client.observe('e', {0: 1}),
            client.ask('episode_end', {'episode_id': 'e'}),
            client.ask('act', {}),
            client.ask('nonsense', None),
        ]
    instances = {answer.body['instance'] for answer in answers}
    assert len(instances) == 1
    assert instances.pop()


def test_connect_answers_what_the_policy_declares() -> None:
    class Declared:
        io = 'text'
        observations = Observations({'cam': Stream(at=[-2, 0])})
        actions = Actions(key='actions', hz=20)
        columns = ('a', 'b')

        def __init__(self) -> None:
            self.params = {'speed': InferParam(type='float', default=1.0)}

        def infer(self, inputs: Any, *, params: Any, plan: Any) -> Any:
            return params

    with serving(Declared) as client:
        body = client.connect().body
    assert body['io'] == 'text'
    assert body['observations']['streams'] == {'cam': {'at': [-2, 0]}}
    assert body['actions'] == {'key': 'actions', 'hz': 20.0}
    assert body['columns'] == ['a', 'b']
    assert body['params'] == {'speed': {'type': 'float', 'default': 1.0}}
    assert body['rtc'] is True
    assert body['keeps_state'] is False
    assert body['max_message_bytes'] == 64 << 20
    assert 'x-seq-observe/1' in body['formats']


def test_infer_is_given_what_its_signature_names_and_nothing_else() -> None:
    class Curious:
        params = {'speed': InferParam(type='int', default=3)}  # noqa: RUF012

        def infer(
            self, inputs: Any, *, seed: Any, params: Any, episode: Episode, plan: Any
        ) -> Any:
            return {'seed': seed, 'params': params, 'id': episode.id, 'plan': plan}

    with serving(Curious()) as client:
        told = client.act(1, seed=7, params={'speed': 4}, episode_id='e', plan={'delay_rows': 2})
        left = client.act(1)
    assert told.outputs == {
        'seed': 7, 'params': {'speed': 4}, 'id': 'e', 'plan': {'delay_rows': 2}
    }  # fmt: skip
    assert left.outputs == {'seed': None, 'params': {'speed': 3}, 'id': '', 'plan': None}


def test_a_seed_that_the_policy_does_not_take_is_warned_of() -> None:
    with serving(Recorder()) as client:
        assert client.act(1, seed=7).body['warnings'] == [
            'seed was ignored: the policy takes none'
        ]


def test_a_parameter_that_is_not_declared_is_refused_before_the_policy_runs() -> None:
    policy = Recorder()
    with serving(policy) as client:
        answer = client.act(1, params={'speed': 1})
    assert (answer.status, answer.code) == (400, 'invalid_request')
    assert "['speed']" in answer.body['detail']
    assert policy.reads == []


def test_keys_of_a_later_contract_are_ignored() -> None:
    with serving(Recorder()) as client:
        assert client.act(5, model='m', novelty=[1]).outputs['read'] == 5


def test_a_version_1_body_is_read() -> None:
    with serving(Recorder()) as client:
        assert client.ask('act', {'observation': 5}).outputs['read'] == 5


def test_an_act_without_inputs_is_refused_with_a_hint() -> None:
    with serving(Recorder()) as client:
        answer = client.ask('act', {'episode_id': 'e'})
    assert (answer.status, answer.code) == (400, 'invalid_request')
    assert 'inputs' in answer.body['hint']


@pytest.mark.parametrize(
    'fields',
    [{'seq': -1}, {'seq': 'x'}, {'episode_id': ''}, {'episode_id': 'e' * 257}, {'params': 3}],
)
def test_a_wrong_field_is_refused_by_name(fields: dict[str, Any]) -> None:
    with serving(Recorder()) as client:
        answer = client.act(1, **fields)
    assert (answer.status, answer.code) == (400, 'invalid_request')
    assert next(iter(fields)) in answer.body['detail']


def test_a_policy_may_reuse_the_array_that_it_returned() -> None:
    class Reuses:
        def __init__(self) -> None:
            self.rows = np.zeros((4, 2), np.float32)

        def infer(self, inputs: Any) -> Any:
            self.rows[:] = inputs
            return {'actions': self.rows}

    with serving(Reuses()) as client:
        acts = [client.send('act', {'inputs': i}) for i in range(20)]
        for i, act in enumerate(acts):
            assert (client.receive(act).outputs['actions'] == i).all()


@pytest.mark.parametrize('error', [ValueError, StopIteration, SystemExit, KeyboardInterrupt])
def test_whatever_a_policy_raises_is_a_policy_error(error: type[BaseException]) -> None:
    class Fails:
        def infer(self, inputs: Any) -> Any:
            raise error('the reason')

    with serving(Fails()) as client:
        answer = client.act(1, request_id='r-1')
        assert (answer.status, answer.code) == (500, 'policy_error')
        told = answer.body['details']['exception']
        assert told == {'type': error.__name__, 'message': 'the reason'}
        assert answer.body['request_id'] == 'r-1'
        assert client.ask('ping', {}).status == 200


def test_an_answer_that_cannot_be_sent_is_a_policy_error_that_says_so() -> None:
    class Odd:
        def infer(self, inputs: Any) -> Any:
            return {'actions': object()}

    with serving(Odd()) as client:
        answer = client.act(1)
    assert (answer.status, answer.code) == (500, 'policy_error')
    assert 'numpy arrays' in answer.body['hint']


def test_an_embodiment_that_the_policy_does_not_drive_is_refused_at_connect() -> None:
    with serving(Recorder()) as client:
        answer = client.ask('connect', {'model': 'm', 'embodiment': 'two arms'})
    assert (answer.status, answer.code) == (400, 'invalid_request')
    assert "'two arms'" in answer.body['detail']

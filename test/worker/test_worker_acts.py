"""Acts and observations over a real websocket, the policy on its own thread."""

from __future__ import annotations

from collections.abc import Iterator
import contextlib
import threading
from typing import Any

import numpy as np
import pytest
from seq_harness.contract.episode import Episode
from seq_harness.contract.own_io import Actions, Observations, Stream
from seq_harness.contract.params import InferParam
from seq_harness.worker.limits import Limits
from seq_harness.worker.running import served
from worker.worker_wire import Client, client_of, PATIENCE_S

SHORT = Limits(stream_wait_s=0.2)


class Recorder:
    """Answer with what was read, and keep it."""

    def __init__(self, observations: Observations | None = None) -> None:
        self.observations = observations
        self.reads: list[Any] = []

    def infer(self, inputs: Any) -> Any:
        self.reads.append(inputs)
        return {'read': inputs, 'turn': len(self.reads)}


class Gate:
    """Infer for as long as the test wants."""

    def __init__(self) -> None:
        self.entered = threading.Semaphore(0)
        self.leave = threading.Semaphore(0)
        self.runs = 0

    def infer(self, inputs: Any) -> Any:
        self.runs += 1
        self.entered.release()
        assert self.leave.acquire(timeout=PATIENCE_S)
        return {'inputs': inputs, 'run': self.runs}


@contextlib.contextmanager
def serving(policy: Any, limits: Limits | None = None) -> Iterator[Client]:
    with served(policy, limits=limits) as url, client_of(url) as client:
        assert client.connect().status == 200
        yield client


def every() -> Recorder:
    return Recorder(Observations(every=1))


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


def test_a_fed_policy_reads_all_observations_since_the_last_act() -> None:
    with serving(every()) as client:
        assert client.act('o0', episode_id='e', seq=0).outputs['read']['steps'] == [0]
        assert client.observe('e', {1: 'o1', 2: 'o2'}).body['through'] == 2
        read = client.act('o3', episode_id='e', seq=3).outputs['read']
    assert read == {'observations': ['o1', 'o2', 'o3'], 'steps': [1, 2, 3]}


def test_an_act_waits_for_observations_that_are_on_their_way() -> None:
    with serving(every()) as client:
        act = client.send('act', {'inputs': 'o2', 'episode_id': 'e', 'seq': 2})
        assert client.observe('e', {0: 'o0'}).body['through'] == 0
        assert client.ask('ping', {}).body['act']['running'] is True
        assert client.observe('e', {1: 'o1'}).body['through'] == 2
        assert client.receive(act).outputs['read']['observations'] == ['o0', 'o1', 'o2']


def test_an_act_that_waits_keeps_nobody_else_waiting() -> None:
    with serving(every()) as client:
        waiting = client.send('act', {'inputs': 'o1', 'episode_id': 'e', 'seq': 1})
        assert client.act('other', episode_id='f', seq=0).status == 200
        assert client.ask('ping', {}).body['act']['running'] is True
        client.observe('e', {0: 'o0'})
        assert client.receive(waiting).outputs['read']['steps'] == [0, 1]


def test_an_act_whose_observations_do_not_come_says_from_which_on() -> None:
    with serving(every(), SHORT) as client:
        client.observe('e', {0: 'o0', 2: 'o2'})
        answer = client.act('o3', episode_id='e', seq=3, request_id='r-1')
        assert (answer.status, answer.code) == (409, 'conflict')
        assert answer.reason == 'frames_missing'
        assert answer.body['details']['from'] == 1
        client.observe('e', {1: 'o1'})
        again = client.act('o3', episode_id='e', seq=3, request_id='r-1')
    assert again.outputs['read']['steps'] == [0, 1, 2, 3]


def test_a_pick_before_the_first_observation_is_asked_for() -> None:
    window = Recorder(Observations({'cam': Stream(at=[-2, 0])}))
    with serving(window, SHORT) as client:
        client.observe('e', {5: {'cam': 5}})
        answer = client.act({'cam': 6}, episode_id='e', seq=6)
        assert answer.body['details'] == {'reason': 'frames_missing', 'from': 4}
        client.observe('e', {4: {'cam': 4}})
        read = client.act({'cam': 6}, episode_id='e', seq=6).outputs['read']
    assert read == {'observations': [{'cam': 4}, {'cam': 6}], 'steps': [4, 6]}


def test_a_skipped_observation_is_not_waited_for() -> None:
    with serving(every(), SHORT) as client:
        client.observe('e', {0: 'o0'}, skipped=[1])
        assert client.act('o2', episode_id='e', seq=2).outputs['read']['steps'] == [0, 2]


def test_the_frame_of_an_act_that_failed_is_read_by_the_next() -> None:
    class FailsOnce(Recorder):
        def infer(self, inputs: Any) -> Any:
            outputs = super().infer(inputs)
            if len(self.reads) == 1:
                raise ValueError('not yet')
            return outputs

    with serving(FailsOnce(Observations(every=1))) as client:
        failed = client.act('o0', episode_id='e', seq=0)
        assert (failed.status, failed.code) == (500, 'policy_error')
        assert client.act('o1', episode_id='e', seq=1).outputs['read']['steps'] == [0, 1]


def test_an_act_behind_one_that_was_answered_is_refused() -> None:
    with serving(every(), SHORT) as client:
        client.act('o0', episode_id='e', seq=0)
        answer = client.act('o0', episode_id='e', seq=0)
    assert (answer.status, answer.code) == (409, 'conflict')
    assert answer.reason is None


def test_a_window_is_read_across_many_acts() -> None:
    window = Recorder(Observations({'cam': Stream(at=[-3, 0]), 'state': Stream()}))
    with serving(window) as client:
        for number in range(0, 40, 4):
            between = range(max(0, number - 3), number)
            client.observe('e', {n: {'cam': n, 'state': n} for n in between})
            inputs = {'cam': number, 'state': number}
            read = client.act(inputs, episode_id='e', seq=number).outputs['read']
            earlier = max(0, number - 3)
            assert read['steps'] == [earlier, number]
            assert read['observations'][-1] == inputs
            assert read['observations'][0] == {'cam': earlier}


def test_the_same_request_id_is_answered_the_same_and_run_once() -> None:
    with serving(Recorder()) as client:
        first = client.act('a', episode_id='e', seq=0, request_id='r-1')
        again = client.act('a', episode_id='e', seq=0, request_id='r-1')
        other = client.act('b', episode_id='e', seq=1, request_id='r-2')
    assert first.body == again.body
    assert other.outputs['turn'] == 2


def test_a_request_id_is_one_of_its_episode() -> None:
    with serving(Recorder()) as client:
        client.act('a', episode_id='e', seq=0, request_id='r-1')
        assert client.act('b', episode_id='f', seq=0, request_id='r-1').outputs['turn'] == 2


def test_a_request_id_for_another_observation_is_a_conflict() -> None:
    with serving(Recorder()) as client:
        client.act('a', episode_id='e', seq=0, request_id='r-1')
        answer = client.act('b', episode_id='e', seq=1, request_id='r-1')
    assert (answer.status, answer.code) == (409, 'conflict')


def test_an_act_sent_again_while_it_runs_is_run_once() -> None:
    gate = Gate()
    with serving(gate) as client:
        body = {'inputs': 1, 'episode_id': 'e', 'seq': 0, 'request_id': 'r-1'}
        first, second = client.send('act', body), client.send('act', body)
        assert gate.entered.acquire(timeout=PATIENCE_S)
        assert client.ask('ping', {'act': 'r-1'}).body['act']['running'] is True
        gate.leave.release()
        assert client.receive(first).body == client.receive(second).body
        assert client.ask('ping', {'act': 'r-1'}).body['act'] == {
            'running': False,
            'answered': True,
        }
    assert gate.runs == 1


def test_an_act_sent_again_on_another_connection_is_run_once() -> None:
    gate = Gate()
    body = {'inputs': 1, 'episode_id': 'e', 'seq': 0, 'request_id': 'r-1'}
    with served(gate) as url:
        with client_of(url) as client:
            client.connect()
            client.send('act', body)
            assert gate.entered.acquire(timeout=PATIENCE_S)
        with client_of(url) as client:
            again = client.send('act', body)
            assert client.ask('ping', {}).body['act']['running'] is True
            gate.leave.release()
            assert client.receive(again).outputs['run'] == 1


def test_an_act_nobody_waits_for_any_more_is_not_begun() -> None:
    gate = Gate()
    with served(gate) as url, client_of(url) as first:
        first.connect()
        running = first.send('act', {'inputs': 'running', 'request_id': 'r-1'})
        assert gate.entered.acquire(timeout=PATIENCE_S)
        with client_of(url) as gone:
            gone.send('act', {'inputs': 'gone', 'request_id': 'r-2'})
            assert gone.ask('ping', {'act': 'r-2'}).body['act']['running'] is True
        while first.ask('ping', {'act': 'r-2'}).body['act']['running']:
            continue
        gate.leave.release(2)
        assert first.receive(running).outputs['run'] == 1
        assert first.act('next').outputs == {'inputs': 'next', 'run': 2}


def test_ping_and_observe_are_answered_while_an_inference_runs() -> None:
    gate = Gate()
    with serving(gate) as client:
        act = client.send('act', {'inputs': 1})
        assert gate.entered.acquire(timeout=PATIENCE_S)
        assert client.ask('ping', {}).body['act']['running'] is True
        assert client.observe('e', {0: 1}).body['through'] == 0
        assert client.connect().status == 200
        gate.leave.release()
        assert client.receive(act).status == 200


def test_inferences_run_one_at_a_time_in_the_order_they_came() -> None:
    gate = Gate()
    with serving(gate) as client:
        acts = [client.send('act', {'inputs': i}) for i in range(5)]
        gate.leave.release(5)
        runs = [client.receive(act).outputs['run'] for act in acts]
    assert runs == [1, 2, 3, 4, 5]


def test_an_act_reads_only_after_the_one_before_it_in_its_episode() -> None:
    class FedGate(Gate):
        observations = Observations(every=1)

    gate = FedGate()
    with serving(gate) as client:
        first = client.send('act', {'inputs': 'o0', 'episode_id': 'e', 'seq': 0})
        assert gate.entered.acquire(timeout=PATIENCE_S)
        client.observe('e', {1: 'o1'})
        second = client.send('act', {'inputs': 'o2', 'episode_id': 'e', 'seq': 2})
        for _ in range(3):  # By then the second act has been taken as far as it goes.
            client.ask('ping', {})
        gate.leave.release(2)
        assert client.receive(first).outputs['inputs']['steps'] == [0]
        assert client.receive(second).outputs['inputs']['steps'] == [1, 2]


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


def test_a_failed_act_sent_again_does_not_run_again() -> None:
    class Fails(Recorder):
        def infer(self, inputs: Any) -> Any:
            super().infer(inputs)
            raise ValueError('no')

    policy = Fails()
    with serving(policy) as client:
        first = client.act(1, request_id='r-1')
        assert client.act(1, request_id='r-1').body == first.body
    assert len(policy.reads) == 1


def test_an_answer_that_cannot_be_sent_is_a_policy_error_that_says_so() -> None:
    class Odd:
        def infer(self, inputs: Any) -> Any:
            return {'actions': object()}

    with serving(Odd()) as client:
        answer = client.act(1)
    assert (answer.status, answer.code) == (500, 'policy_error')
    assert 'numpy arrays' in answer.body['hint']


def test_an_episode_is_one_object_until_its_end() -> None:
    class Counts:
        def __init__(self) -> None:
            self.log: list[str] = []

        def episode_start(self, episode: Episode) -> None:
            self.log.append(f'start {episode.id}')

        def episode_end(self, episode: Episode) -> None:
            self.log.append(f'end {episode.id} {episode.steps}')

        def infer(self, inputs: Any, episode: Episode) -> Any:
            episode.state.setdefault('acts', []).append(inputs)
            return {'steps': episode.steps, 'acts': episode.state['acts'], 'log': self.log}

    with serving(Counts()) as client:
        assert client.connect().body['keeps_state'] is True
        client.act('a', episode_id='e', seq=0)
        second = client.act('b', episode_id='e', seq=1).outputs
        assert (second['steps'], second['acts']) == (1, ['a', 'b'])
        assert client.ask('episode_end', {'episode_id': 'e'}).body['ended'] is True
        assert client.ask('episode_end', {'episode_id': 'e'}).body['ended'] is False
        fresh = client.act('c', episode_id='e', seq=0).outputs
    assert fresh == {'steps': 0, 'acts': ['c'], 'log': ['start e', 'end e 2', 'start e']}


def test_an_act_that_waits_when_its_episode_ends_is_told() -> None:
    with serving(every()) as client:
        act = client.send('act', {'inputs': 'o2', 'episode_id': 'e', 'seq': 2})
        client.ask('episode_end', {'episode_id': 'e'})
        answer = client.receive(act)
    assert (answer.status, answer.code) == (410, 'gone')


def test_an_idle_episode_ends_and_its_policy_is_told() -> None:
    over = threading.Event()

    class Stateful:
        def infer(self, inputs: Any, episode: Episode) -> Any:
            return episode.steps

        def episode_end(self) -> None:
            over.set()

    with serving(Stateful(), Limits(episode_idle_s=0.1)) as client:
        client.act(1, episode_id='e', seq=0)
        assert over.wait(PATIENCE_S)
        lost = client.act(1, episode_id='e', seq=1)
        assert (lost.status, lost.reason) == (409, 'episode_lost')
        assert client.act(1, episode_id='e', seq=0).outputs == 0


def test_after_an_idle_end_a_policy_without_state_asks_for_its_window_at_once() -> None:
    over = threading.Event()

    class Window(Recorder):
        keeps_state = False

        def episode_end(self) -> None:
            over.set()

    window = Window(Observations({'cam': Stream(at=[-1, 0])}))
    with serving(window, Limits(episode_idle_s=0.1, stream_wait_s=60)) as client:
        client.act({'cam': 0}, episode_id='e', seq=0)
        assert over.wait(PATIENCE_S)
        missing = client.act({'cam': 2}, episode_id='e', seq=2)
        assert missing.body['details'] == {'reason': 'frames_missing', 'from': 1}
        client.observe('e', {1: {'cam': 1}})
        assert client.act({'cam': 2}, episode_id='e', seq=2).outputs['read']['steps'] == [1, 2]


def test_a_policy_with_episodes_of_its_own_serves_one_at_a_time() -> None:
    class Own:
        episodes = 'own'

        def infer(self, inputs: Any) -> Any:
            return inputs

    with serving(Own()) as client:
        client.act(1, episode_id='a', seq=0)
        busy = client.act(1, episode_id='b', seq=0)
        assert (busy.status, busy.code) == (429, 'busy')
        assert busy.body['retry_after_s'] > 0
        client.ask('episode_end', {'episode_id': 'a'})
        assert client.act(2, episode_id='b', seq=0).outputs == 2


def test_a_policy_that_observes_is_handed_what_no_act_carries_in_order() -> None:
    class Observes:
        def __init__(self) -> None:
            self.seen: list[Any] = []

        def observe(self, inputs: Any) -> None:
            self.seen.append(inputs)

        def infer(self, inputs: Any) -> Any:
            return {'seen': self.seen, 'own': inputs}

    with serving(Observes()) as client:
        client.observe('e', {1: 'o1', 0: 'o0'})
        first = client.act('o2', episode_id='e', seq=2).outputs
        client.observe('e', {3: 'o3'}, skipped=[4])
        second = client.act('o5', episode_id='e', seq=5).outputs
    assert first == {'seen': ['o0', 'o1'], 'own': 'o2'}
    assert second == {'seen': ['o0', 'o1', 'o3'], 'own': 'o5'}


def test_more_acts_than_the_worker_takes_are_busy() -> None:
    gate = Gate()
    with serving(gate, Limits(acts=2)) as client:
        acts = [client.send('act', {'inputs': i}) for i in range(2)]
        busy = client.act(3, request_id='r-1')
        assert (busy.status, busy.code) == (429, 'busy')
        gate.leave.release(3)
        assert [client.receive(act).status for act in acts] == [200, 200]
        assert client.act(3, request_id='r-1').status == 200


def test_more_requests_than_one_connection_may_have_are_busy() -> None:
    gate = Gate()
    with serving(gate, Limits(connection_requests=2)) as client:
        for i in range(2):
            client.send('act', {'inputs': i})
        assert client.act(3).code == 'busy'
        assert client.ask('ping', {}).status == 200
        gate.leave.release(2)


def test_observations_over_the_limit_are_refused_for_good() -> None:
    with serving(every(), Limits(stream_frames=2)) as client:
        client.observe('e', {0: 1, 1: 1})
        answer = client.observe('e', {2: 1})
        assert (answer.status, answer.code) == (413, 'payload_too_large')
        assert (answer.reason, answer.body['retryable']) == ('frames_over_limit', False)
        carried = client.act(1, episode_id='e', seq=2)
        assert (carried.status, carried.reason) == (413, 'frames_over_limit')
        assert client.observe('e', {}, skipped=[2]).body['through'] == 2


@pytest.mark.parametrize(
    'body', [{'frames': [{'seq': 0, 'inputs': 1}] * 3}, {'skipped': [1, 2, 3]}]
)
def test_an_over_long_post_is_refused(body: dict[str, Any]) -> None:
    with serving(every(), Limits(stream_frames=2)) as client:
        answer = client.ask('observe', {'episode_id': 'e', **body})
    assert (answer.status, answer.reason) == (413, 'frames_over_limit')


def test_an_observation_of_too_many_values_is_refused() -> None:
    with serving(every(), Limits(message_values=100)) as client:
        answer = client.observe('e', {0: list(range(101))})
    assert (answer.status, answer.code) == (400, 'invalid_request')
    assert 'arrays' in answer.body['detail']


@pytest.mark.parametrize(
    'body', [None, 3, [], {}, {'episode_id': ''}, {'episode_id': 'e', 'frames': [{'seq': -1}]}]
)
def test_a_wrong_post_is_refused_and_stores_nothing(body: Any) -> None:
    with serving(every()) as client:
        answer = client.ask('observe', body)
        assert (answer.status, answer.code) == (400, 'invalid_request')
        assert client.observe('e', {}).body['through'] == -1


def test_an_embodiment_that_the_policy_does_not_drive_is_refused_at_connect() -> None:
    with serving(Recorder()) as client:
        answer = client.ask('connect', {'model': 'm', 'embodiment': 'two arms'})
    assert (answer.status, answer.code) == (400, 'invalid_request')
    assert "'two arms'" in answer.body['detail']

"""Observations that acts read, wait for and miss, over a real websocket."""

from __future__ import annotations

from typing import Any

import pytest
from seq_harness.contract.own_io import Observations, Stream
from seq_harness.worker.limits import Limits
from support.waiting import PATIENCE_S
from worker.worker_policies import every, Gate, Recorder, serving, SHORT


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


class Observes:
    """Tells what it was handed beside an act; fails on one input."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def observe(self, inputs: Any) -> None:
        self.seen.append(inputs)

    def infer(self, inputs: Any) -> Any:
        if inputs == 'bad':
            raise ValueError('not this one')
        return {'seen': self.seen, 'own': inputs}


def test_a_policy_that_observes_is_handed_what_no_act_carries_in_order() -> None:
    with serving(Observes()) as client:
        client.observe('e', {1: 'o1', 0: 'o0'})
        first = client.act('o2', episode_id='e', seq=2).outputs
        client.observe('e', {3: 'o3'}, skipped=[4])
        second = client.act('o5', episode_id='e', seq=5).outputs
    assert first == {'seen': ['o0', 'o1'], 'own': 'o2'}
    assert second == {'seen': ['o0', 'o1', 'o3'], 'own': 'o5'}


def test_a_policy_that_observes_is_handed_what_a_failed_act_carried() -> None:
    with serving(Observes()) as client:
        client.act('o0', episode_id='e', seq=0)
        assert client.act('bad', episode_id='e', seq=1).code == 'policy_error'
        outputs = client.act('o2', episode_id='e', seq=2).outputs
    assert outputs == {'seen': ['bad'], 'own': 'o2'}


class Fails:
    """Reads its own observation alone; fails on one."""

    def infer(self, inputs: Any) -> Any:
        if inputs == 'bad':
            raise ValueError('not this one')
        return inputs


def test_the_number_of_a_failed_act_is_known_and_nothing_stands_in_for_what_it_carried() -> None:
    with serving(Fails()) as client:
        assert client.act('bad', episode_id='e', seq=0).code == 'policy_error'
        assert client.observe('e', {1: 'o1'}).body['through'] == 1
        call = {'call': 'c', 'episode_id': 'e', 'seq': 2}
        assert client.ask('act', call).outputs == 'o1'
        assert client.act('bad', episode_id='f', seq=0).code == 'policy_error'
        missing = client.ask('act', {'call': 'd', 'episode_id': 'f', 'seq': 1})
        assert (missing.code, missing.reason) == ('conflict', 'frames_missing')
        assert client.observe('f', {0: 'o0'}).body['through'] == 0
        assert client.ask('act', {'call': 'e', 'episode_id': 'f', 'seq': 1}).outputs == 'o0'


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

"""Acts that are sent again, given up, queued or too many; each runs once at the most."""

from __future__ import annotations

from typing import Any

from seq_harness.worker.limits import Limits
from seq_harness.worker.running import served
from support.waiting import PATIENCE_S
from worker.worker_policies import Gate, Recorder, serving
from worker.worker_wire import client_of


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


def test_the_end_of_an_episode_takes_back_its_acts_that_are_not_begun() -> None:
    gate = Gate()
    with serving(gate) as client:
        running = client.send('act', {'inputs': 'running'})
        assert gate.entered.acquire(timeout=PATIENCE_S)
        queued = [client.send('act', {'inputs': i, 'episode_id': 'e', 'seq': i}) for i in range(2)]
        assert client.ask('episode_end', {'episode_id': 'e'}).body['ended'] is True
        assert [client.receive(act).code for act in queued] == ['gone', 'gone']
        gate.leave.release(2)
        assert client.receive(running).outputs['run'] == 1
        assert client.act('next', episode_id='e', seq=0).outputs == {'inputs': 'next', 'run': 2}


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

"""Acts: one id, one answer, and what is done when there is none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
import threading
from typing import Any

from client.robot import Robot, Waited
from client.scripted_worker import Drop, error, Held, ScriptedWorker, Silence, Stale
import numpy as np
import pytest
from seq_harness.client.acting import ObservationTooLarge
from seq_harness.client.runtime import Runtime
from seq_harness.contract import wire
from seq_harness.contract.errors import ErrorCode
from seq_harness.contract.msgpack import MsgpackError
from seq_harness.playback.uplink import (
    ActAbandoned,
    PolicyError,
)
from support.waiting import PATIENCE_S

EVERY = {'observations': {'every': 1}}
BUSY = error(ErrorCode.BUSY, 'every place is taken', retry_after_s=0.01)
POLICY_FAILED = error(
    ErrorCode.POLICY_ERROR,
    'failed',
    details={'exception': {'type': 'ValueError', 'message': 'no grip'}},
)


def frames_missing(first: int) -> tuple[int, Mapping[str, Any]]:
    """Say that the worker lacks the observations from a number on."""
    details = {'reason': wire.FRAMES_MISSING, 'from': first}
    return error(ErrorCode.CONFLICT, 'frames are missing', details=details)


Workers = Callable[..., ScriptedWorker]
Robots = Callable[..., Robot]


def test_an_act_carries_its_observation_its_number_and_an_id(
    workers: Workers, robots: Robots
) -> None:
    worker = workers()
    robot = robots(worker)
    image = np.arange(6, dtype=np.uint8).reshape(1, 2, 3)
    robot.act({'front': image, 'prompt': 'pick'})
    body = worker.next(wire.ACT).body
    assert set(body) == {'episode_id', 'seq', 'inputs', 'request_id'}
    assert body['seq'] == 0
    assert body['inputs']['prompt'] == 'pick'
    np.testing.assert_array_equal(body['inputs']['front'], image)
    assert body['request_id'].startswith('r-')
    robot.act()
    later = worker.next(wire.ACT).body
    assert (later['seq'], later['episode_id']) == (1, body['episode_id'])
    assert later['request_id'] != body['request_id']


def test_an_act_carries_what_was_configured_and_the_plan(workers: Workers, robots: Robots) -> None:
    worker = workers({'params': {'steps': {'type': 'int', 'default': 4}}})
    robot = robots(worker, seed=7, params={'steps': 5}, embodiment='arm')
    robot.act(plan={'prefix': np.zeros((2, 6), np.float32), 'delay_rows': 2})
    body = worker.next(wire.ACT).body
    assert (body['seed'], body['params'], body['embodiment']) == (7, {'steps': 5}, 'arm')
    assert body['plan']['prefix'].shape == (2, 6)


def test_an_act_carries_only_the_keys_that_the_policy_declares(
    workers: Workers, robots: Robots
) -> None:
    worker = workers({'observations': {'streams': {'cam': {}, 'absent': {}}}})
    robots(worker).act({'cam': 1, 'other': 2})
    assert worker.next(wire.ACT).body['inputs'] == {'cam': 1}


def test_g36_the_outputs_are_arrays_that_may_be_written_to(
    workers: Workers, robots: Robots
) -> None:
    worker = workers()
    worker.script(wire.ACT, (200, {'outputs': {'actions': np.ones((2, 3), np.float32)}}))
    outputs = robots(worker).act()
    outputs['actions'][0, 0] = 5.0
    assert outputs['actions'].dtype == np.float32


def test_an_observation_is_read_on_the_runtimes_threads_only(
    workers: Workers, robots: Robots, runtime: Runtime
) -> None:
    readers: list[int] = []
    worker = workers(EVERY)
    robot = robots(worker)

    class Lazy(dict[str, Any]):
        def __getitem__(self, key: str) -> Any:
            readers.append(threading.get_ident())
            return super().__getitem__(key)

    first, second, third = (robot.step(Lazy(cam=i)) for i in range(3))
    Waited(runtime, lambda: robot.scope.infer(first)).result()
    robot.scope.observe(second)
    assert worker.next(wire.OBSERVE).body['frames'][0]['seq'] == 1
    Waited(runtime, lambda: robot.scope.infer(third)).result()
    assert len(readers) == 3
    assert threading.get_ident() not in readers


def test_an_act_that_is_lost_on_the_way_is_sent_again_under_its_id(
    workers: Workers, robots: Robots
) -> None:
    worker = workers()
    robot = robots(worker)
    worker.script(wire.ACT, Drop(), Drop())
    assert robot.act() == {'seq': 0}
    asked = worker.pending(wire.ACT)
    assert len(asked) == 3
    assert len({one.body['request_id'] for one in asked}) == 1
    assert len({one.connection for one in asked}) == 3
    acts = robot.scope.figures().acts
    assert (acts.asked, acts.answered, acts.repeated) == (1, 1, 2)
    assert robot.scope.figures().reconnects == 2


def test_an_act_is_not_sent_again_to_a_worker_that_might_run_it_twice(
    workers: Workers, robots: Robots
) -> None:
    worker = workers({'formats': []})
    robot = robots(worker)
    worker.script(wire.ACT, Drop())
    with pytest.raises(ActAbandoned, match='may have been run'):
        robot.act()
    assert robot.act() == {'seq': 1}
    assert len(worker.pending(wire.ACT)) == 2


def test_a_worker_that_says_that_it_did_not_run_an_act_is_asked_again(
    workers: Workers, robots: Robots
) -> None:
    worker = workers({'formats': []})
    robot = robots(worker)
    worker.script(wire.ACT, BUSY, error(ErrorCode.UNAVAILABLE))
    assert robot.act() == {'seq': 0}
    for unknown in (error(ErrorCode.TIMEOUT, 'still running'), (503, {}), (502, {}), (504, {})):
        worker.script(wire.ACT, unknown)
        with pytest.raises(ActAbandoned, match='may have been run'):
            robot.act()


def test_an_answer_that_does_not_come_in_time_abandons_the_act(
    workers: Workers, robots: Robots
) -> None:
    worker = workers()
    robot = robots(worker, act_timeout_s=1.0)
    worker.script(wire.ACT, Silence())
    with pytest.raises(ActAbandoned, match='no answer came within'):
        robot.act()


def test_an_act_that_does_not_run_is_sent_again_after_its_time(
    workers: Workers, robots: Robots
) -> None:
    worker = workers()
    robot = robots(worker, act_timeout_s=1.0)
    worker.script(wire.ACT, Silence())
    worker.script(wire.PING, (200, {'act': {'running': False, 'answered': True}}))
    assert robot.act() == {'seq': 0}
    asked = [worker.next(method) for method in (wire.ACT, wire.PING, wire.ACT)]
    first, about, again = (one.body for one in asked)
    assert first['request_id'] == about['act'] == again['request_id']


@pytest.mark.parametrize('act', [{'running': True, 'for_s': 1.0}, {}, {'running': 'perhaps'}])
def test_an_act_that_may_run_still_is_not_sent_again(
    workers: Workers, robots: Robots, act: dict[str, Any]
) -> None:
    worker = workers()
    robot = robots(worker, act_timeout_s=1.0)
    worker.script(wire.ACT, Silence())
    worker.script(wire.PING, (200, {'act': act}))
    with pytest.raises(ActAbandoned, match='no answer came within'):
        robot.act()
    assert len(worker.pending(wire.ACT)) == 1


def test_an_act_that_has_ended_goes_again_only_where_it_runs_once(
    workers: Workers, robots: Robots
) -> None:
    worker = workers({'formats': []})
    robot = robots(worker, act_timeout_s=1.0)
    worker.script(wire.ACT, Silence())
    worker.script(wire.PING, (200, {'act': {'running': False, 'answered': False}}))
    with pytest.raises(ActAbandoned, match='may have been run'):
        robot.act()
    assert len(worker.pending(wire.ACT)) == 1


def test_g34_a_late_answer_is_never_taken_for_another_acts(
    workers: Workers, robots: Robots
) -> None:
    worker = workers()
    robot = robots(worker, act_timeout_s=1.0)
    go = threading.Event()
    worker.script(wire.ACT, Held(go, (200, {'outputs': 'late'})))
    with pytest.raises(ActAbandoned):
        robot.act()
    go.set()
    assert robot.act() == {'seq': 1}
    worker.script(wire.ACT, Stale((200, {'outputs': 'mine'})))
    assert robot.act() == 'mine'


def test_a_busy_worker_is_asked_again_under_the_same_id(workers: Workers, robots: Robots) -> None:
    worker = workers()
    robot = robots(worker)
    worker.script(wire.ACT, BUSY, BUSY, BUSY)
    assert robot.act() == {'seq': 0}
    asked = worker.pending(wire.ACT)
    assert len(asked) == 4
    assert len({one.body['request_id'] for one in asked}) == 1
    assert len({one.connection for one in asked}) == 1


def test_an_act_is_asked_again_only_while_its_observation_is_young(
    workers: Workers, robots: Robots
) -> None:
    worker = workers(EVERY)
    robot = robots(worker, max_request_age_s=1.0)
    robot.act()
    step = robot.step({'cam': 'old'})
    worker.script(wire.ACT, BUSY)
    robot.now_ns += 1_000_000_001
    with pytest.raises(ActAbandoned, match=r'is 1\.0 s old: after 1 s it is asked anew'):
        robot.scope.infer(step)
    robot.act()
    posted = worker.next(wire.OBSERVE).body
    assert posted['frames'] == [{'seq': 1, 'inputs': {'cam': 'old'}}]


def test_a_failing_policy_is_told_by_its_own_type_and_message(
    workers: Workers, robots: Robots
) -> None:
    worker = workers()
    robot = robots(worker)
    worker.script(wire.ACT, POLICY_FAILED)
    with pytest.raises(PolicyError, match=r'^ValueError: no grip$'):
        robot.act()
    assert robot.act() == {'seq': 1}


def test_a_refusal_is_told_with_its_hint_and_not_repeated(
    workers: Workers, robots: Robots
) -> None:
    worker = workers()
    robot = robots(worker)
    worker.script(wire.ACT, error(ErrorCode.INVALID_REQUEST, 'no cam', hint='add the camera'))
    with pytest.raises(PolicyError, match=r'^invalid_request: no cam \(add the camera\)$'):
        robot.act()
    assert len(worker.pending(wire.ACT)) == 1


def test_an_answer_without_outputs_is_a_failure(workers: Workers, robots: Robots) -> None:
    worker = workers()
    robot = robots(worker)
    worker.script(wire.ACT, (200, {'perf': {}}))
    with pytest.raises(PolicyError, match='no outputs'):
        robot.act()


def test_an_observation_that_cannot_be_packed_is_its_senders_failure(
    workers: Workers, robots: Robots
) -> None:
    robot = robots(workers())
    with pytest.raises(MsgpackError):
        robot.act({'cam': object()})
    assert robot.act() == {'seq': 1}


def test_g32_an_observation_that_the_worker_would_not_take_is_refused_here(
    workers: Workers, robots: Robots
) -> None:
    worker = workers({**EVERY, 'max_message_bytes': 10_000})
    robot = robots(worker)
    with pytest.raises(ObservationTooLarge, match='step 0 takes 100'):
        robot.act({'cam': bytes(100_000)})
    assert worker.pending(wire.ACT) == []
    robot.act({'cam': 1})
    assert worker.next(wire.OBSERVE).body['skipped'] == [0]


def test_missing_frames_are_sent_again_ahead_of_the_same_act(
    workers: Workers, robots: Robots
) -> None:
    worker = workers(EVERY)
    robot = robots(worker)
    robot.act()
    worker.next(wire.ACT)
    for _ in range(3):
        robot.observe()
    worker.script(wire.ACT, frames_missing(2))
    assert robot.act() == {'seq': 4}
    request_id = worker.next(wire.ACT).body['request_id']
    resent: list[int] = []
    while (asked := worker.asked.get(timeout=PATIENCE_S)).method != wire.ACT:
        resent += [frame['seq'] for frame in asked.body.get('frames', [])]
    assert {2, 3} <= set(resent)
    assert asked.body['request_id'] == request_id
    assert robot.scope.figures().acts.resends == 1


def test_frames_that_are_missing_twice_fail_the_act(workers: Workers, robots: Robots) -> None:
    worker = workers(EVERY)
    robot = robots(worker)
    worker.script(wire.ACT, frames_missing(0), frames_missing(0))
    with pytest.raises(PolicyError, match='conflict: frames are missing'):
        robot.act()


def test_an_act_waits_for_the_skips_that_it_reads(workers: Workers, robots: Robots) -> None:
    worker = workers(EVERY)
    robot = robots(worker)
    robot.act()
    robot.number += 1
    robot.scope.skip(1)
    robot.act()
    methods: list[tuple[str, Any]] = []
    while len(methods) < 3:
        asked = worker.asked.get(timeout=PATIENCE_S)
        if asked.method in (wire.ACT, wire.OBSERVE):
            methods.append((asked.method, asked.body.get('skipped')))
    assert methods == [(wire.ACT, None), (wire.OBSERVE, [1]), (wire.ACT, None)]


def test_the_workers_warnings_are_said_once_per_kind(workers: Workers, robots: Robots) -> None:
    worker = workers()
    said: list[str] = []
    robot = robots(worker, on_state=said.append)
    for i in range(3):
        worker.script(wire.ACT, (200, {'outputs': 0, 'warnings': [f'clipped {i} values']}))
        robot.act()
    assert [text for text in said if 'clipped' in text] == ['the worker warns: clipped 0 values']


def test_the_figures_tell_the_round_trip_and_the_workers_part(
    workers: Workers, robots: Robots
) -> None:
    worker = workers()
    robot = robots(worker)
    worker.script(wire.ACT, (200, {'outputs': 0, 'perf': {'handler_ms': 12.5}}))
    robot.act()
    acts = robot.scope.figures().acts
    assert acts.handler_ms.p50 == 12.5
    assert acts.round_trip_ms.count == 1
    # The scripted worker claims more than the whole took, which tells nothing of the network.
    assert (acts.network_ms.count, acts.network_share) == (0, None)
    worker.script(wire.ACT, (200, {'outputs': 0, 'perf': {'handler_ms': 0.001}}))
    robot.act()
    acts = robot.scope.figures().acts
    assert acts.network_ms.count == 1
    assert acts.network_share is not None
    assert 0.9 < acts.network_share <= 1.0, 'of the act alone whose parts are known'
    told = robot.policy.figures()
    assert told['acts']['handler_ms']['max'] == 12.5
    assert told['connected'] is True

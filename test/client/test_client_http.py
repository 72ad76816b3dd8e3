"""The HTTP binding: headers, forms of bodies, and what each answer makes the client do."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
import json
import threading
from typing import Any

from client.robot import Robot
from client.scripted_http import FORMATS, Posted, ScriptedHttp
from client.scripted_worker import Drop, error, Held, Silence
import numpy as np
import pytest
from seq_harness.client.endpoint import EndpointRefused
from seq_harness.client.sequence import SequencePolicy
from seq_harness.contract import wire
from seq_harness.contract.errors import ErrorCode
from seq_harness.contract.json_body import JsonError
from seq_harness.playback.uplink import ActAbandoned, PolicyError, WorkerLost
from support.waiting import PATIENCE_S, wait_for

EVERY = {'observations': {'every': 1}}
IMAGE = np.zeros((2, 3, 3), np.uint8)

Https = Callable[..., ScriptedHttp]
Policies = Callable[..., SequencePolicy]
Robots = Callable[..., Robot]


@pytest.fixture
def https() -> Iterator[Https]:
    """Return a maker of scripted HTTP workers."""
    with ExitStack() as stack:

        def make(*args: Any, **options: Any) -> ScriptedHttp:
            worker = ScriptedHttp(*args, **options)
            stack.callback(worker.stop)
            return worker

        yield make


def acts(worker: ScriptedHttp) -> list[Posted]:
    return worker.pending(wire.PATH_ACT)


def conflict(reason: str, **details: Any) -> tuple[int, Mapping[str, Any]]:
    return error(ErrorCode.CONFLICT, details={'reason': reason, **details})


def test_an_act_goes_as_msgpack_with_its_headers(https: Https, robots: Robots) -> None:
    worker = https()
    robot = robots(worker, token='s3cret')
    assert robot.act({'front': IMAGE}) == {'seq': 0}
    asked = worker.next(wire.PATH_ACT)
    assert asked.headers[wire.HEADER_CONTENT_TYPE] == wire.MSGPACK_TYPE
    assert asked.headers[wire.HEADER_ACCEPT] == wire.MSGPACK_TYPE
    assert asked.headers[wire.HEADER_AUTHORIZATION] == 'Bearer s3cret'
    assert asked.headers[wire.HEADER_REQUEST_ID].startswith('r-')
    assert len(asked.headers[wire.HEADER_SESSION]) == 32
    assert set(asked.body) == {'episode_id', 'seq', 'inputs', 'request_id'}
    np.testing.assert_array_equal(asked.body['inputs']['front'], IMAGE)


def test_what_json_carries_goes_as_json(https: Https, robots: Robots) -> None:
    worker = https()
    robots(worker).act({'prompt': 'pick'})
    asked = worker.next(wire.PATH_ACT)
    assert asked.headers[wire.HEADER_CONTENT_TYPE] == wire.JSON_TYPE
    assert json.loads(asked.raw)['inputs'] == {'prompt': 'pick'}
    assert asked.headers[wire.HEADER_ACCEPT] == wire.MSGPACK_TYPE


def test_a_worker_that_reads_json_alone_gets_lists_and_no_observations(
    https: Https, robots: Robots
) -> None:
    worker = https(formats=())
    said: list[str] = []
    robot = robots(worker, on_state=said.append)
    robot.scope.skip(0)
    robot.number = 0
    for _ in range(2):
        robot.act({'state': np.ones(2, np.float32)})
    asked = worker.next(wire.PATH_ACT)
    assert (json.loads(asked.raw)['inputs'], asked.headers[wire.HEADER_ACCEPT]) == (
        {'state': [1.0, 1.0]},
        None,
    )
    assert sum('as lists' in text for text in said) == 1
    robot.scope.close()
    worker.next(wire.PATH_EPISODE_END)
    assert not worker.pending(wire.PATH_OBSERVE)


def test_bytes_are_refused_here_where_the_worker_reads_no_msgpack(
    https: Https, robots: Robots
) -> None:
    with pytest.raises(JsonError, match='bytes go in a msgpack body'):
        robots(https(formats=())).act({'front': b'\xff'})


def test_a_policy_that_reads_the_past_needs_a_worker_that_takes_observations(
    https: Https, policies: Policies
) -> None:
    with pytest.raises(ValueError, match=r'x-seq-observe/1'):
        policies(https(EVERY, formats=(wire.FORMAT_MSGPACK,)).url).connect()


def test_observations_go_on_a_connection_of_their_own(https: Https, robots: Robots) -> None:
    worker = https(EVERY)
    robot = robots(worker)
    robot.act({'front': IMAGE})
    robot.observe({'front': IMAGE})
    posted = worker.next(wire.PATH_OBSERVE)
    robot.act({'front': IMAGE})
    act = worker.next(wire.PATH_ACT)
    assert posted.headers[wire.HEADER_CONTENT_TYPE] == wire.MSGPACK_TYPE
    assert list(posted.body) == ['episode_id', 'frames', 'skipped']
    assert [frame['seq'] for frame in posted.body['frames']] == [1]
    assert act.connection != posted.connection


def test_one_connection_serves_act_after_act(https: Https, robots: Robots) -> None:
    worker = https()
    robot = robots(worker)
    for _ in range(3):
        robot.act()
    assert len({one.connection for one in acts(worker)}) == 1
    assert robot.scope.figures().reconnects == 0


def test_an_end_of_an_episode_is_told_in_json(https: Https, robots: Robots) -> None:
    worker = https()
    robot = robots(worker)
    robot.act()
    robot.scope.close()
    ended = worker.next(wire.PATH_EPISODE_END)
    assert list(json.loads(ended.raw)) == ['episode_id']


def test_a_worker_without_a_gateways_routes_is_served_as_it_is(
    https: Https, robots: Robots
) -> None:
    worker = https(instance=None)
    worker.script(wire.PATH_CONNECT, error(ErrorCode.NOT_FOUND))
    robot = robots(worker)
    assert robot.act() == {'seq': 0}
    assert robot.declaration.observations is None
    assert set(worker.next(wire.PATH_ACT).body) == {'episode_id', 'seq', 'inputs'}


@pytest.mark.parametrize(
    'answer',
    [
        Drop(),
        error(ErrorCode.BUSY, retry_after_s=0.01),
        error(ErrorCode.UNAVAILABLE, details={'reason': wire.DRAINING}),
        error(ErrorCode.WARMING, retry_after_s=0.01),
        error(ErrorCode.BUSY, details={'reason': wire.NO_PLACE}),
        error(ErrorCode.UPSTREAM_ERROR),
        error(ErrorCode.TIMEOUT),
        (503, {'detail': 'in line', 'code': 'unavailable', 'retry_after_s': 0.0}),
    ],
    ids=['reset', 'busy', 'draining', 'warming', 'no-place', '502', '504', '503'],
)
def test_the_same_act_goes_again_under_its_id_after(
    https: Https, robots: Robots, answer: Any
) -> None:
    worker = https()
    robot = robots(worker)
    worker.script(wire.PATH_ACT, answer)
    assert robot.act() == {'seq': 0}
    asked = acts(worker)
    assert len(asked) == 2
    assert len({one.headers[wire.HEADER_REQUEST_ID] for one in asked}) == 1
    assert len({one.body['episode_id'] for one in asked}) == 1


@pytest.mark.parametrize(
    'answer',
    [
        error(ErrorCode.INVALID_REQUEST),
        error(ErrorCode.POLICY_ERROR),
        error(ErrorCode.INTERNAL),
        error(ErrorCode.CONFLICT),
        error(ErrorCode.PAYLOAD_TOO_LARGE),
        error(ErrorCode.GONE),
        (418, {}),
    ],
    ids=['400', 'policy', '500', '409', '413', '410', 'teapot'],
)
def test_an_act_is_not_sent_again_after(https: Https, robots: Robots, answer: Any) -> None:
    worker = https()
    robot = robots(worker)
    worker.script(wire.PATH_ACT, answer)
    with pytest.raises(PolicyError):
        robot.act()
    assert len(acts(worker)) == 1


ARM = {
    'images': [{'view': 'front', 'data': b64encode(bytes(range(256))).decode()}],
    'proprioception': {'gripper': [0.5]},
    'instruction': 'go',
}


def test_the_frames_of_an_arm_go_as_bytes_to_a_worker_that_reads_them(
    https: Https, robots: Robots
) -> None:
    worker = https(formats=(*FORMATS, wire.FORMAT_FRAMES))
    robots(worker).act(ARM)
    asked = worker.next(wire.PATH_ACT)
    assert asked.headers[wire.HEADER_CONTENT_TYPE] == wire.FRAMES_TYPE
    assert asked.raw.startswith(b'SQF1')
    assert bytes(range(256)) in asked.raw
    assert asked.body['inputs'] == ARM


@pytest.mark.parametrize(
    ('formats', 'observation'),
    [(FORMATS, ARM), ((*FORMATS, wire.FORMAT_FRAMES), {**ARM, 'images': []})],
    ids=['to a worker that reads none', 'without frames'],
)
def test_an_arms_observation_goes_as_json(
    https: Https, robots: Robots, formats: tuple[str, ...], observation: dict[str, Any]
) -> None:
    worker = https(formats=formats)
    robots(worker).act(observation)
    asked = worker.next(wire.PATH_ACT)
    assert asked.headers[wire.HEADER_CONTENT_TYPE] == wire.JSON_TYPE
    assert asked.body['inputs'] == observation


def test_missing_frames_are_posted_again_once_and_the_act_after_them(
    https: Https, robots: Robots
) -> None:
    worker = https(EVERY)
    robot = robots(worker)
    robot.act({'front': IMAGE})
    robot.observe({'front': IMAGE})
    worker.next(wire.PATH_OBSERVE)
    # What is still on its way is not posted again.
    wait_for(
        lambda: robot.scope.figures().stream.posted == 1, PATIENCE_S, 'the answer to the post'
    )
    worker.script(wire.PATH_ACT, conflict(wire.FRAMES_MISSING, **{'from': 1}))
    assert robot.act({'front': IMAGE}) == {'seq': 2}
    first, again, second = (worker.asked.get(timeout=PATIENCE_S) for _ in range(3))
    assert [one.target for one in (first, again, second)] == ['/act', '/observe', '/act']
    assert [frame['seq'] for frame in again.body['frames']] == [1]
    assert first.raw == second.raw
    worker.script(wire.PATH_ACT, *[conflict(wire.FRAMES_MISSING, **{'from': 3})] * 2)
    with pytest.raises(PolicyError, match='conflict'):
        robot.act({'front': IMAGE})


@pytest.mark.parametrize('reason', [wire.EPISODE_LOST, *sorted(wire.COPY_LOST_REASONS)])
def test_a_lost_episode_begins_anew_once(https: Https, robots: Robots, reason: str) -> None:
    worker = https()
    robot = robots(worker)
    robot.act()
    code = ErrorCode.CONFLICT if reason == wire.EPISODE_LOST else ErrorCode.UNAVAILABLE
    lost = error(code, details={'reason': reason})
    worker.script(wire.PATH_ACT, lost)
    assert robot.act() == {'seq': 0}
    _, before, after = acts(worker)
    assert before.body['episode_id'] != after.body['episode_id']
    assert before.headers[wire.HEADER_REQUEST_ID] == after.headers[wire.HEADER_REQUEST_ID]


def test_an_answer_that_does_not_come_in_time_ends_its_connection(
    https: Https, robots: Robots
) -> None:
    worker = https()
    robot = robots(worker, act_timeout_s=1.0)
    worker.script(wire.PATH_ACT, Silence())
    with pytest.raises(ActAbandoned, match='no answer came within'):
        robot.act()
    assert robot.act() == {'seq': 1}
    assert len({one.connection for one in acts(worker)}) == 2


def test_an_act_that_does_not_run_is_sent_again_after_its_time(
    https: Https, robots: Robots
) -> None:
    worker = https()
    robot = robots(worker, act_timeout_s=1.0)
    worker.script(wire.PATH_ACT, Silence())
    worker.script(wire.PATH_PING, (200, {'act': {'running': False, 'answered': True}}))
    assert robot.act() == {'seq': 0}
    first = worker.next(wire.PATH_ACT).headers[wire.HEADER_REQUEST_ID]
    assert worker.next(wire.PATH_PING).target == f'/ping?act={first}'
    assert worker.next(wire.PATH_ACT).headers[wire.HEADER_REQUEST_ID] == first


def test_a_worker_that_is_gone_is_lost_in_time(https: Https, robots: Robots) -> None:
    worker = https()
    robot = robots(worker, reconnect_s=0.3)
    robot.act()
    worker.stop()
    with pytest.raises(WorkerLost, match=r'could not be reached for 0\.3 s'):
        robot.act()


def test_another_process_on_the_port_begins_the_episode_anew(https: Https, robots: Robots) -> None:
    worker = https()
    robot = robots(worker)
    robot.act()
    worker.stop()
    worker.instance = 'worker-b'
    worker.start()
    assert robot.act() == {'seq': 0}


def test_a_refused_post_becomes_skips_and_a_failed_one_goes_again(
    https: Https, robots: Robots
) -> None:
    worker = https(EVERY)
    robot = robots(worker)
    robot.act({'front': IMAGE})
    worker.script(
        wire.PATH_OBSERVE,
        error(ErrorCode.BUSY),
        error(ErrorCode.PAYLOAD_TOO_LARGE, details={'reason': wire.FRAMES_OVER_LIMIT}),
    )
    robot.observe({'front': IMAGE})
    busy, refused = worker.next(wire.PATH_OBSERVE), worker.next(wire.PATH_OBSERVE)
    assert busy.raw == refused.raw
    skipped = worker.next(wire.PATH_OBSERVE)
    assert (skipped.body['frames'], skipped.body['skipped']) == ([], [1])


def test_retiring_ends_an_act_at_once(https: Https, robots: Robots) -> None:
    worker = https()
    robot = robots(worker)
    go = threading.Event()
    worker.script(wire.PATH_ACT, Held(go))
    failures: list[BaseException] = []

    def act() -> None:
        try:
            robot.act()
        except BaseException as caught:
            failures.append(caught)

    thread = threading.Thread(target=act)
    thread.start()
    worker.next(wire.PATH_ACT)
    robot.scope.retire()
    thread.join(PATIENCE_S)
    go.set()
    assert [type(failure).__name__ for failure in failures] == ['Retired']


def test_a_token_goes_in_clear_to_another_machine_only_where_that_is_allowed() -> None:
    with pytest.raises(EndpointRefused, match='https://'):
        SequencePolicy('http://gpu.example:80', 's3cret')

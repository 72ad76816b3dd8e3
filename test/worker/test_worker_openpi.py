"""The wire of openpi's policy server, as the worker speaks it on its own port."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
import http.client
import threading
import time
from typing import Any

import numpy as np
import pytest
from seq_harness.client.registry import policy_at
from seq_harness.contract.episode import Episode
from seq_harness.contract.msgpack import pack as pack_own
from seq_harness.contract.numpy_msgpack import pack, unpack
from seq_harness.contract.own_io import Actions, Observations, Stream
from seq_harness.playback.uplink import PolicyError, Step
from seq_harness.worker.limits import Limits
from seq_harness.worker.running import served
from seq_harness.worker.server import Access
from support.waiting import PATIENCE_S
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect
from worker.worker_arm import ACTION
from worker.worker_policies import every, Gate
from worker.worker_wire import client_of

STATE = np.arange(3, dtype=np.float32)


class Rows:
    """Answer three rows of the state, and keep what was read and which episodes there were."""

    metadata = {'reset_pose': [0.0, 1.0], 'instance': 'not this'}  # noqa: RUF012
    actions = Actions(key='joints', hz=20.0)
    columns = ('a', 'b', 'c')

    def __init__(self) -> None:
        self.read: list[Any] = []
        self.begun: list[str] = []
        self.ended = threading.Semaphore(0)

    def episode_start(self, episode: Episode) -> None:
        self.begun.append(episode.id)

    def episode_end(self, episode: Episode) -> None:
        self.ended.release()

    def infer(self, inputs: Any) -> Any:
        self.read.append(inputs)
        return {'joints': np.tile(inputs['state'], (3, 1)), 'note': 'as it is'}


@contextmanager
def opened(url: str, **headers: str) -> Iterator[tuple[ClientConnection, dict[str, Any]]]:
    """Connect as openpi's client does, and give the greeting."""
    root = url.removesuffix('/v1/ws')
    with connect(
        root, compression=None, max_size=None, additional_headers=headers, ping_interval=None
    ) as socket:
        yield socket, unpack(socket.recv(PATIENCE_S, decode=False))


def infer(socket: ClientConnection, observation: Any) -> dict[str, Any]:
    """Ask one inference."""
    socket.send(pack(observation))
    answer = unpack(socket.recv(PATIENCE_S, decode=False))
    assert isinstance(answer, dict)
    return answer


def refusal(socket: ClientConnection) -> str:
    """Return the text of an error, after which the connection is closed."""
    told = socket.recv(PATIENCE_S)
    assert isinstance(told, str)
    assert 'Traceback' not in told
    with pytest.raises(ConnectionClosed):
        socket.recv(PATIENCE_S)
    assert socket.close_code == 1011
    return told


def get(url: str, path: str, **headers: str) -> tuple[int, bytes]:
    """Ask by plain HTTP."""
    connection = http.client.HTTPConnection(url.split('/')[2], timeout=PATIENCE_S)
    connection.request('GET', path, headers=headers)
    answer = connection.getresponse()
    status, body = answer.status, answer.read()
    connection.close()
    return status, body


def test_the_greeting_says_what_the_policy_declares_and_its_own_metadata() -> None:
    with served(Rows()) as url, opened(url) as (_, greeting), client_of(url) as client:
        declared = client.connect().body
        assert greeting == {'reset_pose': [0.0, 1.0], **declared}
        assert greeting['columns'] == ['a', 'b', 'c']


def test_the_policy_reads_the_observation_as_it_was_sent_nested_and_slashed() -> None:
    policy = Rows()
    image = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    observation = {
        'state': STATE,
        'images': {'cam_high': image.transpose(2, 0, 1)},
        'observation/image': image,
        'prompt': 'pick it up',
    }
    with served(policy) as url, opened(url) as (socket, _):
        infer(socket, observation)
    (read,) = policy.read
    assert read['prompt'] == 'pick it up'
    np.testing.assert_array_equal(read['images']['cam_high'], image.transpose(2, 0, 1))
    np.testing.assert_array_equal(read['observation/image'], image)


def test_an_answer_holds_actions_the_rest_and_the_timings() -> None:
    with served(Rows()) as url, opened(url) as (socket, _):
        first, second = (infer(socket, {'state': STATE}) for _ in range(2))
    assert set(first) == {'actions', 'joints', 'note', 'server_timing'}
    assert first['actions'].dtype == np.float32
    np.testing.assert_array_equal(first['actions'], np.tile(STATE, (3, 1)))
    assert set(first['server_timing']) == {'infer_ms'}
    assert set(second['server_timing']) == {'infer_ms', 'prev_total_ms'}
    assert 0 < first['server_timing']['infer_ms'] <= second['server_timing']['prev_total_ms']


def test_a_policy_that_answers_rows_alone_answers_actions() -> None:
    class Bare:
        def infer(self, inputs: Any) -> Any:
            return [[1.0, 2.0]]

    with served(Bare()) as url, opened(url) as (socket, _):
        answer = infer(socket, {})
    assert set(answer) == {'actions', 'server_timing'}
    assert answer['actions'].tolist() == [[1.0, 2.0]]


def test_an_arms_chunk_is_answered_as_actions_too() -> None:
    class Arm:
        action = ACTION

        def infer(self, inputs: Any) -> Any:
            return [[0.1, 0.2], [0.3, 9.0]]

    with served(Arm()) as url, opened(url) as (socket, _):
        answer = infer(socket, {})
    assert answer['actions'].tolist() == [[0.1, 0.2], [0.3, 2.0]]
    assert len(answer['warnings']) == 1


def test_a_connection_is_an_episode() -> None:
    policy = Rows()
    with served(policy) as url:
        for _ in range(2):
            with opened(url) as (socket, _):
                infer(socket, {'state': STATE})
                infer(socket, {'state': STATE})
            assert policy.ended.acquire(timeout=PATIENCE_S)
    assert len(policy.begun) == len(set(policy.begun)) == 2


def test_declared_observations_come_numbered_by_request() -> None:
    policy = Rows()
    policy.observations = Observations({'state': Stream()})  # type: ignore[attr-defined]
    seen: list[Any] = []

    def read(inputs: Any) -> Any:
        seen.append((inputs['steps'], set(inputs['observations'][-1])))
        return {'joints': STATE}

    policy.infer = read  # type: ignore[method-assign]
    with served(policy) as url, opened(url) as (socket, _):
        for _ in range(3):
            infer(socket, {'state': STATE, 'other': 1})
    assert seen == [([0], {'state'}), ([1], {'state'}), ([2], {'state'})]


def test_health_pings_and_greetings_are_answered_while_an_inference_runs() -> None:
    gate = Gate()
    with served(gate) as url, opened(url) as (socket, _):
        socket.send(pack({}))
        assert gate.entered.acquire(timeout=PATIENCE_S)
        assert get(url, '/healthz') == (200, b'OK\n')
        assert socket.ping().wait(PATIENCE_S)
        with opened(url) as (_, greeting):
            assert greeting['instance']
        gate.leave.release()
        assert 'no array of numbers' in refusal(socket)


def test_a_request_sent_ahead_is_answered_in_its_turn() -> None:
    with served(Rows()) as url, opened(url) as (socket, _):
        for number in range(5):
            socket.send(pack({'state': STATE + number}))
        for number in range(5):
            answer = unpack(socket.recv(PATIENCE_S, decode=False))
            np.testing.assert_array_equal(answer['actions'][0], STATE + number)


def test_whoever_leaves_takes_back_what_was_not_begun() -> None:
    gate = Gate()
    with served(gate) as url:
        with opened(url) as (first, _), opened(url) as (second, _):
            first.send(pack({}))
            assert gate.entered.acquire(timeout=PATIENCE_S)
            second.send(pack({}))
            second.send(pack({}))
        # Its answer comes after the worker has let go of whoever left before it.
        assert get(url, '/healthz')[0] == 200
        gate.leave.release()
        with opened(url) as (third, _):
            third.send(pack({}))
            assert gate.entered.acquire(timeout=PATIENCE_S)
            gate.leave.release()
            refusal(third)
        assert gate.runs == 2


def test_a_policys_failure_is_one_text_and_the_end_of_the_connection() -> None:
    class Broken:
        def infer(self, inputs: Any) -> Any:
            raise ValueError('no such joint')

    with served(Broken()) as url, opened(url) as (socket, _):
        socket.send(pack({}))
        assert refusal(socket) == 'policy_error: the policy failed: ValueError: no such joint'


@pytest.mark.parametrize(
    ('message', 'told'),
    [
        ('text', 'a text frame came'),
        (b'\xc1', 'no msgpack value'),
        (b'\x92\x01', 'no msgpack value'),
        (b'\xdd\xff\xff\xff\xff', 'no msgpack value'),
        (b'\x92\x01\x02', 'an observation is a mapping, got a list'),
        (pack_own({'a': 1}) + b'\x00', '1 bytes follow'),
        (
            b'\x84\xc4\x0b__ndarray__\xc3\xc4\x04data\xc4\x00\xc4\x05dtype\xa2|O\xc4\x05shape\x90',
            'O',
        ),
    ],
)
def test_what_cannot_be_read_is_refused_in_words(message: Any, told: str) -> None:
    with served(Rows()) as url, opened(url) as (socket, _):
        socket.send(message)
        text = refusal(socket)
        assert text.startswith('invalid_request: ')
        assert told in text


def test_a_message_over_the_limit_ends_the_connection() -> None:
    with served(Rows(), limits=Limits(message_bytes=1000)) as url, opened(url) as (socket, _):
        fits = {'state': STATE, 'pad': bytes(1000 - len(pack({'state': STATE, 'pad': b''})) - 1)}
        assert len(pack(fits)) == 1000
        infer(socket, fits)
        socket.send(pack({**fits, 'pad': bytes(2000)}))
        with pytest.raises(ConnectionClosed):
            socket.recv(PATIENCE_S)
        assert socket.close_code == 1009


def test_too_many_requests_ahead_are_refused() -> None:
    class Gated(Rows):
        def __init__(self) -> None:
            super().__init__()
            self.go = threading.Event()

        def infer(self, inputs: Any) -> Any:
            assert self.go.wait(PATIENCE_S)
            return super().infer(inputs)

    policy, answered = Gated(), 0
    with served(policy, limits=Limits(connection_requests=2)) as url, opened(url) as (socket, _):
        for _ in range(8):
            socket.send(pack({'state': STATE}))
        assert socket.ping().wait(PATIENCE_S)
        policy.go.set()
        while not isinstance(told := socket.recv(PATIENCE_S), str):
            answered += 1
    assert told.startswith('busy: ')
    assert answered in (2, 3)


def test_the_greeting_waits_for_the_policy_and_health_says_so() -> None:
    class Slow(Rows):
        def __init__(self) -> None:
            super().__init__()
            self.go = threading.Event()

        def load(self) -> None:
            assert self.go.wait(PATIENCE_S)

    policy = Slow()
    with served(policy) as url:
        with connect(url.removesuffix('/v1/ws'), compression=None, ping_interval=None) as socket:
            assert socket.ping().wait(PATIENCE_S)
            status, body = get(url, '/healthz')
            assert status == 503
            assert b'loading' in body
            policy.go.set()
            assert unpack(socket.recv(PATIENCE_S, decode=False))['instance']
        assert get(url, '/healthz') == (200, b'OK\n')


def test_a_policy_that_reads_between_acts_is_refused_with_the_reason() -> None:
    with served(every()) as url, connect(url.removesuffix('/v1/ws')) as socket:
        told = refusal(socket)
    assert 'between the ones it is asked with' in told
    assert told.endswith("(hint: use the worker's own wire, at /v1/ws)")


def test_the_token_is_shown_as_an_api_key_or_as_a_bearer() -> None:
    with served(Rows(), access=Access('secret')) as url:
        for shown in ('Api-Key secret', 'Bearer secret'):
            with opened(url, Authorization=shown) as (_, greeting):
                assert greeting['columns']
        for refused in ({}, {'Authorization': 'Api-Key wrong'}, {'Authorization': 'secret'}):
            with pytest.raises(InvalidStatus) as error, opened(url, **refused):
                pass
            assert error.value.response.status_code == 401
        assert get(url, '/healthz') == (200, b'OK\n')


def test_a_web_page_is_refused() -> None:
    with served(Rows()) as url:
        with pytest.raises(InvalidStatus) as error, opened(url, Origin='http://elsewhere'):
            pass
        assert error.value.response.status_code == 403
        assert get(url, '/healthz', Origin='http://elsewhere')[0] == 403


def test_a_plain_request_is_told_to_upgrade() -> None:
    with served(Rows()) as url:
        assert get(url, '/')[0] == 426


def test_a_policy_of_one_episode_at_a_time_is_busy_for_a_second_client() -> None:
    class Own(Rows):
        episodes = 'own'

    with served(Own()) as url, opened(url) as (first, _):
        infer(first, {'state': STATE})
        with opened(url) as (second, _):
            second.send(pack({'state': STATE}))
            assert refusal(second).startswith('busy: ')
        infer(first, {'state': STATE})


def test_our_own_client_of_the_wire_reaches_a_policy_of_ours() -> None:
    with served(Rows(), access=Access('secret')) as url:
        policy = policy_at(f'openpi+{url.removesuffix("/v1/ws")}', token='secret')
        try:
            policy.connect()
            scope = policy.open_episode(time.monotonic_ns)
            for number in range(2):
                seen = {'state': STATE + number}
                outputs: Any = scope.infer(Step(number, time.monotonic_ns(), seen))
                np.testing.assert_array_equal(outputs['actions'][2], STATE + number)
            with pytest.raises(PolicyError, match=r'policy_error: .*KeyError'):
                scope.infer(Step(2, time.monotonic_ns(), {}))
            assert policy.figures()['acts']['answered'] == 2
        finally:
            policy.close()

"""The HTTP binding, and the gateway's routes that a worker answers about itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
import http.client
import json
import threading
from typing import Any

import numpy as np
import pytest
from seq_harness.contract.msgpack import pack, unpack
from seq_harness.contract.own_io import Observations
from seq_harness.worker.limits import Limits
from seq_harness.worker.running import served
from seq_harness.worker.server import Access
from support.waiting import PATIENCE_S
from worker.worker_wire import client_of

MSGPACK = 'application/x-seq-msgpack'
JSON = 'application/json'


class Recorder:
    observations = Observations(every=1)

    def __init__(self) -> None:
        self.runs = 0

    def infer(self, inputs: Any) -> Any:
        self.runs += 1
        return {'read': inputs, 'run': self.runs}


class Plain:
    def infer(self, inputs: Any) -> Any:
        return {'read': inputs}


@dataclass(frozen=True)
class Answered:
    status: int
    headers: dict[str, str]
    body: Any


def ask(
    url: str, method: str, path: str, body: Any = None, kind: str = JSON, **headers: str
) -> Answered:
    """Make one request; underscores in the names of headers stand for hyphens."""
    connection = http.client.HTTPConnection(url.split('/')[2], timeout=PATIENCE_S)
    named = {name.replace('_', '-'): value for name, value in headers.items()}
    data = body
    if not isinstance(body, (bytes, type(None))):
        data = pack(body) if kind == MSGPACK else json.dumps(body).encode()
    try:
        connection.request(method, path, data, {'Content-Type': kind, **named})
        answer = connection.getresponse()
        told = answer.read()
    finally:
        connection.close()
    read = unpack if answer.headers['Content-Type'].startswith(MSGPACK) else json.loads
    return Answered(answer.status, dict(answer.headers), read(told))


@pytest.fixture
def url() -> Iterator[str]:
    with served(Recorder(), limits=Limits(stream_wait_s=0.2, message_bytes=1 << 20)) as address:
        with client_of(address) as client:
            client.connect()
        yield address


@pytest.fixture(scope='module')
def plain() -> Iterator[str]:
    with served(Plain()) as address:
        with client_of(address) as client:
            client.connect()
        yield address


def test_ping_tells_of_the_worker_and_needs_no_token() -> None:
    with served(Plain(), access=Access('secret')) as address:
        answer = ask(address, 'GET', '/ping')
    assert answer.status == 200
    assert answer.body['act'] == {'running': False, 'answered': False}
    assert answer.headers['X-Seq-Instance'] == answer.body['instance']


@pytest.mark.parametrize('path', ['/act', '/observe', '/act/episode_end', '/nowhere'])
def test_everything_else_needs_the_token_and_still_names_the_formats(path: str) -> None:
    with served(Plain(), access=Access('secret')) as address:
        wrong = ask(address, 'POST', path, {}, Authorization='Bearer wrong')
    assert wrong.status == 401
    assert wrong.body['code'] == 'unauthenticated'
    assert 'x-seq-observe/1' in wrong.headers['X-Seq-Act-Formats']


def test_posts_and_acts_go_as_on_the_websocket(url: str) -> None:
    posted = {'episode_id': 'ep-1', 'frames': [{'seq': 0, 'inputs': {'i': 0}}], 'skipped': []}
    assert ask(url, 'POST', '/observe', posted, MSGPACK).body['through'] == 0
    state = np.arange(3, dtype=np.float32)
    body = {'model': 'demo', 'inputs': {'state': state}, 'episode_id': 'ep-1', 'seq': 1}
    answer = ask(url, 'POST', '/act', body, MSGPACK, Accept=MSGPACK, X_Seq_Request_Id='r-1')
    assert answer.headers['X-Seq-Request-Id'] == 'r-1'
    assert answer.body['request_id'] == 'r-1'
    assert answer.body['warnings'] == []
    assert answer.body['perf']['handler_ms'] > 0
    read = answer.body['outputs']['read']
    assert read['steps'] == [0, 1]
    np.testing.assert_array_equal(read['observations'][1]['state'], state)
    ended = ask(url, 'POST', '/act/episode_end', {'episode_id': 'ep-1'})
    assert ended.body['ended'] is True


def test_the_request_id_of_the_header_is_run_once(url: str) -> None:
    body = {'inputs': 1, 'episode_id': 'e', 'seq': 0}
    first = ask(url, 'POST', '/act', body, X_Seq_Request_Id='r-1')
    again = ask(url, 'POST', '/act', body, X_Seq_Request_Id='r-1')
    assert first.body == again.body
    assert first.body['outputs']['run'] == 1


def test_sessions_keep_the_request_ids_of_acts_outside_of_episodes_apart(url: str) -> None:
    runs = [
        ask(url, 'POST', '/act', {'inputs': 1}, X_Seq_Request_Id='r-1', X_Seq_Session=session)
        for session in ('a', 'b', 'a')
    ]
    assert [answer.body['outputs']['run'] for answer in runs] == [1, 2, 1]


def test_json_answers_hold_arrays_as_lists(plain: str) -> None:
    body = {'inputs': np.ones((1, 2), np.float32)}
    answer = ask(plain, 'POST', '/act', body, MSGPACK)
    assert answer.headers['Content-Type'].startswith(JSON)
    assert answer.body['outputs']['read'] == [[1.0, 1.0]]


def test_bytes_in_a_json_answer_are_refused_with_what_to_do(plain: str) -> None:
    answer = ask(plain, 'POST', '/act', {'inputs': b'x'}, MSGPACK)
    assert answer.status == 400
    assert 'Accept' in answer.body['hint']


@pytest.mark.parametrize(
    ('body', 'kind', 'read'),
    [
        ({'inputs': [1]}, JSON, [1]),
        ({'observation': [2]}, JSON, [2]),
        ({'joints': [3]}, JSON, {'joints': [3]}),
        ([4], 'application/json; charset=utf-8', [4]),
        ({'joints': 5}, MSGPACK, {'joints': 5}),
    ],
)
def test_every_version_of_an_act_is_read(plain: str, body: Any, kind: str, read: Any) -> None:
    assert ask(plain, 'POST', '/act', body, kind).body['outputs']['read'] == read


def test_a_body_of_another_type_reaches_the_policy_as_bytes(plain: str) -> None:
    answer = ask(plain, 'POST', '/act', b'\x00\xff', 'image/jpeg', Accept=MSGPACK)
    assert answer.body['outputs']['read'] == b'\x00\xff'


@pytest.mark.parametrize(
    ('body', 'kind'),
    [(b'{', JSON), (b'[' * 100_000, JSON), (b'\xff', JSON), (b'9' * 5000, JSON), (b'', JSON)],
)
def test_a_body_that_is_no_json_is_refused(plain: str, body: bytes, kind: str) -> None:
    answer = ask(plain, 'POST', '/act', body, kind)
    assert (answer.status, answer.body['code']) == (400, 'invalid_request')


def test_a_text_that_is_not_unicode_is_refused(plain: str) -> None:
    answer = ask(plain, 'POST', '/act', b'{"inputs": 1, "request_id": "\\ud800"}')
    assert (answer.status, answer.body['code']) == (400, 'invalid_request')


@pytest.mark.parametrize(
    ('path', 'body'),
    [
        ('/observe', b'{"episode_id": "e", "frames": [{"seq": 1%s, "inputs": 1}]}'),
        ('/observe', b'{"episode_id": "e", "skipped": [1%s]}'),
        ('/act', b'{"episode_id": "e", "inputs": 1, "seq": 1%s}'),
    ],
)
def test_a_number_that_no_episode_reaches_is_refused(plain: str, path: str, body: bytes) -> None:
    answer = ask(plain, 'POST', path, body % (b'0' * 4000))
    assert (answer.status, answer.body['code']) == (400, 'invalid_request')


def test_a_body_over_the_limit_is_refused(url: str) -> None:
    answer = ask(url, 'POST', '/act', bytes((1 << 20) + 1), 'image/jpeg')
    assert (answer.status, answer.body['code']) == (413, 'payload_too_large')


def test_a_compressed_body_is_refused(plain: str) -> None:
    answer = ask(plain, 'POST', '/act', {'inputs': 1}, JSON, Content_Encoding='gzip')
    assert (answer.status, answer.body['code']) == (400, 'invalid_request')


@pytest.mark.parametrize(('method', 'path', 'status'), [('GET', '/act', 405), ('GET', '/a', 404)])
def test_a_wrong_route_is_answered_in_the_form_of_an_error(
    plain: str, method: str, path: str, status: int
) -> None:
    answer = ask(plain, method, path)
    assert answer.status in (status, 400)
    assert answer.body['retryable'] is False


def test_missing_frames_are_a_conflict_that_names_the_first(url: str) -> None:
    ask(url, 'POST', '/observe', {'episode_id': 'e', 'frames': [{'seq': 0, 'inputs': 0}]})
    answer = ask(url, 'POST', '/act', {'inputs': 2, 'episode_id': 'e', 'seq': 2})
    assert (answer.status, answer.body['code']) == (409, 'conflict')
    assert answer.body['details'] == {'reason': 'frames_missing', 'from': 1}


def test_a_client_that_cannot_refill_reads_from_where_it_came_in(url: str) -> None:
    ask(url, 'POST', '/observe', {'episode_id': 'e', 'frames': [{'seq': 7, 'inputs': 7}]})
    answer = ask(url, 'POST', '/act', {'inputs': 8, 'episode_id': 'e', 'seq': 8})
    assert answer.body['outputs']['read']['steps'] == [7, 8]


def test_a_client_that_names_its_request_in_the_body_can_refill(url: str) -> None:
    ask(url, 'POST', '/observe', {'episode_id': 'e', 'frames': [{'seq': 7, 'inputs': 7}]})
    body = {'inputs': 8, 'episode_id': 'e', 'seq': 8, 'request_id': 'r-1'}
    answer = ask(url, 'POST', '/act', body)
    assert answer.body['details'] == {'reason': 'frames_missing', 'from': 0}


def test_an_act_without_inputs_reads_what_was_observed(url: str) -> None:
    frames = [{'seq': n, 'inputs': n} for n in range(3)]
    ask(url, 'POST', '/observe', {'episode_id': 'e', 'frames': frames}, MSGPACK)
    call = {'model': 'demo', 'episode_id': 'e', 'call': 'act'}
    answer = ask(url, 'POST', '/act', {**call, 'seq': 3})
    assert answer.body['outputs']['read'] == {'observations': [0, 1, 2], 'steps': [0, 1, 2]}
    missing = ask(url, 'POST', '/act', {**call, 'seq': 5})
    assert missing.body['details'] == {'reason': 'frames_missing', 'from': 3}
    nothing = ask(url, 'POST', '/act', {**call, 'episode_id': 'f', 'seq': 0})
    assert nothing.status == 400


def test_warming_is_said_with_the_header_too() -> None:
    loaded = threading.Event()

    class Slow(Plain):
        def load(self) -> None:
            assert loaded.wait(PATIENCE_S)

    with served(Slow()) as address:
        answer = ask(address, 'POST', '/act', {'inputs': 1})
        ready = ask(address, 'GET', '/v1/act/ready?model=demo')
        loaded.set()
    assert (answer.status, answer.body['code']) == (503, 'warming')
    assert int(answer.headers['Retry-After']) >= answer.body['retry_after_s']
    assert ready.body['ready'] is False
    assert ready.body['eta_s'] > 0


def test_the_gateways_routes_name_this_worker(url: str) -> None:
    told = ask(url, 'POST', '/v1/act/connect', {'model': 'demo', 'session': 's', 'moves': True})
    assert told.status == 200
    assert told.body['worker_url'] == f'http://{url.split("/")[2]}'
    assert len(told.body['cert_fingerprint']) == 64
    assert told.body['direct_secret']
    assert told.body['params'] == {}
    assert told.body['keepalive']['every_s'] > 0
    assert told.body['lease']['ttl_s'] > 0
    assert told.body['observations']['every'] == 1
    assert ask(url, 'GET', '/v1/act/ready').body['ready'] is True
    assert ask(url, 'POST', '/v1/act/keepalive', {}).body['held'] is True
    assert ask(url, 'POST', '/v1/act/release', {}).status == 200
    assert ask(url, 'POST', '/v1/latency', {}).status == 200


def test_the_gateway_tells_the_token_to_those_who_have_it() -> None:
    with served(Plain(), access=Access('secret')) as address:
        with client_of(address, 'secret') as client:
            client.connect()
        told = ask(address, 'POST', '/v1/act/connect', {}, Authorization='Bearer secret')
    assert told.body['direct_secret'] == 'secret'


def test_a_request_from_a_web_page_is_forbidden(plain: str) -> None:
    answer = ask(plain, 'POST', '/act', {'inputs': 1}, Origin='http://evil.example')
    assert (answer.status, answer.body['code']) == (403, 'forbidden')


def test_bytes_recorded_from_the_public_client_are_answered(url: str) -> None:
    observed = bytes.fromhex(
        '83aa657069736f64655f6964a465702d31a66672616d65739182a373657100a6696e70757473'
        '82a16900a5737461746585c4026e64c3c40474797065a33c6634c4046b696e64c400c4057368'
        '6170659102c40464617461c408000000000000803fa7736b697070656490'
    )
    answer = ask(url, 'POST', '/observe', observed, MSGPACK)
    assert (answer.status, answer.body['through']) == (200, 0)
    body = {'model': 'demo', 'inputs': {'i': 1}, 'episode_id': 'ep-1', 'seq': 1}
    answer = ask(url, 'POST', '/act', body, MSGPACK, Accept=MSGPACK)
    first = answer.body['outputs']['read']['observations'][0]
    assert first['i'] == 0
    np.testing.assert_array_equal(first['state'], np.array([0, 1], np.float32))

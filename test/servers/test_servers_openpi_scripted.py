"""What openpi's own server never does, and its forks and the edges before it do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
import hashlib
from pathlib import Path
import shutil
import ssl
import subprocess
import threading
import time
from typing import Any

import msgpack  # type: ignore[import-untyped]
import numpy as np
import pytest
from seq_harness.bags import charged, replay, ReplayOptions
from seq_harness.client.endpoint import EndpointRefused
from seq_harness.client.registry import Policy, policy_at
from seq_harness.client.transport import HandshakeRefused
from seq_harness.playback.uplink import ActAbandoned, PolicyError, Step, WorkerLost
from servers.scripted import Scripted, scripted, Silence
from support.recordings import Follow, motion, parameters, write
from support.waiting import PATIENCE_S, wait_for

ROWS = np.zeros((4, 6), np.float32)


def answering(answer: Any) -> Callable[[Any, Any], Any]:
    """Make a server that answers the same to everything."""
    return lambda connection, message: answer


def step() -> Step:
    return Step(0, time.monotonic_ns(), {'state': np.zeros(6, np.float32), 'prompt': 'reach'})


Meet = Callable[..., tuple[Scripted, Policy]]


@pytest.fixture
def meet() -> Iterator[Meet]:
    """Start a scripted server and make the policy behind it; both end with the test."""
    with ExitStack() as stack:

        def met(handler: Any, greeting: Any = (), **options: Any) -> tuple[Scripted, Policy]:
            of_server = {
                name: options.pop(name)
                for name in ('statuses', 'ping_interval', 'ping_timeout')
                if name in options
            }
            server = stack.enter_context(scripted(handler, greeting, **of_server))
            policy = policy_at(
                f'openpi+ws://127.0.0.1:{server.port}',
                **{'connect_timeout_s': PATIENCE_S, 'reconnect_s': 1.0, **options},
            )
            stack.callback(policy.close)
            return server, policy

        yield met


def asked(policy: Policy) -> Any:
    policy.connect()
    return policy.open_episode(time.monotonic_ns).infer(step())


@pytest.mark.parametrize('key', [str, str.encode], ids=['text', 'bytes'])
@pytest.mark.parametrize(
    'fields',
    [
        {'__ndarray__': True, 'data': ROWS.tobytes(), 'dtype': '<f4', 'shape': [4, 6]},
        {'nd': True, 'type': '<f4', 'kind': b'', 'data': ROWS.tobytes(), 'shape': [4, 6]},
    ],
    ids=['openpi', 'msgpack-numpy'],
)
def test_openpi_arrays_are_read_in_both_dialects_and_cannot_be_written_to(
    meet: Meet, key: Any, fields: dict[str, Any]
) -> None:
    answer = msgpack.packb({'actions': {key(name): value for name, value in fields.items()}})
    _, policy = meet(answering(answer))
    rows = asked(policy)['actions']
    assert np.array_equal(rows, ROWS)
    assert not rows.flags.writeable


def test_openpi_fork_that_answers_the_bare_array_is_understood(meet: Meet) -> None:
    _, policy = meet(answering(ROWS))
    assert np.array_equal(asked(policy)['actions'], ROWS)


def test_openpi_handshake_carries_the_api_key_and_offers_no_compression(meet: Meet) -> None:
    server, policy = meet(answering({'actions': ROWS}), token='s3cret')
    policy.connect()
    assert server.headers[0]['authorization'] == 'Api-Key s3cret'
    assert 'sec-websocket-extensions' not in server.headers[0]
    assert 'sec-websocket-protocol' not in server.headers[0]


def test_openpi_api_key_travels_in_clear_to_no_other_machine() -> None:
    with pytest.raises(EndpointRefused, match='in clear'):
        policy_at('openpi+ws://10.1.2.3:8000', token='s3cret')


@pytest.mark.parametrize(
    ('status', 'text'), [(401, 'the token'), (403, 'the token'), (404, '404')]
)
def test_openpi_refusal_of_the_edge_is_final(meet: Meet, status: int, text: str) -> None:
    server, policy = meet(answering(ROWS), statuses=[status], token='wrong')
    with pytest.raises(HandshakeRefused, match=text) as caught:
        policy.connect()
    assert 'wrong' not in str(caught.value)
    assert len(server.headers) == 1


def test_openpi_server_error_of_the_edge_is_waited_out(meet: Meet) -> None:
    server, policy = meet(answering({'actions': ROWS}), statuses=[503, 429])
    assert np.array_equal(asked(policy)['actions'], ROWS)
    assert len(server.headers) == 3


def test_openpi_refusal_while_reconnecting_ends_the_episode(meet: Meet) -> None:
    server, policy = meet(answering({'actions': ROWS}), server={'server_keeps_state': False})
    policy.connect()
    scope = policy.open_episode(time.monotonic_ns)
    scope.infer(step())
    server.statuses = [403] * 50
    server.connections.get().close()
    with pytest.raises(WorkerLost, match='403'):
        scope.infer(step())


@pytest.mark.parametrize('greeting', [b'\xc1', msgpack.packb([1]), 'Traceback\n\nOSError: no'])
def test_openpi_peer_that_greets_otherwise_is_no_such_server(meet: Meet, greeting: Any) -> None:
    _, policy = meet(answering(ROWS), greeting)
    with pytest.raises(HandshakeRefused, match=r'openpi server|OSError: no'):
        policy.connect()


def test_openpi_answer_that_cannot_be_read_is_an_error_and_closes_the_connection(
    meet: Meet,
) -> None:
    server, policy = meet(answering(b'\xc1'))
    with pytest.raises(PolicyError, match='cannot be read'):
        asked(policy)
    connection = server.connections.get()
    wait_for(lambda: connection.close_code is not None, PATIENCE_S, 'the close')


def test_openpi_question_is_never_sent_twice(meet: Meet) -> None:
    """Nobody knows whether one that was sent was run."""

    def hang_up(connection: Any, message: Any) -> Any:
        connection.close()
        return Silence()

    server, policy = meet(hang_up)
    policy.connect()
    with pytest.raises(ActAbandoned):
        policy.open_episode(time.monotonic_ns).infer(step())
    assert len(server.messages) == 1


def test_openpi_server_that_hangs_up_over_every_question_is_lost_in_the_end(meet: Meet) -> None:
    def hang_up(connection: Any, message: Any) -> Any:
        connection.close()
        return Silence()

    _, policy = meet(hang_up)
    policy.connect()
    scope = policy.open_episode(time.monotonic_ns)
    for _ in range(100):
        try:
            scope.infer(step())
        except ActAbandoned:
            continue
        except WorkerLost as error:
            assert 'could not be reached for 1 s' in str(error)  # noqa: PT017
            return
    raise AssertionError('the loss was never said')


def test_openpi_idle_robot_answers_the_pings_of_its_server(meet: Meet) -> None:
    server, policy = meet(answering({'actions': ROWS}), ping_interval=0.2, ping_timeout=3.0)
    policy.connect()
    connection = server.connections.get()
    answered = [connection.ping() for _ in range(3)]
    assert all(pong.wait(PATIENCE_S) for pong in answered)


def test_openpi_robot_in_an_episode_answers_pings_between_its_questions(meet: Meet) -> None:
    server, policy = meet(answering({'actions': ROWS}))
    asked(policy)
    assert server.connections.get().ping().wait(PATIENCE_S)


def test_openpi_robot_sends_no_pings_that_a_busy_server_would_not_answer(meet: Meet) -> None:
    """A server whose loop infers answers nothing: a client that pings gives it up."""
    release = threading.Event()

    def infer(connection: Any, message: Any) -> Any:
        release.wait(PATIENCE_S)
        return {'actions': ROWS}

    server, policy = meet(infer)
    policy.connect()
    connection = server.connections.get()
    frames: list[str] = []
    connection.protocol.logger = _Noting(frames)  # type: ignore[assignment]
    connection.protocol.debug = True
    answers: list[Any] = []
    scope = policy.open_episode(time.monotonic_ns)
    asking = threading.Thread(target=lambda: answers.append(scope.infer(step())))
    asking.start()
    wait_for(lambda: len(server.messages) == 1, PATIENCE_S, 'the question')
    release.wait(1.5)
    release.set()
    asking.join(PATIENCE_S)
    assert answers
    assert not any('PING' in frame for frame in frames)


class _Noting:
    def __init__(self, frames: list[str]) -> None:
        self._frames = frames

    def debug(self, text: str, *arguments: Any) -> None:
        self._frames.append(text % arguments)


@pytest.mark.parametrize(
    'options',
    [
        {'via_gateway': True},
        {'model': 'pi0'},
        {'embodiment': 'left'},
        {'seed': 0},
        {'params': {'steps': 5}},
    ],
    ids=lambda options: next(iter(options)),
)
def test_openpi_options_that_the_wire_has_no_word_for_are_refused(options: Any) -> None:
    with pytest.raises(ValueError, match='openpi has no word for it'):
        policy_at('openpi+ws://127.0.0.1:8000', **options)


def test_openpi_server_behind_tls_is_trusted_by_its_fingerprint_alone(tmp_path: Path) -> None:
    if shutil.which('openssl') is None:
        pytest.skip('there is no openssl to make a certificate with')
    files = [str(tmp_path / name) for name in ('key.pem', 'cert.pem')]
    made = ['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1']
    made += ['-nodes', '-days', '2', '-subj', '/CN=server', '-keyout', files[0], '-out', files[1]]
    subprocess.run(made, check=True, capture_output=True)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(files[1], files[0])
    der = ssl.PEM_cert_to_DER_cert(Path(files[1]).read_text())
    options = {'token': 's3cret', 'connect_timeout_s': PATIENCE_S}
    with scripted(answering({'actions': ROWS}), ssl=tls) as server, ExitStack() as stack:
        url = f'openpi+wss://127.0.0.1:{server.port}'
        trusting = policy_at(url, fingerprint=hashlib.sha256(der).hexdigest(), **options)
        stack.callback(trusting.close)
        assert np.array_equal(asked(trusting)['actions'], ROWS)
        doubting = policy_at(url, **options)
        stack.callback(doubting.close)
        with pytest.raises(HandshakeRefused, match='trusted'):
            doubting.connect()


def test_openpi_server_replays_a_recording_as_the_same_policy_does_in_this_process(
    tmp_path: Path,
) -> None:
    bag = write(tmp_path / 'motion', motion())
    policy = Follow()
    with scripted(lambda connection, message: policy.infer(message)) as server:
        url = f'openpi+ws://127.0.0.1:{server.port}'
        far = replay(bag, parameters(), url, ReplayOptions(cost=charged(0.11)))
    near = replay(bag, parameters(), Follow(), ReplayOptions(cost=charged(0.11)))
    assert far.hash == near.hash
    assert len(far.setpoints['arm']) > 30

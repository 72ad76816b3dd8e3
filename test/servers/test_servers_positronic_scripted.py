"""What a positronic server of an older protocol does, and what none should do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
import shutil
import socket
import ssl
import subprocess
import threading
import time
from typing import Any

import pytest
from seq_harness.client import plain_websocket, positronic_session
from seq_harness.client.endpoint import EndpointRefused
from seq_harness.client.positronic import PositronicPolicy
from seq_harness.client.transport import HandshakeRefused
from seq_harness.playback.uplink import PolicyError, WorkerLost
from servers.positronic_scripted import (
    asked,
    command,
    Meeting,
    meetings,
    META,
    ready,
    step,
)
from servers.scripted import packed
from support.waiting import PATIENCE_S, wait_for
from websockets.sync.server import ServerConnection


@pytest.fixture
def meeting() -> Iterator[Meeting]:
    with meetings() as met:
        yield met


@pytest.mark.parametrize('protocol', [1, 2, 3])
def test_each_protocol_is_asked_in_its_own_way(meeting: Meeting, protocol: int) -> None:
    policy = meeting.serves([command(0)], protocol=protocol)
    asked(policy)
    came = meeting.server.next()
    assert set(came) == ({'state'} if protocol == 1 else {'session_id', 'observation'})
    assert meeting.server.requests[0].path == '/api/v1/session'


def test_the_end_of_an_episode_is_told_where_the_protocol_has_a_word_for_it(
    meeting: Meeting,
) -> None:
    policy = meeting.serves([command(0)])
    policy.connect()
    scope = policy.open_episode(time.monotonic_ns)
    scope.infer(step())
    meeting.server.next()
    scope.close()
    assert meeting.server.next() == {'session_id': 'abc', 'end_session': True}


def test_loading_is_told_as_the_server_tells_it(meeting: Meeting) -> None:
    def speak(connection: ServerConnection) -> None:
        for message in ('Loading checkpoint 20000', None):
            connection.send(packed({'status': 'loading', 'message': message}))
        connection.send(packed(ready(META)))
        connection.recv(PATIENCE_S)

    policy = meeting.meet(speak)
    policy.connect()
    assert any('loading (Loading checkpoint 20000)' in told for told in meeting.told)


def test_a_server_that_falls_silent_while_preparing_is_tried_again(
    meeting: Meeting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(positronic_session, 'STATUS_S', 0.2)
    spoken: list[ServerConnection] = []

    def speak(connection: ServerConnection) -> None:
        spoken.append(connection)
        connection.send(packed({'status': 'waiting'}))
        if len(spoken) > 1:
            connection.send(packed(ready(META)))
        connection.recv(PATIENCE_S)

    policy = meeting.meet(speak)
    policy.connect()
    assert any('said nothing of its session in time' in told for told in meeting.told)


def test_g35_a_server_that_drops_the_socket_while_it_loads_is_tried_again(
    meeting: Meeting,
) -> None:
    spoken: list[ServerConnection] = []

    def speak(connection: ServerConnection) -> None:
        spoken.append(connection)
        connection.send(packed({'status': 'loading'}))
        if len(spoken) > 1:
            connection.send(packed(ready(META)))
            connection.recv(PATIENCE_S)
        connection.close_socket()

    meeting.meet(speak).connect()
    assert len(spoken) == 2


@pytest.mark.parametrize('status', [503, 429])
def test_a_cold_server_is_tried_again(meeting: Meeting, status: int) -> None:
    policy = meeting.serves([command(0)], statuses=(status,))
    assert asked(policy) is not None
    assert len(meeting.server.requests) >= 2


@pytest.mark.parametrize('status', [401, 404])
def test_a_final_refusal_is_told_at_once(meeting: Meeting, status: int) -> None:
    policy = meeting.serves([command(0)], statuses=(status, status))
    with pytest.raises(HandshakeRefused, match=str(status)):
        policy.connect()
    assert len(meeting.server.requests) == 1


def test_no_attempt_begins_past_the_deadline(meeting: Meeting) -> None:
    policy = meeting.serves(statuses=(503,) * 9, connect_timeout_s=1.5)
    with pytest.raises(WorkerLost, match=r'within 1\.5 s.*503'):
        policy.connect()
    assert len(meeting.server.requests) <= 2


@pytest.mark.parametrize(
    ('number', 'error'), [(socket.EAI_NONAME, HandshakeRefused), (socket.EAI_AGAIN, WorkerLost)]
)
def test_a_host_that_does_not_exist_is_no_cold_start(
    monkeypatch: pytest.MonkeyPatch, number: int, error: type[Exception]
) -> None:
    looked_up: list[str] = []

    def look_up(host: str, *rest: Any, **options: Any) -> Any:
        looked_up.append(host)
        raise socket.gaierror(number, 'Name or service not known')

    monkeypatch.setattr(socket, 'getaddrinfo', look_up)
    policy = PositronicPolicy('positronic+ws://gpu.example', connect_timeout_s=2.9)
    with pytest.raises(error, match=r'gpu\.example'):
        policy.connect()
    policy.close()
    assert (len(looked_up) > 1) is (error is WorkerLost)


def test_a_protocol_that_is_not_known_is_named(meeting: Meeting) -> None:
    with pytest.raises(HandshakeRefused, match=r'protocol 4; \[1, 2, 3\] are spoken'):
        meeting.serves(protocol=4).connect()


@pytest.mark.parametrize(
    ('first', 'told'),
    [
        ({'status': 'error', 'error': 'no such model'}, 'refused the session: no such model'),
        ({'action_space': 'joints'}, 'no positronic server'),
        ('Traceback: boom', 'a text came: Traceback: boom'),
    ],
)
def test_what_is_no_session_is_refused_by_name(meeting: Meeting, first: Any, told: str) -> None:
    def speak(connection: ServerConnection) -> None:
        connection.send(first if isinstance(first, str) else packed(first))
        connection.close(1008, 'no')

    with pytest.raises(HandshakeRefused, match=told):
        meeting.meet(speak).connect()


@pytest.mark.parametrize(
    ('answer', 'told'),
    [
        ({'error': 'Shape mismatch'}, 'Shape mismatch'),
        ('Traceback: boom', 'a text came: Traceback: boom'),
        ({'timing': {}}, "holds no 'result'"),
        (b'\xc1', 'could not be read'),
    ],
)
def test_a_failed_inference_is_named_and_its_session_ended(
    meeting: Meeting, answer: Any, told: str
) -> None:
    closed = threading.Event()

    def speak(connection: ServerConnection) -> None:
        connection.send(packed(ready(META)))
        connection.recv(PATIENCE_S)
        connection.send(answer if isinstance(answer, (str, bytes)) else packed(answer))
        try:
            connection.recv(PATIENCE_S)
        finally:
            closed.set()

    with pytest.raises(PolicyError, match=told):
        asked(meeting.meet(speak))
    assert closed.wait(PATIENCE_S)


def test_pings_are_answered_while_nothing_is_asked_and_during_an_inference(
    meeting: Meeting,
) -> None:
    answered = threading.Event()

    def speak(connection: ServerConnection) -> None:
        connection.send(packed(ready(META)))
        if connection.ping().wait(PATIENCE_S):
            answered.set()
        connection.recv(PATIENCE_S)
        assert connection.ping().wait(PATIENCE_S)
        connection.send(packed({'result': [command(0)]}))
        connection.recv(PATIENCE_S)

    policy = meeting.meet(speak)
    policy.connect()
    assert answered.wait(PATIENCE_S)
    assert policy.open_episode(time.monotonic_ns).infer(step()) is not None


def test_a_long_first_inference_is_told_of(
    meeting: Meeting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plain_websocket, 'PROGRESS_S', 0.1)

    def speak(connection: ServerConnection) -> None:
        connection.send(packed(ready(META)))
        connection.recv(PATIENCE_S)
        wait_for(lambda: 'has not answered' in meeting.told[-1], PATIENCE_S, 'a word')
        connection.send(packed({'result': [command(0)]}))
        connection.recv(PATIENCE_S)

    assert asked(meeting.meet(speak)) is not None


def test_pings_are_answered_while_an_episode_pauses(meeting: Meeting) -> None:
    paused, answered = threading.Event(), threading.Event()

    def speak(connection: ServerConnection) -> None:
        connection.send(packed(ready(META)))
        connection.recv(PATIENCE_S)
        connection.send(packed({'result': [command(0)]}))
        if paused.wait(PATIENCE_S) and connection.ping().wait(PATIENCE_S):
            answered.set()
        connection.recv(PATIENCE_S)

    assert asked(meeting.meet(speak)) is not None
    paused.set()
    assert answered.wait(PATIENCE_S)


def test_the_model_of_an_older_server_is_named_in_the_path(meeting: Meeting) -> None:
    policy = meeting.serves([command(0)], model='a/b c', params={'codec.fps': 10, 'tag': '5'})
    policy.connect()
    path = '/api/v1/session/a/b%20c?codec.fps=10&tag=%225%22'
    wait_for(lambda: bool(meeting.server.requests), PATIENCE_S, 'the handshake')
    assert meeting.server.requests[0].path == path
    assert not any('codec' in told for told in meeting.told)


@pytest.mark.parametrize(
    ('options', 'told'),
    [
        ({'seed': 3}, 'no place for seed'),
        ({'embodiment': 'left'}, 'no place for embodiment'),
        ({'via_gateway': True}, 'no place for via_gateway'),
    ],
)
def test_what_has_no_place_on_the_wire_is_refused(options: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        PositronicPolicy('positronic+ws://127.0.0.1:1', **options)


def test_a_token_does_not_travel_in_clear() -> None:
    with pytest.raises(EndpointRefused, match='in clear'):
        PositronicPolicy('positronic+ws://gpu.example:8000', 'secret')


@pytest.fixture(scope='module')
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Make a certificate that is its own authority, and its key."""
    if shutil.which('openssl') is None:
        pytest.skip('there is no openssl to make a certificate with')
    folder: Path = tmp_path_factory.mktemp('tls')
    cert, key = str(folder / 'cert.pem'), str(folder / 'key.pem')
    command_line = [
        *('openssl', 'req', '-x509', '-newkey', 'ec', '-nodes', '-days', '2', '-subj', '/CN=gpu'),
        *('-pkeyopt', 'ec_paramgen_curve:prime256v1', '-addext', 'subjectAltName=IP:127.0.0.1'),
        *('-keyout', key, '-out', cert),
    ]
    subprocess.run(command_line, check=True, capture_output=True)
    return cert, key


def secured(certificate: tuple[str, str]) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*certificate)
    return context


def test_a_server_in_tls_is_shown_the_token(
    meeting: Meeting, certificate: tuple[str, str]
) -> None:
    trusted = ssl.create_default_context(cafile=certificate[0])
    policy = meeting.serves([command(0)], secure=secured(certificate), token='secret', tls=trusted)
    assert asked(policy) is not None
    assert meeting.server.requests[0].headers['Authorization'] == 'Bearer secret'


def test_a_certificate_that_nobody_vouches_for_is_refused_at_once(
    meeting: Meeting, certificate: tuple[str, str]
) -> None:
    policy = meeting.serves(secure=secured(certificate), token='secret')
    with pytest.raises(HandshakeRefused, match='could not be trusted'):
        policy.connect()
    assert not any('waiting' in told for told in meeting.told)
    assert not meeting.server.requests

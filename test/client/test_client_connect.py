"""Connecting: addresses, secrets, waiting for a worker, and being interrupted."""

from __future__ import annotations

from collections.abc import Callable
import logging
from pathlib import Path
import socket
import threading
import time
from typing import Any

from client.scripted_http import ScriptedHttp
from client.scripted_worker import Drop, error, Held, ScriptedWorker
import pytest
from seq_harness.client.endpoint import Endpoint, EndpointRefused
from seq_harness.client.registry import open_policy, policy_at, UnknownScheme
from seq_harness.client.sequence import PolicyClosed, SequencePolicy
from seq_harness.client.transport import HandshakeRefused
from seq_harness.contract import wire
from seq_harness.contract.errors import ErrorCode
from seq_harness.contract.obs_schedule import ReachRefused
from seq_harness.playback.uplink import PolicyError, Step, WorkerLost
from seq_harness.settings.parameter import SettingsError
from seq_harness.settings.worker_parameters import WORKER
from support.ports import free_port
from support.waiting import AT_ONCE_S, PATIENCE_S

Workers = Callable[..., ScriptedWorker]
Policies = Callable[..., SequencePolicy]

TOKEN = 's3cret-of-the-robot'


@pytest.mark.parametrize('url', ['tcp://robot:8765', 'robot:8765', '', 'ftp://x'])
def test_an_address_of_no_wire_is_refused_naming_those_that_are_known(url: str) -> None:
    with pytest.raises(UnknownScheme, match='ws://, wss://'):
        policy_at(url)
    with pytest.raises(UnknownScheme, match='ws://, wss://'):
        SequencePolicy(url)


def test_an_unknown_address_is_told_without_what_may_be_a_secret() -> None:
    with pytest.raises(UnknownScheme) as refused:
        policy_at(f'tcp://me:{TOKEN}@robot?key={TOKEN}')
    assert TOKEN not in str(refused.value)


@pytest.mark.parametrize(
    ('url', 'read'),
    [
        ('ws://127.0.0.1:8765', 'ws://127.0.0.1:8765/v1/ws'),
        ('seq+ws://127.0.0.1:8765/', 'ws://127.0.0.1:8765/v1/ws'),
        ('seq+wss://worker.example/gpu/7', 'wss://worker.example/gpu/7'),
        ('WS://[::1]:1', 'ws://[::1]:1/v1/ws'),
    ],
)
def test_an_address_without_a_path_means_the_bindings_own(url: str, read: str) -> None:
    assert str(Endpoint.read(url)) == read


@pytest.mark.parametrize(
    'url', [f'ws://me:{TOKEN}@127.0.0.1', f'ws://127.0.0.1/?token={TOKEN}', 'ws://127.0.0.1/#x']
)
def test_an_address_that_holds_a_secret_is_refused(url: str) -> None:
    with pytest.raises(EndpointRefused, match='give the secret as the token') as refused:
        Endpoint.read(url)
    assert TOKEN not in str(refused.value)


@pytest.mark.parametrize('url', ['ws://:8765', 'ws://127.0.0.1:notaport', 'ws:///v1/ws'])
def test_an_address_without_a_host_and_a_port_is_refused(url: str) -> None:
    with pytest.raises(EndpointRefused):
        Endpoint.read(url)


@pytest.mark.parametrize('host', ['10.0.0.7', 'gpu-box', 'worker.example', '[2001:db8::1]'])
def test_a_token_goes_in_clear_to_another_machine_only_where_that_is_allowed(host: str) -> None:
    with pytest.raises(EndpointRefused, match='wss:// or https://, or allow_plaintext'):
        Endpoint.read(f'ws://{host}:8765', TOKEN)
    assert Endpoint.read(f'ws://{host}:8765', TOKEN, allow_plaintext=True).token == TOKEN
    assert Endpoint.read(f'wss://{host}:8765', TOKEN).token == TOKEN


@pytest.mark.parametrize('host', ['127.0.0.1', 'localhost', '[::1]'])
def test_a_token_may_go_in_clear_on_this_machine(host: str) -> None:
    assert Endpoint.read(f'ws://{host}:8765', TOKEN).token == TOKEN


@pytest.mark.parametrize(
    ('host', 'direct'),
    [('127.0.0.1', True), ('192.168.1.5', True), ('gpu-box', True), ('gpu.local', True),
     ('8.8.8.8', False), ('worker.example', False)],
)  # fmt: skip
def test_no_proxy_lies_between_us_and_the_machines_beside_us(host: str, direct: bool) -> None:
    assert Endpoint.read(f'ws://{host}').direct is direct


def test_connecting_returns_what_the_worker_declares(workers: Workers, policies: Policies) -> None:
    worker = workers({'columns': ['joint_1'], 'actions': {'hz': 20.0}})
    policy = policies(worker.url, model='pi', embodiment='arm')
    assert not policy.connected
    declaration = policy.connect()
    assert declaration.columns == ['joint_1']
    assert declaration.instance == 'worker-a'
    assert policy.connected
    assert worker.next(wire.CONNECT).body == {'model': 'pi', 'embodiment': 'arm'}


def test_what_a_later_worker_declares_beside_what_is_known_is_ignored(
    workers: Workers, policies: Policies
) -> None:
    assert policies(workers({'from_the_future': 1}).url).connect().instance == 'worker-a'


def test_the_token_is_shown_to_the_worker_and_to_nobody_else(
    workers: Workers, policies: Policies, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    worker = workers(token=TOKEN)
    said: list[str] = []
    policy = policies(worker.url, token=TOKEN, on_state=said.append)
    policy.connect()
    policy.open_episode(lambda: 0).infer(Step(0, 0, {}))
    ours = [record for record in caplog.records if record.name != 'websockets.server']
    assert not any(TOKEN in record.getMessage() for record in ours)
    assert TOKEN not in repr(vars(policy))
    assert not any(TOKEN in text for text in said)


def test_a_refused_token_is_said_at_once(workers: Workers, policies: Policies) -> None:
    policy = policies(workers(token=TOKEN).url, token='wrong')
    with pytest.raises(HandshakeRefused, match='refused the token') as refused:
        policy.connect()
    assert 'wrong' not in str(refused.value)


@pytest.mark.parametrize('options', [{'subprotocol': False}, {'refuse_with': 404}])
def test_a_peer_that_is_no_worker_is_said_at_once(
    workers: Workers, policies: Policies, options: dict[str, Any]
) -> None:
    with pytest.raises(HandshakeRefused, match='the address of a worker'):
        policies(workers(**options).url).connect()


def test_a_worker_that_refuses_the_body_is_said_at_once(
    workers: Workers, policies: Policies
) -> None:
    worker = workers()
    worker.script(wire.CONNECT, error(ErrorCode.INVALID_REQUEST, 'no such embodiment'))
    with pytest.raises(HandshakeRefused, match='invalid_request: no such embodiment'):
        policies(worker.url, embodiment='crane').connect()


def test_nobody_there_is_said_after_the_time_to_connect(policies: Policies) -> None:
    port = free_port()
    began = time.monotonic()
    with pytest.raises(WorkerLost, match=r'within 0\.5 s.*refused'):
        policies(f'ws://127.0.0.1:{port}', connect_timeout_s=0.5).connect()
    assert time.monotonic() - began < AT_ONCE_S


def test_a_worker_that_comes_up_later_is_waited_for(workers: Workers, policies: Policies) -> None:
    worker = workers()
    worker.stop()
    policy = policies(worker.url, on_state=lambda text: worker.start() if 'wait' in text else None)
    assert policy.connect().instance == 'worker-a'


def test_a_warming_worker_is_waited_for_and_its_time_is_told(
    workers: Workers, policies: Policies
) -> None:
    worker = workers()
    warming = error(
        ErrorCode.WARMING, 'the policy loads', retry_after_s=0.01, details={'eta_s': 12.0}
    )
    worker.script(wire.CONNECT, warming, warming)
    said: list[str] = []
    policy = policies(worker.url, on_state=said.append)
    assert policy.connect().instance == 'worker-a'
    assert [text for text in said if 'about 12 s more' in text] == said[:1]
    assert said[-1] == f'connected to {worker.url}/v1/ws'


def test_a_worker_that_never_warms_is_given_up(workers: Workers, policies: Policies) -> None:
    worker = workers()
    worker.script(wire.CONNECT, *[error(ErrorCode.WARMING, retry_after_s=9.0)] * 3)
    with pytest.raises(WorkerLost, match='warming'):
        policies(worker.url, connect_timeout_s=0.3).connect()


def interrupted(
    policy: SequencePolicy, work: Callable[[], object], until: Callable[[], object]
) -> float:
    """Close the policy once `work` waits for the worker; return how long that took, in s."""
    failures: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as caught:
            failures.append(caught)

    thread = threading.Thread(target=run)
    thread.start()
    until()
    began_s = time.monotonic()
    policy.close()
    thread.join(PATIENCE_S)
    assert not thread.is_alive()
    assert [type(failure) for failure in failures] == [PolicyClosed]
    return time.monotonic() - began_s


def test_connecting_to_a_peer_that_says_nothing_is_interrupted_at_once(
    policies: Policies,
) -> None:
    with socket.create_server(('127.0.0.1', 0)) as silent:
        silent.settimeout(PATIENCE_S)
        policy = policies(f'ws://127.0.0.1:{silent.getsockname()[1]}')
        assert interrupted(policy, policy.connect, silent.accept) < AT_ONCE_S


def test_waiting_for_a_worker_to_warm_is_interrupted_at_once(
    workers: Workers, policies: Policies
) -> None:
    worker = workers()
    worker.script(wire.CONNECT, error(ErrorCode.WARMING, retry_after_s=PATIENCE_S / 2))
    waits = threading.Event()
    policy = policies(worker.url, on_state=lambda text: waits.set())
    assert interrupted(policy, policy.connect, lambda: waits.wait(PATIENCE_S)) < AT_ONCE_S


def test_a_greeting_that_is_not_answered_is_interrupted_at_once(
    workers: Workers, policies: Policies
) -> None:
    worker = workers()
    go = threading.Event()
    worker.script(wire.CONNECT, Held(go))
    policy = policies(worker.url)
    assert interrupted(policy, policy.connect, lambda: worker.next(wire.CONNECT)) < AT_ONCE_S
    go.set()


def test_a_warm_up_is_interrupted_at_once(workers: Workers, policies: Policies) -> None:
    worker = workers()
    go = threading.Event()
    worker.script(wire.ACT, Held(go))
    policy = policies(worker.url)
    policy.connect()
    took_s = interrupted(policy, lambda: policy.warm_up({}), lambda: worker.next(wire.ACT))
    assert took_s < AT_ONCE_S
    go.set()


def test_a_closed_policy_opens_nothing(workers: Workers, policies: Policies) -> None:
    policy = policies(workers().url)
    policy.connect()
    policy.close()
    policy.close()
    with pytest.raises(PolicyClosed):
        policy.open_episode(lambda: 0)
    with pytest.raises(PolicyClosed):
        policy.connect()


def test_an_episode_before_connecting_is_refused(policies: Policies) -> None:
    with pytest.raises(RuntimeError, match='call connect first'):
        policies('ws://127.0.0.1:1').open_episode(lambda: 0)


def test_parameters_that_the_policy_does_not_declare_are_refused(
    workers: Workers, policies: Policies
) -> None:
    worker = workers({'params': {'steps': {'type': 'int', 'max': 10}}})
    with pytest.raises(ValueError, match=r"\['speed'\] are not declared; known are \['steps'\]"):
        policies(worker.url, params={'speed': 1}).connect()
    with pytest.raises(ValueError, match='at most 10'):
        policies(worker.url, params={'steps': 11}).connect()


def test_a_window_that_the_worker_could_never_fill_is_refused(
    workers: Workers, policies: Policies
) -> None:
    worker = workers(
        {'observations': {'streams': {'cam': {'at': [-50, 0]}}}, 'max_stream_frames': 40}
    )
    with pytest.raises(ReachRefused, match='40'):
        policies(worker.url).connect()


def test_warming_up_asks_once_in_an_episode_of_its_own_and_ends_it(
    workers: Workers, policies: Policies
) -> None:
    worker = workers()
    policy = policies(worker.url)
    policy.connect()
    policy.warm_up({'state': 1.0})
    act = worker.next(wire.ACT)
    assert (act.body[wire.KEY_INPUTS], act.body[wire.KEY_SEQ]) == ({'state': 1.0}, 0)
    ended = worker.next(wire.EPISODE_END)
    assert ended.body == {wire.KEY_EPISODE_ID: act.body[wire.KEY_EPISODE_ID]}
    policy.open_episode(lambda: 0).infer(Step(0, 0, {}))
    assert worker.next(wire.ACT).body[wire.KEY_EPISODE_ID] != act.body[wire.KEY_EPISODE_ID]


def test_a_warm_up_that_fails_says_why(workers: Workers, policies: Policies) -> None:
    worker = workers()
    worker.script(wire.ACT, error(ErrorCode.POLICY_ERROR, 'no kernel image'))
    policy = policies(worker.url)
    policy.connect()
    with pytest.raises(PolicyError, match='no kernel image'):
        policy.warm_up({})


def test_a_connection_lost_between_episodes_is_made_again(
    workers: Workers, policies: Policies
) -> None:
    worker = workers()
    back = threading.Event()
    policy = policies(worker.url, on_state=lambda text: back.set() if 'back' in text else None)
    policy.connect()
    worker.drop_all()
    assert back.wait(PATIENCE_S)
    assert policy.connected


def test_a_greeting_that_drops_is_tried_again(workers: Workers, policies: Policies) -> None:
    worker = workers()
    worker.script(wire.CONNECT, Drop())
    assert policies(worker.url).connect().instance == 'worker-a'


def parameters_of(**values: Any) -> dict[str, Any]:
    """Return the robot's parameters, by default but for `values`."""
    return {parameter.name: parameter.default for parameter in WORKER} | values


def test_the_robots_parameters_make_the_client(workers: Workers, tmp_path: Path) -> None:
    worker = workers({'params': {'steps': {'type': 'int', 'default': 4}}}, token=TOKEN)
    file = tmp_path / 'token'
    file.write_text(f'{TOKEN}\n')
    parameters = parameters_of(
        worker_url=worker.url,
        worker_token_file=str(file),
        model='pi',
        embodiment='arm',
        seed=7,
        policy_params='{"steps": 5}',
    )
    policy = open_policy(parameters)
    try:
        assert policy.connect().instance == 'worker-a'
        policy.open_episode(lambda: 0).infer(Step(0, 0, {}))
    finally:
        policy.close()
    assert worker.next(wire.CONNECT).body == {'model': 'pi', 'embodiment': 'arm'}
    act = worker.next(wire.ACT).body
    assert (act['seed'], act['params'], act['embodiment']) == (7, {'steps': 5}, 'arm')
    file.write_text('\n')
    with pytest.raises(ValueError, match='holds no token'):
        open_policy(parameters)


@pytest.mark.parametrize('text', ['[1]', '{"steps": ', 'steps=5'])
def test_params_that_are_no_json_object_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="parameter 'policy_params': a JSON object was expected"):
        open_policy(parameters_of(policy_params=text))


@pytest.mark.parametrize(
    ('values', 'said'),
    [
        ({'worker_url': 'tcp://robot:1'}, "'worker_url': a worker URL starts with one of"),
        ({'worker_url': 'ws://'}, "'worker_url': a worker URL names a host"),
        ({'worker_url': 'ws://me:secret@127.0.0.1'}, "'worker_url': .*give the secret as the tok"),
        ({'gateway_url': 'https://'}, "'gateway_url': "),
        ({'worker_token_file': '/no/such/token'}, "'worker_token_file': .*'/no/such/token'"),
        ({'tls_ca_file': '/no/such/ca.pem'}, "'tls_ca_file': .*'/no/such/ca.pem'"),
        ({'tls_ca_file': __file__}, f"'tls_ca_file': .*{Path(__file__).name}"),
        ({'tls_fingerprint': 'ab'}, "'tls_fingerprint': a fingerprint is the 64 hex digits"),
    ],
)
def test_what_is_wrong_with_the_way_to_the_worker_names_its_parameter(
    values: dict[str, Any], said: str
) -> None:
    with pytest.raises(SettingsError, match=f'parameter {said}'):
        open_policy(parameters_of(**values))


def test_a_gateway_is_asked_in_place_of_the_worker() -> None:
    gateway = ScriptedHttp()
    try:
        policy = open_policy(parameters_of(gateway_url=gateway.url, model='pi'))
        policy.connect()
        policy.close()
    finally:
        gateway.stop()
    assert gateway.next(wire.PATH_CONNECT).body['model'] == 'pi'
    assert gateway.next(wire.PATH_RELEASE)

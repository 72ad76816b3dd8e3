"""Workers that a gateway names: leases, seats, lines, and what ends them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
import json
import logging
import threading
from typing import Any

from client.robot import Robot
from client.scripted_http import ScriptedHttp
from client.scripted_worker import error
import pytest
from seq_harness.client.endpoint import Endpoint
from seq_harness.client.lease import read_lease
from seq_harness.client.sequence import SequencePolicy
from seq_harness.client.transport import HandshakeRefused
from seq_harness.contract import wire
from seq_harness.contract.errors import ErrorCode
from seq_harness.playback.uplink import PolicyError, StateLost
from support.waiting import PATIENCE_S

KEY, SECRET = 'key-of-the-account', 'secret-of-the-worker'

Policies = Callable[..., SequencePolicy]


@pytest.fixture
def gateways() -> Iterator[Callable[..., ScriptedHttp]]:
    """Return a maker of gateways, each of which is its own worker."""
    with ExitStack() as stack:

        def make(*args: Any, **options: Any) -> ScriptedHttp:
            gateway = ScriptedHttp(*args, **options)
            gateway.coordinates['direct_secret'] = SECRET
            stack.callback(gateway.stop)
            return gateway

        yield make


Gateways = Callable[..., ScriptedHttp]


def through(policies: Policies, gateway: ScriptedHttp, **options: Any) -> SequencePolicy:
    options = {'token': KEY, 'model': 'pi', **options}
    return policies(gateway.url, via_gateway=True, **options)


def bearer(posted: Any) -> str:
    return str(posted.headers[wire.HEADER_AUTHORIZATION])


def test_the_gateway_is_shown_the_key_and_the_worker_its_own_secret(
    gateways: Gateways, policies: Policies
) -> None:
    gateway = gateways({'observations': {'every': 1}})
    robot = Robot(through(policies, gateway, embodiment='arm'))
    robot.act()
    asked = gateway.next(wire.PATH_CONNECT)
    assert bearer(asked) == f'Bearer {KEY}'
    session = json.loads(asked.raw).pop('session')
    assert json.loads(asked.raw) == {
        'model': 'pi', 'embodiment': 'arm', 'session': session, 'keepalive': True,
    }  # fmt: skip
    act = gateway.next(wire.PATH_ACT)
    assert bearer(act) == f'Bearer {SECRET}'
    assert act.headers[wire.HEADER_SESSION] == session
    assert robot.declaration.observations is not None


def test_no_secret_is_said_or_shown(
    gateways: Gateways, policies: Policies, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    gateway = gateways()
    said: list[str] = []
    policy = through(policies, gateway, on_state=said.append)
    robot = Robot(policy)
    gateway.script(wire.PATH_ACT, error(ErrorCode.UNAUTHENTICATED))
    robot.act()
    address = Endpoint.read(gateway.url, KEY)
    lease = read_lease(gateway.plain(gateway.next(wire.PATH_CONNECT))[1], address, False, 1 << 20)
    texts = [*said, *(record.getMessage() for record in caplog.records)]
    texts += [repr(vars(policy)), repr(lease), repr(address), repr(policy.figures())]
    assert not any(secret in text for text in texts for secret in (KEY, SECRET))
    assert all(secret not in posted.target
               for posted in list(gateway.asked.queue) for secret in (KEY, SECRET))  # fmt: skip


def test_a_warming_worker_and_a_line_are_waited_in_and_told(
    gateways: Gateways, policies: Policies
) -> None:
    gateway = gateways()
    gateway.script(
        wire.PATH_CONNECT, error(ErrorCode.WARMING, retry_after_s=0.01, details={'eta_s': 40.0})
    )
    told = {'ready': False, 'status': 'queued', 'queue_position': 3, 'eta_s': 20}
    gateway.script(wire.PATH_READY, (200, {**told, 'retry_after_s': 0.01}))
    said: list[str] = []
    assert through(policies, gateway, on_state=said.append).connect()
    assert any('about 40 s more' in text for text in said)
    assert any('queued; place 3 in the line; about 20 s more' in text for text in said)
    ready = gateway.next(wire.PATH_READY)
    assert ready.target.endswith('&keepalive=true')
    assert 'model=pi&' in ready.target


def test_a_lease_is_renewed_ahead_of_its_end_and_the_connection_goes_on(
    gateways: Gateways, policies: Policies
) -> None:
    gateway = gateways()
    gateway.lease = {'ttl_s': 1, 'epoch': 7}
    robot = Robot(through(policies, gateway))
    first = robot.act(), gateway.next(wire.PATH_ACT)
    renewed = gateway.next(wire.PATH_CONNECT)
    assert bearer(renewed) == f'Bearer {KEY}'
    assert first[0] == {'seq': 0}
    assert robot.act() == {'seq': 1}
    assert gateway.next(wire.PATH_ACT).connection == first[1].connection


def test_another_epoch_means_another_connection_and_the_episode_anew(
    gateways: Gateways, policies: Policies
) -> None:
    gateway = gateways()
    changed = threading.Event()
    gateway.lease = {'ttl_s': 1, 'epoch': 7}

    def listen(text: str) -> None:
        if 'another worker' in text:
            changed.set()

    robot = Robot(through(policies, gateway, on_state=listen))
    robot.act()
    first = gateway.next(wire.PATH_ACT)
    gateway.lease = {'ttl_s': 300, 'epoch': 8}
    assert changed.wait(PATIENCE_S)
    assert robot.act() == {'seq': 0}
    second = gateway.next(wire.PATH_ACT)
    assert second.connection != first.connection
    assert second.body['episode_id'] != first.body['episode_id']


def test_a_policy_that_keeps_state_loses_it_with_the_epoch(
    gateways: Gateways, policies: Policies
) -> None:
    gateway = gateways({'keeps_state': True})
    robot = Robot(through(policies, gateway))
    robot.act()
    gateway.lease['epoch'] = 2
    gateway.script(wire.PATH_ACT, error(ErrorCode.UNAUTHENTICATED))
    with pytest.raises(StateLost):
        robot.act()


def test_a_secret_that_rolled_is_asked_for_again_and_the_same_act_goes_on(
    gateways: Gateways, policies: Policies
) -> None:
    gateway = gateways()
    robot = Robot(through(policies, gateway))
    robot.act()
    gateway.script(wire.PATH_ACT, error(ErrorCode.UNAUTHENTICATED))
    gateway.coordinates['direct_secret'] = 'the-next'
    assert robot.act() == {'seq': 1}
    _, refused, again = gateway.pending(wire.PATH_ACT)
    assert bearer(again) == 'Bearer the-next'
    assert refused.headers[wire.HEADER_REQUEST_ID] == again.headers[wire.HEADER_REQUEST_ID]


def test_a_secret_that_is_never_taken_is_not_asked_for_without_end(
    gateways: Gateways, policies: Policies
) -> None:
    gateway = gateways()
    robot = Robot(through(policies, gateway))
    gateway.script(wire.PATH_ACT, *[error(ErrorCode.UNAUTHENTICATED)] * 9)
    with pytest.raises(PolicyError, match='unauthenticated'):
        robot.act()
    assert len(gateway.pending(wire.PATH_ACT)) == 6


def test_a_place_that_is_gone_is_given_back_and_another_one_asked_for(
    gateways: Gateways, policies: Policies
) -> None:
    gateway = gateways()
    robot = Robot(through(policies, gateway))
    gateway.next(wire.PATH_CONNECT)
    gateway.script(wire.PATH_ACT, error(ErrorCode.BUSY, details={'reason': wire.NO_PLACE}))
    assert robot.act() == {'seq': 0}
    assert [one.target for one in list(gateway.asked.queue)] == [
        wire.PATH_PING, wire.PATH_ACT, wire.PATH_RELEASE, wire.PATH_CONNECT, wire.PATH_PING,
        wire.PATH_ACT,
    ]  # fmt: skip


def test_a_worker_that_moved_is_asked_for_after_its_connection_was_lost(
    gateways: Gateways, policies: Policies
) -> None:
    gateway, moved_to = gateways(), gateways(instance='worker-b')
    robot = Robot(through(policies, gateway))
    robot.act()
    gateway.coordinates['worker_url'] = moved_to.url
    gateway.script(wire.PATH_ACT, error(ErrorCode.UNAVAILABLE, details={'reason': wire.DRAINING}))
    assert robot.act() == {'seq': 0}
    assert moved_to.next(wire.PATH_ACT)


def test_a_seat_is_kept_and_one_that_is_not_held_is_asked_for_again(
    gateways: Gateways, policies: Policies
) -> None:
    gateway = gateways()
    gateway.keepalive = {'every_s': 0.05}
    policy = through(policies, gateway)
    policy.connect()
    connected = gateway.next(wire.PATH_CONNECT)
    kept = gateway.next(wire.PATH_KEEPALIVE)
    assert json.loads(kept.raw) == {
        'model': 'pi', 'session': json.loads(connected.raw)['session'],
    }  # fmt: skip
    gateway.script(wire.PATH_KEEPALIVE, (200, {'held': False}))
    gateway.next(wire.PATH_CONNECT)


def test_closing_gives_the_place_back(gateways: Gateways, policies: Policies) -> None:
    gateway = gateways()
    policy = through(policies, gateway)
    policy.connect()
    policy.close()
    released = gateway.next(wire.PATH_RELEASE)
    assert set(json.loads(released.raw)) == {'model', 'session'}


@pytest.mark.parametrize(
    'told',
    [
        {'worker_url': None},
        {'worker_url': 'ws://127.0.0.1:1'},
        {'worker_url': 'http://gpu.example:80'},
        {'worker_url': 'https://127.0.0.1:1', 'cert_fingerprint': ''},
        {'worker_url': 'https://127.0.0.1:1', 'cert_fingerprint': 'beef'},
        {'direct_secret': None},
        {'lease': None},
    ],
    ids=['no-url', 'websocket', 'in-clear', 'no-pin', 'short-pin', 'no-secret', 'no-lease'],
)
def test_coordinates_that_cannot_be_followed_are_refused(
    gateways: Gateways, policies: Policies, told: dict[str, Any]
) -> None:
    gateway = gateways()
    gateway.coordinates.update(told)
    with pytest.raises(HandshakeRefused) as refused:
        through(policies, gateway).connect()
    assert SECRET not in str(refused.value)


def test_a_gateway_that_refuses_the_key_is_said_at_once(
    gateways: Gateways, policies: Policies
) -> None:
    gateway = gateways()
    gateway.script(wire.PATH_CONNECT, error(ErrorCode.UNAUTHENTICATED, 'no such key'))
    with pytest.raises(HandshakeRefused, match='unauthenticated: no such key'):
        through(policies, gateway).connect()

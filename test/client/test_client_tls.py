"""Workers behind TLS, over both bindings: pinned, by a CA, and not to be trusted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
import hashlib
from pathlib import Path
import shutil
import socket
import ssl
import subprocess
import threading
from typing import Any

import pytest
from seq_harness.client.endpoint import EndpointRefused
from seq_harness.client.sequence import PolicyClosed, SequencePolicy
from seq_harness.client.transport import HandshakeRefused
from seq_harness.playback.uplink import Step, WorkerLost
from seq_harness.worker.running import served
from seq_harness.worker.server import Access
from support.waiting import PATIENCE_S

TOKEN = 'token-that-must-not-leak'
Policies = Callable[..., SequencePolicy]


class Echo:
    def infer(self, inputs: Any) -> Any:
        return inputs


@pytest.fixture(scope='module')
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Make a certificate that is its own authority, and its key."""
    if shutil.which('openssl') is None:
        pytest.skip('there is no openssl to make a certificate with')
    folder = tmp_path_factory.mktemp('tls')
    cert, key = folder / 'cert.pem', folder / 'key.pem'
    subprocess.run(
        [
            *('openssl', 'req', '-x509', '-newkey', 'ec', '-nodes', '-days', '2'),
            *('-pkeyopt', 'ec_paramgen_curve:prime256v1', '-subj', '/CN=worker'),
            *('-addext', 'subjectAltName=IP:127.0.0.1'),
            *('-keyout', str(key), '-out', str(cert)),
        ],
        check=True,
        capture_output=True,
    )
    return cert, key


@pytest.fixture(scope='module')
def fingerprint(certificate: tuple[Path, Path]) -> str:
    der = ssl.PEM_cert_to_DER_cert(certificate[0].read_text())
    return hashlib.sha256(der).hexdigest()


@pytest.fixture(scope='module')
def port(certificate: tuple[Path, Path]) -> Iterator[str]:
    """Serve a policy in TLS for the module; its host and port."""
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(*certificate)
    with served(Echo(), access=Access(token=TOKEN, tls=tls)) as url:
        yield url.removeprefix('wss://').partition('/')[0]


def suppressed(policy: SequencePolicy) -> None:
    with suppress(PolicyClosed, WorkerLost):
        policy.connect()


def ask(policy: SequencePolicy) -> Any:
    policy.connect()
    scope = policy.open_episode(lambda: 0)
    return scope.infer(Step(0, 0, {'state': b'1'}))


@pytest.mark.parametrize('scheme', ['wss', 'https'])
def test_a_pinned_certificate_is_trusted_for_what_it_is(
    scheme: str, port: str, fingerprint: str, policies: Policies
) -> None:
    shown = ':'.join(fingerprint[i : i + 2] for i in range(0, 64, 2)).upper()
    policy = policies(f'{scheme}://{port}', token=TOKEN, fingerprint=shown)
    assert ask(policy) == {'state': b'1'}


@pytest.mark.parametrize('scheme', ['wss', 'https'])
def test_another_certificate_than_the_pinned_one_is_fatal_and_sees_no_token(
    scheme: str, port: str, policies: Policies
) -> None:
    policy = policies(f'{scheme}://{port}', token=TOKEN, fingerprint='ab' * 32)
    with pytest.raises(HandshakeRefused, match=r'could not be trusted.*was expected') as refused:
        policy.connect()
    assert TOKEN not in str(refused.value)


@pytest.mark.parametrize('scheme', ['wss', 'https'])
def test_an_authority_is_trusted_for_what_it_signed(
    scheme: str, port: str, certificate: tuple[Path, Path], policies: Policies
) -> None:
    tls = ssl.create_default_context(cafile=str(certificate[0]))
    assert ask(policies(f'{scheme}://{port}', token=TOKEN, tls=tls)) == {'state': b'1'}


@pytest.mark.parametrize('scheme', ['wss', 'https'])
def test_an_authority_that_nobody_named_is_not_trusted(
    scheme: str, port: str, policies: Policies
) -> None:
    with pytest.raises(HandshakeRefused, match='could not be trusted'):
        policies(f'{scheme}://{port}', token=TOKEN).connect()


def test_a_fingerprint_that_is_none_is_refused() -> None:
    with pytest.raises(EndpointRefused, match='64 hex digits'):
        SequencePolicy('wss://127.0.0.1', fingerprint='sha256')


@pytest.mark.parametrize('scheme', ['ws', 'http'])
def test_the_environments_proxy_leads_to_a_machine_elsewhere(
    scheme: str, monkeypatch: pytest.MonkeyPatch, policies: Policies
) -> None:
    with socket.create_server(('127.0.0.1', 0)) as proxy:
        monkeypatch.setenv('http_proxy', f'http://me:pass@127.0.0.1:{proxy.getsockname()[1]}')
        monkeypatch.delenv('no_proxy', raising=False)
        policy = policies(f'{scheme}://worker.example:81', connect_timeout_s=PATIENCE_S)
        connecting = threading.Thread(target=lambda: suppressed(policy), daemon=True)
        connecting.start()
        proxy.settimeout(PATIENCE_S)
        asked, _ = proxy.accept()
        with asked:
            head = asked.recv(4096).decode()
        policy.close()
        connecting.join(PATIENCE_S)
    assert head.startswith('CONNECT worker.example:81 HTTP/1')
    assert 'Proxy-Authorization: Basic bWU6cGFzcw==' in head


def test_neither_binding_goes_through_a_proxy_to_a_machine_beside_us(
    monkeypatch: pytest.MonkeyPatch, policies: Policies
) -> None:
    for name in ('http_proxy', 'https_proxy', 'all_proxy', 'HTTP_PROXY', 'HTTPS_PROXY'):
        monkeypatch.setenv(name, 'http://127.0.0.1:9')
    monkeypatch.delenv('no_proxy', raising=False)
    with served(Echo()) as url:
        for near in (url, f'http://{url.removeprefix("ws://").partition("/")[0]}'):
            assert ask(policies(near)) == {'state': b'1'}

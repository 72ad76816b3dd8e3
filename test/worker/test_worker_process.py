"""The command worker, as a process of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
import os
from pathlib import Path
import re
import shutil
import signal
import ssl
import subprocess
import sys
import textwrap
import time
from typing import Any

import numpy as np
import pytest
from seq_harness.contract.msgpack import pack
from support.waiting import AT_ONCE_S, PATIENCE_S
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect
from worker.worker_wire import client_of, raw_websocket

HOLD = 'seq_harness.worker.policies.hold:Hold'

LINE = re.compile(r'serving (\S+) on (ws://127\.0\.0\.1:\d+/v1/ws)\n')


def command(*arguments: str) -> list[str]:
    return [sys.executable, '-m', 'seq_harness.cli.worker', *arguments]


@contextmanager
def process(
    *arguments: str, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[str]]:
    """Start a worker process; kill it at the end if it is still there."""
    with subprocess.Popen(
        command('--port', '0', *arguments),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=cwd,
        env=env,
    ) as worker:
        try:
            yield worker
        finally:
            worker.kill()


def url_of(worker: subprocess.Popen[str]) -> str:
    assert worker.stdout is not None
    line = LINE.fullmatch(worker.stdout.readline())
    assert line is not None, worker.communicate()
    return line[2]


def run(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments), capture_output=True, text=True, cwd=cwd, timeout=PATIENCE_S
    )


def write_policy(folder: Path, text: str) -> None:
    (folder / 'my_policy.py').write_text(textwrap.dedent(text))


def test_one_line_says_what_is_served_and_where() -> None:
    with process(HOLD) as worker:
        url = url_of(worker)
        with client_of(url) as client:
            assert client.connect().status == 200
        worker.terminate()
        output, _ = worker.communicate(timeout=PATIENCE_S)
    assert output == ''
    assert worker.returncode == 0


@pytest.mark.parametrize('number', [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_the_process_at_once_even_when_an_inference_hangs(
    number: signal.Signals, tmp_path: Path
) -> None:
    write_policy(
        tmp_path,
        """
        import threading

        class Hangs:
            def infer(self, inputs):
                print('hanging', flush=True)
                threading.Event().wait()
        """,
    )
    with process('my_policy:Hangs', cwd=tmp_path) as worker, client_of(url_of(worker)) as client:
        client.connect()
        client.send('act', {'inputs': 1})
        assert client.ask('ping', {}).body['act']['running'] is True
        began = time.monotonic()
        worker.send_signal(number)
        with pytest.raises(ConnectionClosed) as closed:
            client.socket.recv(PATIENCE_S)
        while worker.poll() is None:
            worker.send_signal(number)
        assert worker.returncode == 0
        assert time.monotonic() - began < AT_ONCE_S
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1001


def test_a_signal_ends_a_process_whose_policy_never_stops_computing(tmp_path: Path) -> None:
    write_policy(
        tmp_path,
        """
        def infer(inputs):
            while True:
                pass

        class Spins:
            infer = staticmethod(infer)
        """,
    )
    with process('my_policy:Spins', cwd=tmp_path) as worker, client_of(url_of(worker)) as client:
        client.connect()
        client.send('act', {'inputs': 1})
        assert client.ask('ping', {}).body['act']['running'] is True
        began = time.monotonic()
        worker.terminate()
        assert worker.wait(PATIENCE_S) == 0
        assert time.monotonic() - began < AT_ONCE_S


def test_a_signal_while_the_policy_loads_ends_the_process(tmp_path: Path) -> None:
    write_policy(
        tmp_path,
        """
        import threading

        class Loads:
            def load(self):
                threading.Event().wait()
            def infer(self, inputs):
                return inputs
        """,
    )
    with process('my_policy:Loads', cwd=tmp_path) as worker, client_of(url_of(worker)) as client:
        assert client.act(1).code == 'warming'
        worker.terminate()
        assert worker.wait(PATIENCE_S) == 0


def test_a_restarted_worker_is_another_instance(tmp_path: Path) -> None:
    instances = []
    for _ in range(2):
        with process(HOLD) as worker, client_of(url_of(worker)) as client:
            instances.append(client.connect().body['instance'])
            worker.kill()
            with pytest.raises(ConnectionClosed):
                client.socket.recv(PATIENCE_S)
    assert instances[0] != instances[1]


def test_an_object_is_served_and_what_it_prints_goes_to_standard_error(tmp_path: Path) -> None:
    write_policy(
        tmp_path,
        """
        class Policy:
            name = 'doubling'
            def infer(self, inputs):
                print('thinking')
                return inputs * 2

        policy = Policy()
        """,
    )
    with process('my_policy:policy', cwd=tmp_path) as worker:
        assert worker.stdout is not None
        line = LINE.fullmatch(worker.stdout.readline())
        assert line is not None
        assert line[1] == 'doubling'
        with client_of(line[2]) as client:
            client.connect()
            assert client.act(4).outputs == 8
        worker.terminate()
        output, errors = worker.communicate(timeout=PATIENCE_S)
    assert output == ''
    assert 'thinking' in errors


def test_settings_reach_the_class() -> None:
    arguments = (HOLD, '--set', 'joints=3', '--set', 'hz=10')
    with process(*arguments) as worker, client_of(url_of(worker)) as client:
        declared = client.connect().body
    assert declared['columns'] == ['joint_1', 'joint_2', 'joint_3']
    assert declared['actions']['hz'] == 10


def test_a_token_is_read_from_its_file(tmp_path: Path) -> None:
    (tmp_path / 'token').write_text('secret\n')
    flags = ('--token-file', str(tmp_path / 'token'))
    with process(HOLD, *flags) as worker, client_of(url_of(worker), 'secret') as client:
        assert client.connect().status == 200


@pytest.mark.parametrize(('flags', 'told'), [([], False), (['--debug'], True)])
def test_g37_a_traceback_goes_to_the_log_and_to_the_client_only_under_debug(
    flags: list[str], told: bool, tmp_path: Path
) -> None:
    write_policy(
        tmp_path,
        """
        class Fails:
            def infer(self, inputs):
                raise ValueError('the reason')
        """,
    )
    with process('my_policy:Fails', *flags, cwd=tmp_path) as worker:
        url = url_of(worker)
        with client_of(url) as client:
            client.connect()
            exception = client.act(1).body['details']['exception']
        with connect(url.removesuffix('/v1/ws')) as openpi:
            openpi.recv(PATIENCE_S)
            openpi.send(b'\x80')
            text = str(openpi.recv(PATIENCE_S))
        worker.terminate()
        _, errors = worker.communicate(timeout=PATIENCE_S)
    assert exception['message'] == 'the reason'
    assert ('traceback' in exception) is told
    assert text.startswith('Traceback' if told else 'policy_error: ')
    assert text.splitlines()[-1] == 'policy_error: the policy failed: ValueError: the reason'
    assert 'my_policy.py' in errors


@pytest.mark.parametrize(
    ('arguments', 'says'),
    [
        (['no_such_module:Policy'], 'no_such_module'),
        (['json:Policy'], "'Policy'"),
        (['json'], 'MODULE:POLICY'),
        ([HOLD, '--host', '0.0.0.0'], 'token'),
        ([HOLD, '--token-file', 'no-such-file'], 'no-such-file'),
        ([HOLD, '--tls-cert', 'cert.pem'], '--tls-key'),
        (['json:dumps', '--set', 'a=1'], 'class'),
        ([HOLD, '--set', 'joints'], 'NAME=VALUE'),
        ([HOLD, '--port', '99999'], '99999'),
    ],
)
def test_wrong_arguments_are_told_and_end_with_status_2(arguments: list[str], says: str) -> None:
    ended = run(*arguments)
    assert ended.returncode == 2, ended
    assert says in ended.stderr
    assert 'Traceback' not in ended.stderr
    assert ended.stdout == ''


def test_the_worker_imports_nothing_of_ros() -> None:
    code = 'import sys, seq_harness.cli.worker; print([m for m in sys.modules if "rcl" in m])'
    told = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True)
    assert told.stdout == '[]\n'


def test_acts_without_inputs_are_announced_when_asked_for() -> None:
    with process(HOLD, '--call') as worker, client_of(url_of(worker)) as client:
        assert 'x-seq-call/1' in client.connect().body['formats']


def test_a_port_that_is_taken_is_told() -> None:
    with process(HOLD) as worker:
        port = url_of(worker).split(':')[2].split('/')[0]
        ended = run(HOLD, '--port', port)
    assert ended.returncode == 2
    assert port in ended.stderr
    assert ended.stdout == ''


def test_a_policy_that_cannot_be_loaded_ends_the_process_with_status_1(tmp_path: Path) -> None:
    write_policy(
        tmp_path,
        """
        class Broken:
            def load(self):
                raise FileNotFoundError('no weights')
            def infer(self, inputs):
                return inputs
        """,
    )
    ended = run('my_policy:Broken', '--port', '0', cwd=tmp_path)
    assert ended.returncode == 1
    assert 'no weights' in ended.stderr.splitlines()[-1]


def certificate(folder: Path) -> tuple[Path, Path]:
    """Make a certificate of its own for the loopback."""
    cert, key = folder / 'cert.pem', folder / 'key.pem'
    made = subprocess.run(
        ['openssl', 'req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj',
         '/CN=localhost', '-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', str(key), '-out',
         str(cert)],
        capture_output=True,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    return cert, key


def test_tls_is_served_with_a_certificate(tmp_path: Path) -> None:
    if shutil.which('openssl') is None:
        pytest.skip('there is no openssl to make a certificate with')
    cert, key = certificate(tmp_path)
    with process(HOLD, '--tls-cert', str(cert), '--tls-key', str(key)) as worker:
        assert worker.stdout is not None
        url: Any = worker.stdout.readline().split(' on ')[1].strip()
        assert url.startswith('wss://')
        trust = ssl.create_default_context(cafile=str(cert))
        with client_of(url, ssl=trust) as client:
            assert client.connect().status == 200


def test_clients_that_neither_read_nor_answer_do_not_hold_up_the_end(tmp_path: Path) -> None:
    write_policy(
        tmp_path,
        """
        class Large:
            def infer(self, inputs):
                return bytes(32 << 20)
        """,
    )
    with process('my_policy:Large', cwd=tmp_path) as worker:
        url = url_of(worker)
        with client_of(url) as client:
            client.connect()
        silent = [raw_websocket(url) for _ in range(4)]
        message = pack({'id': 1, 'method': 'act', 'body': {'inputs': 1}})
        for raw in silent:
            raw.sendall(bytes([0x82, 0x80 | len(message)]) + bytes(4) + message)
            assert raw.recv(1)
        began = time.monotonic()
        worker.terminate()
        assert worker.wait(PATIENCE_S) == 0
        assert time.monotonic() - began < AT_ONCE_S
        for raw in silent:
            raw.close()


def page_faults(worker: subprocess.Popen[str]) -> int:
    """Return how many pages of memory the process was given since it began."""
    return int(Path(f'/proc/{worker.pid}/stat').read_text().rpartition(')')[2].split()[7])


@pytest.mark.skipif(not Path('/proc/self/stat').exists(), reason='counts pages as Linux does')
def test_the_memory_of_one_large_message_serves_the_next(tmp_path: Path) -> None:
    usual = {name: text for name, text in os.environ.items() if not name.startswith('MALLOC_')}
    acts, large = 30, np.zeros((1000, 1000), np.uint8)
    with process(HOLD, env=usual) as worker, client_of(url_of(worker)) as client:
        client.connect()
        for _ in range(acts):
            client.act({'state': np.zeros(6, np.float32), 'front': large})
        before = page_faults(worker)
        for _ in range(acts):
            client.act({'state': np.zeros(6, np.float32), 'front': large})
        after = page_faults(worker)
    # Mapped anew, each copy of a message takes 245 pages.
    assert (after - before) / acts < 100

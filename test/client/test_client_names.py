"""Workers by name: what a name stands for may be several addresses."""

from __future__ import annotations

from collections.abc import Callable
import socket

from client.scripted_worker import ScriptedWorker
import pytest
from seq_harness.client.sequence import SequencePolicy

Workers = Callable[..., ScriptedWorker]
Policies = Callable[..., SequencePolicy]


def test_g63_a_name_whose_first_address_nobody_serves_is_reached_at_its_next(
    workers: Workers, policies: Policies, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = int(workers().url.rpartition(':')[2].partition('/')[0])
    v6 = (socket.AF_INET6, socket.SOCK_STREAM, 6, '', ('::1', port, 0, 0))
    v4 = (socket.AF_INET, socket.SOCK_STREAM, 6, '', ('127.0.0.1', port))
    monkeypatch.setattr(socket, 'getaddrinfo', lambda *arguments, **named: [v6, v4])
    policies(f'ws://localhost:{port}').connect()

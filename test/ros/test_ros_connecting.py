"""Reaching the worker ahead of a node's configuration."""

from __future__ import annotations

import pytest
from seq_harness.playback.uplink import WorkerLost
from seq_harness.ros.connecting import Connector
from support.ports import free_port
from support.robots import settings_of


@pytest.mark.parametrize('asked', ['gateway_url', 'worker_url'])
def test_who_is_asked_for_the_worker_is_named(asked: str) -> None:
    said: list[str] = []
    url = f'http://127.0.0.1:{free_port()}'
    connector = Connector(settings_of(**{asked: url}, connect_timeout_s=0.1), said.append)
    with pytest.raises(WorkerLost):
        connector.take('')
    assert said[0] == f'connecting to {url}'

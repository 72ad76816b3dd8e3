"""Whether a positronic server, in a process of its own, answers while it is waited for."""

from __future__ import annotations

from contextlib import ExitStack
import os
from pathlib import Path
import signal
import time

import numpy as np
import pytest
from seq_harness.client.positronic import PositronicPolicy
from seq_harness.client.runtime import Runtime
from seq_harness.playback.uplink import Standing, Step
from support.servers import needs_servers, OURS, served
from support.waiting import PATIENCE_S, wait_for

pytestmark = needs_servers

SCRIPT = Path(__file__).parent / 'serve_positronic.py'


def step(number: int) -> Step:
    return Step(number, time.monotonic_ns(), {'state': np.zeros(6, np.float32), 'task': 'reach'})


def test_a_server_that_is_frozen_answers_no_ping(
    stack: ExitStack, monkeypatch: pytest.MonkeyPatch, runtime: Runtime
) -> None:
    monkeypatch.setattr('seq_harness.client.plain_websocket.PING_S', 0.05)
    monkeypatch.setattr('seq_harness.client.pulse.PONG_S', 1.0)
    server, port = stack.enter_context(served(SCRIPT, variables=OURS))
    policy = PositronicPolicy(f'positronic+ws://127.0.0.1:{port}', connect_timeout_s=PATIENCE_S)
    stack.callback(policy.close)
    policy.connect()
    scope = policy.open_episode(time.monotonic_ns)
    scope.infer(step(0))
    assert scope.standing() is Standing.THERE
    os.kill(server.pid, signal.SIGSTOP)
    answer = runtime.start(lambda: scope.infer(step(1)))
    wait_for(lambda: scope.standing() is Standing.SILENT, PATIENCE_S, 'the silence')
    os.kill(server.pid, signal.SIGCONT)
    wait_for(answer.done, PATIENCE_S, 'the answer')
    assert answer.result()['actions'].shape == (4, 6)
    assert scope.standing() is Standing.THERE

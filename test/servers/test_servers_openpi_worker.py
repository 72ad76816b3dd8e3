"""openpi's own client drives a policy that our worker serves."""

from __future__ import annotations

from collections.abc import Iterator
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from seq_harness.contract.own_io import Actions
from seq_harness.worker.running import served
from seq_harness.worker.server import Access
from support.servers import needs_servers, ServerProcess

pytestmark = needs_servers

SCRIPT = Path(__file__).parent / 'drive_by_openpi.py'


class Follow:
    """Answer two rows from the state on, and tell what was read."""

    actions = Actions(key='actions', hz=10.0)
    metadata = {'reset_pose': [0.0, -1.5]}  # noqa: RUF012

    def __init__(self) -> None:
        self.read: list[dict[str, Any]] = []

    def infer(self, inputs: dict[str, Any]) -> Any:
        self.read.append(inputs)
        if inputs['prompt'] == 'fail':
            raise ValueError('it was told to')
        state = inputs['observation/state']
        return {'actions': np.stack([state, state + np.float32(0.5)])}


@pytest.fixture
def policy() -> Follow:
    return Follow()


@pytest.fixture
def url(policy: Follow) -> Iterator[str]:
    with served(policy) as address:
        yield address


def drive(url: str, way: str, *arguments: str) -> dict[str, Any]:
    """Run the client's process to its end, and return what it printed."""
    port = url.split('/')[2].rpartition(':')[2]
    process = ServerProcess(SCRIPT, '--port', port, '--way', way, *arguments)
    try:
        status = process.wait()
        output = process.output()
        assert status == 0, output
        told: dict[str, Any] = json.loads(output.splitlines()[-1])
        return told
    finally:
        process.end()


def test_the_client_gets_chunks_timings_and_the_greeting(url: str) -> None:
    told = drive(url, 'chunks')
    assert told['metadata']['reset_pose'] == [0.0, -1.5]
    assert told['metadata']['actions'] == {'key': 'actions', 'hz': 10.0}
    for number, answer in enumerate(told['came']):
        rows = [[column + number + more for column in range(3)] for more in (0, 0.5)]
        assert answer['actions'] == {'dtype': '<f4', 'values': rows}
        assert ('prev_total_ms' in answer['server_timing']) is (number > 0)


def test_the_policy_reads_what_the_client_holds(url: str, policy: Follow) -> None:
    drive(url, 'chunks')
    read = policy.read[2]
    assert read['prompt'] == 'pick it up'
    assert read['gripper'] == np.float32(0.5)
    assert read['observation/image'].shape == (4, 6, 3)
    np.testing.assert_array_equal(read['images']['cam'], np.full((3, 4, 6), 2, np.uint8))


def test_a_broker_plays_the_rows_of_a_chunk_in_turn(url: str, policy: Follow) -> None:
    rows = [row['values'] for row in drive(url, 'broker')['came']]
    assert [row[0] for row in rows] == [0.0, 0.5, 2.0, 2.5, 4.0]
    assert len(policy.read) == 3


def test_the_client_shows_what_failed_without_our_traceback(url: str) -> None:
    (shown,) = drive(url, 'failing')['came']
    assert 'policy_error: the policy failed: ValueError: it was told to' in shown
    assert 'Traceback' not in shown


def test_the_client_shows_its_api_key(policy: Follow) -> None:
    with served(policy, access=Access('secret')) as url:
        assert len(drive(url, 'chunks', '--api-key', 'secret')['came']) == 3

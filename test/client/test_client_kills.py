"""
A worker that is killed and started again while a robot acts: no act is lost, and none runs twice.

Three times in the tests; SEQ_HARNESS_KILLS=20 kills it so often, within about a minute.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
import os
from pathlib import Path
import threading

from client.recorded_policies import RAN
from client.robot import Robot
from client.worker_process import check, Drive, WorkerProcess
import pytest
from seq_harness.client.sequence import SequencePolicy
from seq_harness.playback.uplink import ActAbandoned, PolicyError, StateLost, WorkerLost
from support.waiting import PATIENCE_S

KILLS = int(os.environ.get('SEQ_HARNESS_KILLS', '3'))
PERIOD_S = 3.0 if KILLS > 3 else 1.0
"""From one kill to the next, the start of the next process included."""

ANSWERS = 2
"""From one kill to the next, at the least: there is something to lose."""

NAMED = (ActAbandoned, PolicyError, StateLost, WorkerLost)


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file that the policy writes its acts to."""
    path = tmp_path / 'ran'
    monkeypatch.setenv(RAN, str(path))
    return path


@pytest.fixture
def process(ran: Path) -> Iterator[WorkerProcess]:
    started = WorkerProcess('Counted')
    yield started
    started.kill()


class Killer(threading.Thread):
    """Kill a process that has answered, and start it again, so often, and then be done."""

    def __init__(self, process: WorkerProcess) -> None:
        super().__init__()
        self._process = process
        self.answers = threading.Semaphore(0)
        self.done = threading.Event()

    def run(self) -> None:
        try:
            for _ in range(KILLS):
                self.done.wait(PERIOD_S / 2)
                for _ in range(ANSWERS):
                    assert self.answers.acquire(timeout=PATIENCE_S), 'no act was answered'
                self._process.kill()
                self._process.start()
        finally:
            self.done.set()


@pytest.mark.parametrize('scheme', ['ws', 'http'])
def test_every_act_is_answered_from_real_observations_or_fails_by_name_and_none_runs_twice(
    scheme: str, process: WorkerProcess, ran: Path
) -> None:
    address = process.url.removeprefix('ws://').partition('/')[0]
    policy = SequencePolicy(
        f'{scheme}://{address}',
        reconnect_s=PATIENCE_S,
        max_request_age_s=PATIENCE_S,
        connect_timeout_s=PATIENCE_S,
        on_state=lambda text: None,
    )
    drive = Drive(Robot(policy))
    killer = Killer(process)
    answered, failed = 0, Counter[str]()
    killer.start()
    try:
        while not killer.done.is_set() or answered == 0:
            drive.between(5)
            try:
                read = drive.act()
            except NAMED as error:
                failed[type(error).__name__] += 1
            else:
                answered += 1
                killer.answers.release()
                check(read, drive.skipped, read['numbers'][-1] - read['steps'][-1])
                assert read['numbers'][-1] == drive.robot.number
    finally:
        killer.join()
        policy.close()
    runs = Counter(ran.read_text().split())
    print(f'{scheme}: {KILLS} kills, {answered} acts answered, failed {dict(failed)}')
    assert max(runs.values()) == 1
    assert len(runs) >= answered > KILLS
    assert sum(failed.values()) <= KILLS

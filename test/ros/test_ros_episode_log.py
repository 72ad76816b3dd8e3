"""What is said of episodes, and how often."""

from __future__ import annotations

from typing import Any

from seq_harness.harness import Report, State
from seq_harness.playback.modes import Mode
from seq_harness.playback.pace import SETTLED
from seq_harness.ros.episode_log import EpisodeLog


class Log:
    """An episode log whose words a test reads."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.warned: list[str] = []
        self.failed: list[str] = []
        self.log = EpisodeLog(self.said.append, self.warned.append, self.failed.append)

    def progressed(self, answer_ms: float, starved_s: float, played: int = SETTLED) -> None:
        figures: dict[str, Any] = {
            'chunks': {'played': played, 'lasts_ms': 533.3},
            'answer_delay_ms': {'p50': answer_ms},
            'starved_s': starved_s,
        }
        self.log.progressed(Report(State.RUNNING, 1, '', figures), Mode())


def test_a_stop_between_chunks_is_said_once() -> None:
    log = Log()
    log.progressed(300, 0.28, played=SETTLED - 1)
    for _ in range(3):
        log.progressed(300, 0.28)
    assert log.warned == ['chunk 0.53 s, answers 0.30 s: the arm stands about 0.07 s a chunk']


def test_a_lead_that_comes_to_nothing_is_said_once() -> None:
    log = Log()
    for _ in range(3):
        log.progressed(600, 3.0)
    assert len(log.warned) == 1
    assert log.warned[0].endswith('the next is asked for at its end, as drain does')


def test_nothing_is_said_where_the_arm_does_not_stand() -> None:
    log = Log()
    log.progressed(100, 0.0)
    assert log.warned == []


def test_the_begin_and_the_end_of_an_episode_are_said_once_and_faults_as_such() -> None:
    log = Log()
    for report in (
        Report(State.IDLE, 0, '', {}),
        Report(State.RUNNING, 1, '', {}),
        Report(State.RUNNING, 1, '', {}),
        Report(State.IDLE, 1, 'deadline', {}),
        Report(State.RUNNING, 2, '', {}),
        Report(State.IDLE, 2, 'worker_lost: gone', {}),
    ):
        log.log.changed(report)
    assert log.said == ['episode 1: running', 'episode 1 ended: deadline', 'episode 2: running']
    assert log.failed == ['episode 2 ended: worker_lost: gone']

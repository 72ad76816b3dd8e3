"""What is said of faults of inputs and outputs, and how often."""

from __future__ import annotations

from seq_harness.inputs import Verdict
from seq_harness.ros.fault_log import FaultLog


class Log:
    """A fault log with a clock that a test turns."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.now_ns = 1
        self.faults = FaultLog(self.said.append, self.said.append, lambda: self.now_ns)

    def note(self, reason: str, name: str = 'state') -> None:
        self.faults.note(name, reason, Verdict.REFUSED)


def test_a_fault_that_goes_on_is_said_once_and_so_is_its_end() -> None:
    log = Log()
    for reason in ('nan', 'nan', 'inf'):
        log.note(reason)
    assert log.said == ['input state refused: nan']
    assert log.faults.current == {'state': 'inf'}
    log.note('')
    log.note('')
    assert log.said[1:] == ['input state is well again']
    assert log.faults.current == {}


def test_what_comes_and_goes_with_every_message_is_said_seldom() -> None:
    log = Log()
    for _ in range(1000):  # 50 good and 50 bad messages a second, for 20 s
        log.note('nan')
        assert log.faults.current == {'state': 'nan'}
        log.note('')
        log.now_ns += 20_000_000
    assert len(log.said) == 2 * 4
    assert len([text for text in log.said if 'well again' in text]) == 4


def test_another_input_is_said_at_once() -> None:
    log = Log()
    log.note('nan')
    log.note('torn', 'front')
    assert log.said == ['input state refused: nan', 'input front refused: torn']

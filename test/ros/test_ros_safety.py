"""The latched stop input and the deadman, on a clock moved by hand."""

from __future__ import annotations

from typing import Any

import pytest
from seq_harness.ros.safety import Safety
from support.robots import HandClock, MS, settings_of


class Rig:
    def __init__(self, **changes: Any) -> None:
        self.clock = HandClock()
        self.told: list[str] = []
        self.safety = Safety(settings_of(**changes), self.told.append, self.clock.now_ns)


def test_without_inputs_nothing_keeps_the_robot() -> None:
    assert Rig().safety.reason is None


def test_a_stop_latches_though_it_is_taken_back() -> None:
    rig = Rig(stop_topic='stop')
    rig.safety.stop_said(True)
    rig.safety.stop_said(False)
    assert rig.safety.reason == 'stop_input: stop says stop'
    assert rig.told == [rig.safety.reason], 'it is told once'


def test_a_reset_is_refused_while_the_input_says_stop() -> None:
    rig = Rig(stop_topic='stop')
    rig.safety.stop_said(True)
    assert not rig.safety.reset().accepted
    rig.safety.stop_said(False)
    assert rig.safety.reset().accepted
    assert rig.safety.reason is None


def test_silence_is_no_stop_unless_a_heartbeat_is_required() -> None:
    rig = Rig(stop_topic='stop')
    rig.safety.stop_said(False)
    rig.clock.now += 3_600_000 * MS
    rig.safety.look()
    assert rig.safety.reason is None


def test_a_heartbeat_that_falls_silent_latches() -> None:
    rig = Rig(stop_topic='stop', require_heartbeat=True, stop_timeout_s=0.1)
    assert rig.safety.reason == 'stop_input: stop has said nothing yet'
    rig.safety.stop_said(False)
    assert rig.safety.reason is None
    rig.clock.now += 101 * MS
    rig.safety.look()
    assert rig.told[-1] == 'stop_input: stop fell silent'
    rig.safety.stop_said(False)
    assert rig.safety.latched, 'it stays latched though it is heard again'
    assert rig.safety.reset().accepted


@pytest.mark.parametrize('how', ['let go', 'silent'])
def test_a_deadman_must_be_held_and_heard(how: str) -> None:
    rig = Rig(deadman_topic='deadman', deadman_timeout_s=0.1)
    assert rig.safety.reason == 'deadman: deadman is not held'
    rig.safety.deadman_said(True)
    assert rig.safety.reason is None
    if how == 'silent':
        rig.clock.now += 101 * MS
        rig.safety.look()
    else:
        rig.safety.deadman_said(False)
    assert rig.told[-1].startswith('deadman: deadman')
    rig.safety.deadman_said(True)
    assert rig.safety.reason is None, 'a deadman does not latch'

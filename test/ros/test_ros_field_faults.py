"""Faults of the field that only the processes on a graph can show."""

from __future__ import annotations

from pathlib import Path
import time

import pytest
from seq_harness.cli.children import Children
from support.driving import Driven, driven
from support.waiting import AT_ONCE_S, PATIENCE_S

SINE = 'seq_harness.worker.policies.sine:Sine'

HANGS = """
import threading
import numpy as np
from seq_harness.contract import Actions, Observations, Stream

class Hangs:
    columns = [f'joint_{number}' for number in range(1, 7)]
    actions = Actions(key='actions', hz=20)
    observations = Observations({'state': Stream()})

    def __init__(self):
        self.acts = 0

    def infer(self, inputs):
        self.acts += 1
        if self.acts > 2:  # after the warm-up and one chunk
            threading.Event().wait(600)
        return {'actions': np.tile(inputs['observations'][-1]['state'], (60, 1))}
"""

PERIOD_S = 0.05


def quiet_since(rig: Driven, instant: float) -> bool:
    """Whether no setpoint came later than ten periods after `instant`, for half a second."""
    until = instant + 10 * PERIOD_S + 0.5
    rig.watcher.wait(lambda: time.monotonic() > until, PATIENCE_S, 'half a second', lambda: None)
    return not [at for at in rig.setpoints if at > instant + 10 * PERIOD_S]


@pytest.mark.parametrize('call', ['stop', 'pause'])
def test_g23_a_stop_is_answered_and_obeyed_while_an_act_hangs(
    call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / 'hanging_policy.py').write_text(HANGS)
    monkeypatch.setenv('PYTHONPATH', str(tmp_path), prepend=':')
    parameters = ('asking:=every', 'ask_rows:=4', 'handoff:=continue')
    with (
        Children(tmp_path) as children,
        driven(children, 'hanging_policy:Hangs', *parameters) as rig,
    ):
        rig.begin()
        asked = lambda: rig.watcher.figures.get('asks', {}).get('asked', 0)  # noqa: E731
        rig.watcher.wait(lambda: asked() >= 2, PATIENCE_S, 'an act that hangs', children.check)
        rig.more(5, 'rows beside it')
        began = time.monotonic()
        assert rig.watcher.call(call) == ''
        assert time.monotonic() - began < AT_ONCE_S
        assert quiet_since(rig, time.monotonic())


def test_g20_setpoints_go_on_beside_joint_states_of_1_khz(tmp_path: Path) -> None:
    """An executor that the messages keep busy would leave a tenth of them."""
    fast = ('joint_rate_hz:=1000.0',)
    with Children(tmp_path) as children, driven(children, SINE, arm=fast) as rig:
        rig.begin()
        rig.more(5)
        count, began = len(rig.setpoints), time.monotonic()
        rig.more(60)
        rate = (len(rig.setpoints) - count) / (time.monotonic() - began)
        assert rate > 0.1 / PERIOD_S

"""The three processes of the demo for a test: an arm, a worker and the harness, and a watcher."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from operator import getitem
from pathlib import Path
import re
import time

from seq_harness.cli.children import Children
from seq_harness.ros.watcher import Watcher
from std_msgs.msg import Float64MultiArray
from support.sources import ROOT
from support.waiting import PATIENCE_S, wait_for
import yaml

DEMO = ROOT / 'config' / 'demo.yaml'
PATIENT = (
    'inputs.front.max_age_s:=30.0',
    'inputs.state.max_age_s:=30.0',
    'channels.arm.max_velocity:=[20.0, 20.0, 20.0, 20.0, 20.0, 20.0]',
)
"""Of the demo's parameters: a machine that is busy with tests delivers late, and moves late."""

COMMANDS = 'forward_position_controller/commands'


def patient_demo(folder: Path) -> Path:
    """Write the demo's parameters, as patient as PATIENT; return the file."""
    values = yaml.safe_load(DEMO.read_text())
    parameters = values['/**']['ros__parameters']
    for text in PATIENT:
        name, _, value = text.partition(':=')
        *groups, last = name.split('.')
        reduce(getitem, groups, parameters)[last] = yaml.safe_load(value)
    file = folder / 'patient.yaml'
    file.write_text(yaml.safe_dump(values))
    return file


class Driven:
    """The processes, and when each setpoint came, on the steady clock."""

    def __init__(self, children: Children, watcher: Watcher) -> None:
        self.children = children
        self.watcher = watcher
        self.setpoints: list[float] = []
        watcher.node.create_subscription(
            Float64MultiArray, COMMANDS, lambda _: self.setpoints.append(time.monotonic()), 10
        )

    def begin(self) -> None:
        """Start an episode once everything is there."""
        watcher, each = self.watcher, self.children.check
        watcher.wait(lambda: watcher.ready, PATIENCE_S, 'a ready harness', each)
        watcher.wait(lambda: not watcher.figures['missing_inputs'], PATIENCE_S, 'inputs', each)
        refused = watcher.call('start')
        if refused:
            raise AssertionError(f'the start was refused: {refused}')

    def more(self, rows: int, what: str = 'setpoints') -> None:
        """Wait for so many more setpoints."""
        count = len(self.setpoints)
        self.watcher.wait(
            lambda: len(self.setpoints) >= count + rows, PATIENCE_S, what, self.children.check
        )


@contextmanager
def driven(
    children: Children,
    policy: str,
    *parameters: str,
    arm: Sequence[str] = (),
    arguments: Sequence[str] = (),
) -> Iterator[Driven]:
    """
    Start all three.

    `parameters` and `arm` are NAME:=VALUE of the harness and of the arm, `arguments` NAME=VALUE of
    the policy.
    """
    children.start('sim_arm', ['sim-arm', '--ros-args', *_given(arm)])
    given = [word for argument in arguments for word in ('--set', argument)]
    children.start('worker', ['worker', policy, '--port', '0', *given])
    log, pattern = children.log('worker'), re.compile(r'serving \S+ on (ws://\S+)')
    wait_for(lambda: bool(pattern.search(log.read_text())), PATIENCE_S, 'the worker')
    found = pattern.search(log.read_text())
    url = f'worker_url:={found.group(1) if found else ""}'
    words = ['--ros-args', '--params-file', str(DEMO), *_given([url, *PATIENT, *parameters])]
    children.start('harness', ['harness', *words])
    with Watcher() as watcher:
        yield Driven(children, watcher)


def _given(parameters: Sequence[str]) -> list[str]:
    return [word for parameter in parameters for word in ('-p', parameter)]

"""A robot, a worker, a harness and what stands between them, for one injection."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
import json
import os
from pathlib import Path
import re
import sys
import time
from typing import Any

from injections.judge import Judge, NotSeen
from injections.limits import HZ, JOINTS, LOWER, MAX_VELOCITY, START_DISTANCE, UPPER
from injections.processes import OURS, Processes

BENCH = Path(__file__).parents[1]
POLICY = 'injections.policy:Steered'
READY_S, BEGIN_S = 40.0, 20.0
FRESH_S = 2.0
"""How old inputs may be that are no part of a fault, so that a busy machine is none."""

MOVES = 8
"""Setpoints before a fault: a chunk, and more."""

GOES_ON, ON_ROWS = 'goes on', 30
"""What a fault is answered by that must end nothing: so many more setpoints."""


@dataclass(frozen=True)
class Setup:
    """What is different from the plain robot; parameters have `__` for a dot."""

    changes: Mapping[str, Any] = field(default_factory=dict)
    policy: Mapping[str, Any] = field(default_factory=dict)
    robot: Mapping[str, Any] = field(default_factory=dict)
    proxied: bool = False
    velocities: bool = False
    """Whether velocities are commanded, with a watchdog beside the harness."""
    simulated: bool = False
    variables: Mapping[str, str] = field(default_factory=dict)
    """Of the environment, for every process."""
    launch: Mapping[str, Any] = field(default_factory=dict)
    """Options of Popen for the harness, and for the watchdog."""


class Rig:
    """The processes of one injection, and a judge of what the robot hears."""

    def __init__(self, processes: Processes, judge: Judge, folder: Path) -> None:
        """Take an empty folder for what they write."""
        self.processes = processes
        self.judge = judge
        self.folder = folder
        self.setup = Setup()
        self.fault_at: float | None = None
        self.url = ''

    def bring_up(self, setup: Setup) -> None:
        """Start everything that an episode needs."""
        self.setup = setup
        self.robot()
        self.worker()
        if setup.velocities:
            self.watchdog()
        self.harness()

    def robot(self) -> None:
        """Start the driver."""
        mode = {'velocities': self.setup.velocities, **self.setup.robot}
        words = [sys.executable, '-m', 'injections.robot', json.dumps(mode)]
        self._start('robot', [*words, *(['simulated'] if self.setup.simulated else [])])

    def worker(self, port: int = 0) -> None:
        """Start the worker, and the proxy before it, and wait until both listen."""
        given = {'fault': str(self.fault_file), 'velocities': self.setup.velocities}
        command = [*OURS, 'worker', POLICY, '--port', str(port)]
        for name, value in {**given, **self.setup.policy}.items():
            command += ['--set', f'{name}={json.dumps(value)}']
        self.url = self._started('worker', command, r'serving \S+ on (ws://\S+)')
        if self.setup.proxied and not self.processes.runs('proxy'):
            words = [sys.executable, '-m', 'injections.proxy', str(self.worker_port)]
            found = self._started('proxy', words, r'listening on (\d+)')
            self.url = self.url.replace(f':{self.worker_port}', f':{found}')

    def watchdog(self) -> None:
        """Start the watchdog."""
        self._start('watchdog', [*OURS, 'watchdog'], **self.setup.launch)

    def harness(self, name: str = 'harness', **changes: Any) -> None:
        """Start the harness, with more changes."""
        file = self.folder / f'{name}.yaml'
        values = self.parameters(**changes)
        file.write_text(json.dumps({'/**': {'ros__parameters': values}}))
        self.launch(name, '--ros-args', '--params-file', str(file))

    def launch(self, name: str, *words: str) -> None:
        """Start a harness with these words."""
        self._start(name, [*OURS, 'harness', *words], **self.setup.launch)

    def parameters(self, **changes: Any) -> dict[str, Any]:
        """Return the parameters of the harness."""
        setup = self.setup
        values: dict[str, Any] = {
            'worker_url': self.url,
            'preview': False,
            'rate_hz': HZ,
            'reconnect_s': 1.0,
            'act_timeout_s': 2.0,
            'max_request_age_s': 2.0,
            'connect_timeout_s': 20.0,
            'input_names': ['front', 'state'],
            'inputs.front.topic': 'front',
            'inputs.front.type': 'image',
            'inputs.front.max_age_s': FRESH_S,
            'inputs.state.topic': 'joint_states',
            'inputs.state.type': 'joint_state',
            'inputs.state.joints': list(JOINTS),
            'inputs.state.max_age_s': FRESH_S,
            'channel_names': ['arm'],
            'channels.arm.topic': 'commands',
            'channels.arm.type': 'float64_multi_array',
            'channels.arm.joints': list(JOINTS),
            'channels.arm.state': 'state',
            'channels.arm.lower': [LOWER] * len(JOINTS),
            'channels.arm.upper': [UPPER] * len(JOINTS),
            'channels.arm.max_velocity': [MAX_VELOCITY] * len(JOINTS),
            'channels.arm.max_start_distance': START_DISTANCE,
        }
        if setup.velocities:
            values |= {'channels.arm.kind': 'velocity', 'require_watchdog': True}
        if setup.simulated:
            values['use_sim_time'] = True
        named = {**setup.changes, **changes}
        return {**values, **{key.replace('__', '.'): value for key, value in named.items()}}

    def play(self) -> None:
        """Start an episode, and wait until it has moved the robot."""
        self.ready()
        self.judge.until(self._starts, BEGIN_S, 'a start')
        self.more(MOVES, 'the first setpoints')

    def ready(self) -> None:
        """Wait until an episode may start."""
        judge = self.judge
        judge.until(lambda: self._is('ready'), READY_S, 'a ready harness')
        judge.until(lambda: not judge.figures.get('missing_inputs'), BEGIN_S, 'inputs')

    def more(self, rows: int, what: str, within_s: float = BEGIN_S) -> None:
        """Wait for so many more setpoints."""
        count = len(self.judge.setpoints)
        self.judge.until(
            lambda: len(self.judge.setpoints) >= count + rows or bool(self.judge.reason),
            within_s,
            what,
        )
        if len(self.judge.setpoints) < count + rows:
            raise NotSeen(f'{what}: the episode ended by {self.judge.reason}')

    def inject(self, fault: Callable[[Rig], object]) -> None:
        """Do what is to be borne, and note when."""
        self.fault_at = time.monotonic()
        fault(self)

    def reason(self, within_s: float) -> str:
        """Return why the episode ended."""
        judge = self.judge
        judge.until(lambda: bool(judge.reason), within_s, 'the end of the episode')
        return judge.reason

    def goes_on(self, within_s: float) -> str:
        """Return that the episode plays on; else why it ended."""
        try:
            self.more(ON_ROWS, 'more setpoints', within_s)
        except NotSeen as error:
            return self.judge.reason or str(error)
        return GOES_ON

    def policy_does(self, what: str, **how: Any) -> None:
        """Have the policy misbehave from its next act on."""
        part = self.fault_file.with_suffix('.part')
        part.write_text(json.dumps({'do': what, **how}))
        part.rename(self.fault_file)

    def says(self, name: str, pattern: str, within_s: float = 10.0) -> str:
        """Wait until a process has written what a pattern matches; return that line."""
        lines: list[str] = []

        def found() -> bool:
            text = self.processes.said(name).splitlines()
            lines[:] = [line for line in text if re.search(pattern, line)]
            return bool(lines)

        self.judge.until(found, within_s, f'{pattern!r} of {name}')
        return lines[-1]

    def ends(self, name: str, within_s: float = 10.0) -> int:
        """Wait until a process has ended; return its status."""
        self.judge.until(lambda: not self.processes.runs(name), within_s, f'the end of {name}')
        return self.processes.status(name) or 0

    @property
    def fault_file(self) -> Path:
        """Return the file that the policy looks at."""
        return self.folder / 'fault.json'

    @property
    def worker_port(self) -> int:
        """Return the port that the worker listens on."""
        found = re.findall(r'serving \S+ on ws://[^:]+:(\d+)', self.processes.said('worker'))
        return int(found[-1])

    def _starts(self) -> bool:
        refused = self.judge.call('start')
        if refused and 'watchdog' not in refused:
            raise NotSeen(f'the start was refused: {refused}')
        return not refused

    def _is(self, figure: str) -> bool:
        for name in ('harness', 'worker', 'robot'):
            if not self.processes.runs(name):
                raise NotSeen(f'{name} has ended: {last_line(self.processes.said(name))}')
        return bool(self.judge.figures.get(figure))

    def _started(self, name: str, command: list[str], pattern: str) -> str:
        """Start what says that it is there; return what it says last."""
        known = len(re.findall(pattern, self.processes.said(name)))
        self._start(name, command)
        found: list[str] = []

        def listens() -> bool:
            found[:] = re.findall(pattern, self.processes.said(name))
            if not self.processes.runs(name):
                raise NotSeen(f'{name} has ended: {last_line(self.processes.said(name))}')
            return len(found) > known

        self.judge.until(listens, READY_S, f'the {name}')
        return found[-1]

    def _start(self, name: str, command: list[str], **options: Any) -> None:
        path = f'{BENCH}{os.pathsep}{os.environ.get("PYTHONPATH", "")}'
        variables = {'PYTHONPATH': path, **self.setup.variables}
        self.processes.start(name, command, variables=variables, **options)


def last_line(text: str) -> str:
    """Return the last line that says something."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ''

"""
Send signals to the harness at random instants: while it imports, connects, waits, plays and ends.

Each is sent to a process of its own, beside a worker and a robot that stay. It must end with 0
within the bound, without a traceback, and without a setpoint after its end. A signal that comes
before its main has taken over signals ends it as it ends any Python.

  scripts/bench signals [--count 60] [--seed 0]
"""

from __future__ import annotations

import argparse
from collections import Counter
import json
from pathlib import Path
import random
import signal
import sys
import tempfile
import time

from injections.judge import Judge, NotSeen
from injections.processes import Processes
from injections.rig import Rig, Setup

NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
LATEST_S = 6.0
"""How long after its start the last signals come: well into an episode."""

TAKEN_OVER = 'connecting to'
"""What a harness says once signals are its own."""

ENDS_S = 8.0
STARTS_S = 0.1
"""How often a start is asked for meanwhile."""

GRACE_S = 0.1
"""How long what was sent may be on its way."""


class Beside:
    """A robot and a worker that stay, and harnesses that come and go."""

    def __init__(self, rig: Rig) -> None:
        """Bring up what stays."""
        self._rig = rig
        rig.setup = Setup()
        rig.robot()
        rig.worker()
        self.playing = 0
        """Signals that came while setpoints went out."""
        self.worst_ms = 0.0
        """The longest time from a signal to the end of its process."""

    def one(self, name: str, number: int, at_s: float) -> str:
        """Send a signal at an instant after the start; return what was wrong, or an empty text."""
        rig, judge = self._rig, self._rig.judge
        judge.figures = {}
        began, count = time.monotonic(), len(judge.setpoints)
        rig.harness(name)
        while time.monotonic() < began + at_s:
            if judge.figures.get('ready') and judge.state == 'idle':
                judge.call('start')
            judge.rest(min(STARTS_S, max(0.0, began + at_s - time.monotonic())))
        self.playing += len(judge.setpoints) > count
        sent = time.monotonic()
        rig.processes.send(name, number)
        try:
            status = rig.ends(name, ENDS_S)
        except NotSeen as error:
            return str(error)
        ended, said = time.monotonic(), rig.processes.said(name)
        self.worst_ms = max(self.worst_ms, 1e3 * (ended - sent))
        judge.rest(GRACE_S)
        if any(each.at > ended + GRACE_S for each in judge.setpoints):
            return 'setpoints came after its end'
        if TAKEN_OVER not in said:
            return ''
        if status:
            return f'it ended with {status}: {said.strip().splitlines()[-1]}'
        return 'a traceback' if 'Traceback' in said else ''


def main() -> int:
    """Print what was wrong, and the figures as one JSON object; 1 where anything was."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument('--count', type=int, default=60, help='how many signals')
    parser.add_argument('--seed', type=int, default=0, help='of the instants')
    options = parser.parse_args()
    rng, wrong = random.Random(options.seed), Counter[str]()
    with (
        tempfile.TemporaryDirectory(prefix='signals-') as folder,
        Judge() as judge,
        Processes(Path(folder)) as processes,
    ):
        beside = Beside(Rig(processes, judge, Path(folder)))
        for turn in range(options.count):
            number, at_s = rng.choice(NUMBERS), rng.uniform(0.0, LATEST_S)
            if said := beside.one(f'harness{turn}', number, at_s):
                wrong[said] += 1
                print(f'{signal.Signals(number).name} after {at_s:.3f} s: {said}', flush=True)
        beyond = sum(each.beyond for each in judge.setpoints)
    figures = {
        'signals': options.count,
        'while_playing': beside.playing,
        'wrong': wrong.total(),
        'beyond_limits': beyond,
        'worst_end_ms': round(beside.worst_ms, 1),
    }
    print(json.dumps(figures))
    return 1 if wrong or beyond else 0


if __name__ == '__main__':
    sys.exit(main())

"""
Inject faults into real processes, and hold what they tell to what was expected before.

Each runs in processes and a ROS domain of its own: a robot's driver, a worker, what lies between,
and the harness. A line each: the reason that was told, the time from the fault to the last
setpoint, and the setpoints that broke a limit or came after the end. A reason that is not the
expected one is unnamed.

  scripts/bench faults [--only WORD] [--jobs 2] [--keep FOLDER] [--markdown FILE]
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
import json
import os
from pathlib import Path
import subprocess
import sys
import time

from injections.injection import Family, Injection, Outcome
from injections.table import TABLE
from support.domains import reserved_domain

HERE = Path(__file__).parent
SHARED = HERE.parent / 'test'
"""What tests and benchmarks share lies there, in `support`."""

JOBS = 2
"""Two at once leave a core's half to each node."""

LONGEST_S = 120.0
REASON_WIDTH = 84

Case = tuple[Family, Injection]


def chosen(word: str) -> list[Case]:
    """Return the injections whose family or name holds a word."""
    return [
        (family, injection)
        for family, injections in TABLE.items()
        for injection in injections
        if word in f'{family.value}: {injection.name}'
    ]


def run_apart(case: Case, keep: Path | None = None) -> Outcome:
    """Run an injection in a process and a ROS domain of its own."""
    family, injection = case
    command = [sys.executable, '-m', 'injections.one', family.value, injection.name]
    if keep is not None:
        command.append(str(keep / f'{family.value}-{injection.name.replace(" ", "_")}'))
    with reserved_domain() as domain:
        path = os.pathsep.join([str(SHARED), os.environ.get('PYTHONPATH', '')])
        variables = {**os.environ, 'ROS_DOMAIN_ID': str(domain), 'PYTHONPATH': path}
        try:
            done = subprocess.run(
                command, cwd=HERE, env=variables, capture_output=True, text=True,
                timeout=LONGEST_S, check=False,
            )  # fmt: skip
            return Outcome(**json.loads(done.stdout.splitlines()[-1]))
        except (subprocess.TimeoutExpired, IndexError, ValueError) as error:
            said = f'the injection itself failed: {error!r}'
            return Outcome(
                family.value, injection.name, injection.expected, said, False, None, 0, 0
            )


def line(outcome: Outcome) -> str:
    """Return the line of one injection."""
    mark = ' ' if outcome.named else '!'
    last = '-' if outcome.last_ms is None else f'{outcome.last_ms:.0f}'
    reason = ' '.join(outcome.reason.split())
    short = reason if len(reason) <= REASON_WIDTH else f'{reason[: REASON_WIDTH - 3]}...'
    said = '' if outcome.named else f'   (expected {outcome.expected})'
    name = f'{outcome.family}: {outcome.name}'
    return f'{mark}{name:<48}{last:>8}{outcome.beyond:>8}  {short}{said}'


def row(outcome: Outcome) -> str:
    """Return the row of one injection in docs/reliability.md."""
    expected = outcome.expected.replace('.*', '...').replace('|', ' or ').replace('\\', '')
    last = '-' if outcome.last_ms is None else f'{outcome.last_ms:.0f} ms'
    return f'| {outcome.family} | {outcome.name} | {expected} | {last} | {outcome.beyond} |'


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a line for each, and the figures as one JSON object; 1 where a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument('--only', default='', metavar='WORD', help='those whose name holds it')
    parser.add_argument('--jobs', type=int, default=JOBS, help='how many at once')
    parser.add_argument('--keep', type=Path, help='a folder for what the processes write')
    parser.add_argument('--markdown', type=Path, help='a file for the rows of the documents')
    options = parser.parse_args(arguments)
    cases, began = chosen(options.only), time.monotonic()
    keep = None if options.keep is None else options.keep.absolute()
    print(f' {"fault":<48}{"last ms":>8}{"beyond":>8}  reason', flush=True)
    outcomes = []
    with ThreadPoolExecutor(options.jobs) as pool:
        for outcome in pool.map(lambda case: run_apart(case, keep), cases):
            outcomes.append(outcome)
            print(line(outcome), flush=True)
    if options.markdown is not None:
        options.markdown.write_text('\n'.join(map(row, outcomes)) + '\n', encoding='utf-8')
    print(json.dumps(figures(outcomes, time.monotonic() - began)))
    return 0 if outcomes and all(each.named and not each.beyond for each in outcomes) else 1


def figures(outcomes: Sequence[Outcome], seconds: float) -> dict[str, float]:
    """Return what is held to a bar."""
    last = [each.last_ms for each in outcomes if each.last_ms is not None]
    return {
        'faults': len(outcomes),
        'unnamed': sum(not each.named for each in outcomes),
        'beyond_limits': sum(each.beyond for each in outcomes),
        'worst_ms': max(last, default=0.0),
        'seconds': round(seconds, 1),
    }


if __name__ == '__main__':
    sys.exit(main())

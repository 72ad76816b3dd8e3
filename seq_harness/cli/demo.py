"""Run the main job: an arm (or a bag), a worker and the harness, and show the figures."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
import json
from pathlib import Path
import re
import shutil
import signal
import sys
import tempfile
import time
from typing import Any

from seq_harness.bags.records import BagError
from seq_harness.cli.children import ChildFailed, Children
from seq_harness.cli.files import readable, writable
from seq_harness.cli.live import Live, table
from seq_harness.cli.report import reported
from seq_harness.ros.signals import end_at_once, ending_signals, ignore_signals

REACH = ['seq_harness.worker.policies.reach:Reach']
HOLD = ['seq_harness.worker.policies.hold:Hold', '--set', 'joints=0']
"""A policy for arms of any width."""

READY_WITHIN_S = 60.0
"""How long the worker and the node may take to be ready."""

SERVER_WITHIN_S = 600.0
"""How long a server that somebody else started may take to load and to answer once."""

WAITS = re.compile(r'\[harness\]: ((?:waiting for|.* has not |.* prepares ).*)$', re.MULTILINE)
"""What the harness says while a server lets it wait."""

TARGETS_REACHED = 'policy:targets_reached'

BAG_ENDED = 'bag_ended'
"""How a replay calls the end of its recording; the demo's node is stopped then."""


class Interrupted(Exception):
    """The user wants the demo to end."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demo; 0 only if the targets were reached, or the bag played through."""
    arguments = _parser().parse_args(argv)
    end_at_once()
    # rclpy is imported only here, so that --help and a wrong argument answer without it.
    from seq_harness.ros.watcher import Watcher

    for number in ending_signals():
        signal.signal(number, _interrupt)
    with tempfile.TemporaryDirectory(prefix='seq-harness-demo-') as logs:
        try:
            with reported(arguments.report) as record:
                return _run(arguments, Path(logs), record, Watcher)
        except (BagError, ChildFailed, OSError, ValueError) as error:
            print(f'demo: {error}', file=sys.stderr)
            return 1
        except Interrupted:
            print('demo: interrupted', file=sys.stderr)
            return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog='demo', description=__doc__)
    parser.add_argument(
        '--seconds', type=_seconds, default=60.0, help='longest episode, from its inputs on; 60'
    )
    parser.add_argument('--json', type=writable, metavar='FILE', help='write the figures to FILE')
    parser.add_argument(
        '--report', type=writable, metavar='FILE', help='write a page about the run to FILE'
    )
    parser.add_argument('--bag', type=Path, metavar='PATH', help='a rosbag2 in place of the arm')
    parser.add_argument('--policy', metavar='MODULE:CLASS', help='what the worker serves')
    parser.add_argument(
        '--worker',
        metavar='URL',
        help='a worker or policy server that runs already, such as openpi+ws://HOST:8000, in '
        'place of our own; it reads front, state and prompt, unless --params-file says otherwise',
    )
    parser.add_argument('--params-file', type=readable, help='parameters of the harness')
    parser.add_argument(
        '--record', type=Path, metavar='PATH', help='write an exact record of the run to PATH'
    )
    return parser


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds <= 86400:
        raise argparse.ArgumentTypeError(f'expected seconds above 0, up to a day, got {text}')
    return seconds


@contextmanager
def _interrupted_once() -> Iterator[None]:
    """Let children end in good order after this, whatever signal comes."""
    try:
        yield
    finally:
        ignore_signals()


def _interrupt(number: int, frame: Any) -> None:
    raise Interrupted


def _run(
    arguments: argparse.Namespace, logs: Path, record: Path | None, watching: Callable[[], Any]
) -> int:
    policy, params = _for_bag(arguments.bag, logs) if arguments.bag else (REACH, None)
    policy = [arguments.policy] if arguments.policy else policy
    params = arguments.params_file or params or _demo_parameters()
    with Children(logs) as children, _interrupted_once():
        if arguments.worker is None:
            children.start('worker', ['worker', *policy, '--port', '0'])
        if arguments.bag is None:
            children.start('sim_arm', ['sim-arm'])
        url = arguments.worker or _worker_url(children)
        children.start('harness', _harness(arguments, params, url, record))
        with watching() as watcher:
            each: Callable[[], None] = children.check
            if arguments.worker:
                each = partial(_tell, children, set())
            within_s = SERVER_WITHIN_S if arguments.worker else READY_WITHIN_S
            watcher.wait(lambda: watcher.ready, within_s, 'a ready harness', each)
            each = children.check
            if arguments.bag is None:
                seen = 'the first frame and joint state'
                watcher.wait(lambda: watcher.sees_all, 20.0, seen, each)
            refusal = watcher.call('start', each)
            if refusal:
                raise ChildFailed(f'the start was refused: {refusal}')
            if arguments.bag is not None:
                children.start('play_bag', ['play-bag', str(arguments.bag)])
            bag_ended = _follow(arguments, watcher, children)
            figures = dict(watcher.figures)
            if bag_ended and figures.get('reason') == 'stop':
                figures['reason'] = BAG_ENDED
        children.end()
    print(table(figures))
    if arguments.record is not None:
        figures['record'] = _recorded(figures, arguments.record)
        for name, value in figures['record'].items():
            print(f'{f"record: {name}":<34}{value}')
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(figures, indent=2) + '\n')
    return _verdict(arguments, figures)


def _follow(arguments: argparse.Namespace, watcher: Any, children: Children) -> bool:
    """
    Show the episode until it ends; end it after the given time, or with the bag.

    Returns whether the bag has ended it.
    """
    live = Live(arguments.seconds)
    end = time.monotonic() + arguments.seconds
    needed = (
        [name for name in ('worker', 'harness') if name in children] if arguments.bag else None
    )

    def each() -> None:
        children.check(needed)
        live.show(watcher.figures)

    def bag_ended() -> bool:
        return arguments.bag is not None and children.ended('play_bag') is not None

    def over() -> bool:
        return bool(watcher.reason) or bag_ended() or time.monotonic() > end

    try:
        watcher.wait(over, arguments.seconds + 60.0, 'the end of the episode', each)
        if watcher.reason:
            return False
        by_bag = bag_ended()
        watcher.call('stop', each)
        watcher.wait(lambda: bool(watcher.reason), 5.0, 'the stop', each)
        return by_bag
    finally:
        live.close()


def _harness(
    arguments: argparse.Namespace, params: Path, url: str, record: Path | None
) -> list[str]:
    command = ['harness', '--ros-args', '--params-file', str(params), '-p', f'worker_url:={url}']
    if arguments.bag is not None:
        # What was recorded does not follow: its arm is only previewed.
        command += ['-p', 'use_sim_time:=true', '-p', 'preview:=true']
    wanted = record or arguments.record
    if wanted is not None:
        command += ['-p', f'record:={wanted.absolute()}']
    return command


def _tell(children: Children, told: set[str]) -> None:
    """Check the children, and say what the harness waits for, once each."""
    children.check()
    for text in WAITS.findall(children.log('harness').read_text(errors='replace')):
        if text not in told:
            told.add(text)
            print(f'demo: {text}', file=sys.stderr)


def _recorded(figures: dict[str, Any], wanted: Path) -> dict[str, Any]:
    """Return what the closed record says of itself; it lies at `wanted`, or beside it."""
    from seq_harness.bags.record_reading import read_record
    from seq_harness.bags.record_writing import free_path

    path = Path(figures['record']['path'])
    if path.parent != wanted.absolute().parent:
        path = shutil.copyfile(path, free_path(wanted))
    record = read_record(path)
    if record.end is None:
        raise BagError(f'{record.path} was not closed: {record.broken}')
    return {
        'path': str(record.path),
        'setpoints': record.end.setpoints,
        'hash': record.end.hash,
        'dropped': sum(record.end.dropped.values()),
    }


def _worker_url(children: Children) -> str:
    """Wait for the line with which a worker says where it listens."""
    end = time.monotonic() + READY_WITHIN_S
    while time.monotonic() < end:
        children.check(['worker'])
        found = re.search(r'serving \S+ on (ws://\S+)', children.log('worker').read_text())
        if found:
            return found.group(1)
        time.sleep(0.02)
    raise TimeoutError(f'the worker did not listen within {READY_WITHIN_S:g} s')


def _demo_parameters() -> Path:
    from ament_index_python.packages import get_package_share_directory

    return Path(get_package_share_directory('seq_harness')) / 'config' / 'demo.yaml'


def _for_bag(bag: Path, logs: Path) -> tuple[list[str], Path | None]:
    """Return a policy and parameters that fit a bag; the demo's own for the simulated arm's."""
    from seq_harness.cli.bag_parameters import parameters_for

    values, is_of_the_arm = parameters_for(bag)
    if is_of_the_arm:
        return REACH, None
    made = logs / 'bag.yaml'
    # JSON is YAML too.
    made.write_text(json.dumps({'/**': {'ros__parameters': values}}, indent=2))
    return HOLD, made


def _verdict(arguments: argparse.Namespace, figures: dict[str, Any]) -> int:
    reason = str(figures.get('reason', ''))
    if arguments.bag is None:
        if reason == TARGETS_REACHED:
            return 0
        print(f'demo: the targets were not reached: {reason}', file=sys.stderr)
        return 1
    if reason in ('stop', BAG_ENDED, TARGETS_REACHED) and figures.get('rows', {}).get('emitted'):
        return 0
    print(f'demo: the bag did not run through the node: {reason}', file=sys.stderr)
    return 1


if __name__ == '__main__':
    sys.exit(main())

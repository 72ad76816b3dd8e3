"""The command replay: run a recording through the harness in lockstep, without ROS."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import asdict, replace
import json
import logging
import math
import os
from pathlib import Path
import sys
from typing import Any

from seq_harness.bags.charges import (
    charged,
    charged_as_recorded,
    charged_real,
    Cost,
    uncharged,
)
from seq_harness.bags.faults import OnFault
from seq_harness.bags.mending import opened
from seq_harness.bags.params import read_file, settings_from, value_of
from seq_harness.bags.reading import Bag
from seq_harness.bags.records import BagError
from seq_harness.bags.replaying import (
    BAG_ENDED,
    client_of,
    replay_with,
    ReplayOptions,
    Run,
)
from seq_harness.cli.exact import tell_exact
from seq_harness.cli.files import writable
from seq_harness.cli.live import table
from seq_harness.cli.report import reported
from seq_harness.playback.uplink import PolicyError, WorkerLost
from tqdm import tqdm

LONG_S = 2.0
"""A replay that takes longer shows how far it is."""

WELL = (BAG_ENDED, 'deadline')
"""Ends, beside the policy's own, of a replay that went as it should."""


def main(argv: list[str] | None = None) -> int:
    """Replay and show the figures; 0 only if nothing but the recording or the policy ended it."""
    parser = _parser()
    arguments = parser.parse_args(argv)
    if not arguments.exact and not (arguments.params_file and arguments.worker):
        parser.error('--params-file and --worker are needed, except with --exact')
    if arguments.exact and arguments.report is not None:
        parser.error('--report is of a replay; seq-harness report makes the page of a record')
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format='%(message)s')
    # A policy may lie in the current folder, as for the worker.
    sys.path.insert(0, os.getcwd())
    try:
        if arguments.exact:
            return tell_exact(arguments.path, arguments.json)
        return _replay(arguments)
    except (BagError, OSError, PolicyError, ValueError, WorkerLost) as error:
        print(f'replay: {error}', file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print('replay: interrupted', file=sys.stderr)
        return 130


def _replay(arguments: argparse.Namespace) -> int:
    values = {**read_file(arguments.params_file), **dict(arguments.param)}
    values['worker_url'] = arguments.worker
    settings = settings_from(values)
    options = ReplayOptions(
        start_s=arguments.start,
        stop_s=arguments.stop,
        rate=arguments.rate,
        cost=arguments.charge,
        on_fault=OnFault(arguments.on_fault),
        remaps=dict(arguments.remap),
    )
    status, number = 0, 0
    with opened(arguments.path, mend=options.on_fault is OnFault.USE) as (bag, broken):
        options = replace(options, broken=broken)
        policy = client_of(arguments.worker, settings)
        try:
            while number < arguments.loop or not arguments.loop:
                with _bar(bag, options) as bar, reported(arguments.report) as record:
                    shown = replace(_shown(options, bag, bar), record=record)
                    run = replay_with(bag, settings, policy, shown)
                _tell(run, arguments.json)
                status = max(status, 0 if _went_well(run) else 1)
                number += 1
        finally:
            policy.close()
    return status


def _bar(bag: Bag, options: ReplayOptions) -> tqdm[Any]:
    seconds = (bag.end_ns - bag.start_ns) / 1e9
    end_s = seconds if options.stop_s is None else min(seconds, options.stop_s)
    return tqdm(
        total=round(max(0.0, end_s - options.start_s), 3),
        bar_format='{percentage:3.0f}% |{bar:30}| {n:.1f}/{total:.1f} s, {rate_fmt}',
        unit='x',
        delay=LONG_S,
        leave=False,
        disable=not sys.stderr.isatty(),
        file=sys.stderr,
    )


def _shown(options: ReplayOptions, bag: Bag, bar: tqdm[Any]) -> ReplayOptions:
    first_ns = bag.start_ns + round(options.start_s * 1e9)

    def show(log_ns: int) -> None:
        bar.update((log_ns - first_ns) / 1e9 - bar.n)

    return options if bar.disable else replace(options, on_progress=show)


def _tell(run: Run, file: Path | None) -> None:
    told = figures_of(run)
    print(table({**run.figures, 'reason': run.reason, 'scheduling': 'none: lockstep'}))
    print(f'{"setpoints":<34}{sum(told["setpoints"].values())}')
    print(f'{"speed":<34}{run.speed_x:.1f} x real time')
    print(f'{"hash":<34}{run.hash}')
    for fault in run.faults:
        print(f'replay: {fault}', file=sys.stderr)
    if file is not None:
        file.write_text(json.dumps(told, indent=2) + '\n')


def figures_of(run: Run) -> dict[str, Any]:
    """Return a run's figures as plain data, without its setpoints."""
    return {
        'reason': run.reason,
        'hash': run.hash,
        'setpoints': {name: len(items) for name, items in run.setpoints.items()},
        'start_ns': run.start_ns,
        'end_ns': run.end_ns,
        'real_s': round(run.real_s, 4),
        'speed_x': round(run.speed_x, 2),
        'acts_s': [act.cost_ns / 1e9 for act in run.acts],
        'acts_real_s': [act.real_ns / 1e9 for act in run.acts],
        'faults': [{**asdict(fault), 'kind': fault.kind.value} for fault in run.faults],
        **run.figures,
    }


def _went_well(run: Run) -> bool:
    return run.reason in WELL or run.reason.startswith('policy:')


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog='seq-harness replay',
        description='Run a recording through the harness, as fast as it goes, without ROS.',
    )
    add = parser.add_argument
    add('path', type=Path, metavar='BAG', help='a rosbag2 folder, or its file; or a record')
    add(
        '--exact',
        action='store_true',
        help='BAG is an exact record: do what was done then, without a worker, and compare',
    )
    add('--params-file', type=Path, help='parameters of the harness')
    add(
        '-p', dest='param', type=_param, action='append', default=[], metavar='NAME:=VALUE',
        help='one parameter, its value as YAML; repeatable',
    )  # fmt: skip
    add(
        '--worker', metavar='URL|embedded:MODULE:POLICY',
        help='a worker, or a policy to run in this process',
    )  # fmt: skip
    add(
        '--charge', type=_cost, default=uncharged, metavar='none|real|SECONDS|FILE',
        help="what an inference costs in the recording's time: nothing, what it took, so much, "
        'or what each act cost in a run whose --json is FILE; none',
    )  # fmt: skip
    add('--from', dest='start', type=_seconds, default=0.0, metavar='S', help='begin there')
    add('--to', dest='stop', type=_seconds, metavar='S', help='end there')
    add('--rate', type=_above_zero, help='pace it: so many times as fast as recorded')
    add('--loop', type=_count, default=1, metavar='N', help='so many times; 0 until interrupted')
    add(
        '--remap', type=_pair, action='append', default=[], metavar='OLD:=NEW',
        help='a topic of the parameters to one of the recording; repeatable',
    )  # fmt: skip
    add(
        '--on-fault', choices=[item.value for item in OnFault], default=OnFault.USE.value,
        help='use what is well, or refuse the recording; use',
    )  # fmt: skip
    add('--json', type=writable, metavar='FILE', help='write the figures to FILE')
    add('--report', type=writable, metavar='FILE', help='write a page about it to FILE')
    return parser


def _cost(text: str) -> Cost:
    if text in ('none', 'real'):
        return uncharged if text == 'none' else charged_real
    try:
        return charged(_seconds(text))
    except ValueError:
        pass
    try:
        held = json.loads(Path(text).read_text())
        acts_s = held.get('acts_s') if isinstance(held, Mapping) else None
        return charged_as_recorded(acts_s or [])
    except (OSError, ValueError) as error:
        raise argparse.ArgumentTypeError(
            f'expected none, real, seconds, or the --json of a run; got {text!r}: {error}'
        ) from None


def _seconds(text: str) -> float:
    number = float(text)
    if not (math.isfinite(number) and number >= 0):
        raise argparse.ArgumentTypeError(f'expected seconds of 0 or more, got {text}')
    return number


def _above_zero(text: str) -> float:
    if (number := _seconds(text)) == 0:
        raise argparse.ArgumentTypeError(f'expected a number above 0, got {text}')
    return number


def _count(text: str) -> int:
    if (number := int(text)) < 0:
        raise argparse.ArgumentTypeError(f'expected a number of 0 or more, got {text}')
    return number


def _pair(text: str, wanted: str = 'OLD:=NEW') -> tuple[str, str]:
    old, mark, new = text.partition(':=')
    if not (old and mark and new):
        raise argparse.ArgumentTypeError(f'expected {wanted}, got {text}')
    return old, new


def _param(text: str) -> tuple[str, Any]:
    name, value = _pair(text, 'NAME:=VALUE')
    return name, value_of(value)


if __name__ == '__main__':
    sys.exit(main())

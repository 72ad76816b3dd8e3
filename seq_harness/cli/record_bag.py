"""The command record-bag: write live topics to a recording."""

from __future__ import annotations

import argparse
import math
from pathlib import Path

from seq_harness.bags.recording import Storage


def main(argv: list[str] | None = None) -> int:
    """Record until a signal or for the time asked for; return the process's exit status."""
    parser = _parser()
    arguments, ros_arguments = parser.parse_known_args(argv)
    if ros_arguments and ros_arguments[0] != '--ros-args':
        parser.error(f'unknown arguments: {" ".join(ros_arguments)}')
    from seq_harness.ros.bag_recorder import record

    return record(
        arguments.output,
        arguments.topics,
        Storage(arguments.storage),
        arguments.seconds,
        ros_arguments,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog='seq-harness record-bag',
        description='Record topics as they come, each from when it is first published.',
    )
    parser.add_argument('topics', nargs='+', metavar='TOPIC', help='such as /joint_states')
    parser.add_argument(
        '-o', '--output', type=Path, required=True, metavar='PATH', help='the folder to make'
    )
    parser.add_argument(
        '--seconds', type=_seconds, metavar='N', help='how long; until a signal by default'
    )
    parser.add_argument(
        '--storage', choices=[s.value for s in Storage], default='mcap', help='the file format'
    )
    return parser


def _seconds(text: str) -> float:
    seconds = float(text)
    if not (math.isfinite(seconds) and seconds > 0):
        raise argparse.ArgumentTypeError(f'expected seconds above 0, got {text}')
    return seconds

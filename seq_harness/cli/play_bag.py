"""The command play-bag: publish a recording at its own times."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
import sys

from seq_harness.bags.reading import Bag
from seq_harness.bags.records import BagError


def main(argv: list[str] | None = None) -> int:
    """Play until the end or a signal; return the process's exit status."""
    parser = _parser()
    arguments, ros_arguments = parser.parse_known_args(argv)
    if ros_arguments and ros_arguments[0] != '--ros-args':
        parser.error(f'unknown arguments: {" ".join(ros_arguments)}')
    try:
        bag = Bag(arguments.path)
    except BagError as error:
        print(f'play-bag: {error}', file=sys.stderr)
        return 1
    from seq_harness.ros.bag_player import play, PlaySettings

    settings = PlaySettings(
        rate=arguments.rate,
        clock_hz=arguments.clock,
        remaps=dict(arguments.remap),
        start_paused=arguments.start_paused,
        wait_s=arguments.wait,
    )
    with bag:
        return play(bag.topics, bag.records(), bag.start_ns, settings, ros_arguments)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog='seq-harness play-bag',
        description='Publish the messages of a recording as they were, with its time on /clock.',
        epilog='The services ~/pause and ~/resume halt it and let it go on.',
    )
    parser.add_argument('path', type=Path, metavar='PATH', help='a rosbag2 folder, or its file')
    parser.add_argument('--rate', type=_above_zero, default=1.0, help='how much faster; 1')
    parser.add_argument(
        '--clock',
        type=_zero_or_more,
        default=200.0,
        metavar='HZ',
        help='of /clock, 0 is none; 200',
    )
    parser.add_argument(
        '--remap', type=_remap, action='append', default=[], metavar='OLD:=NEW', help='repeatable'
    )
    parser.add_argument('--start-paused', action='store_true', help='wait for ~/resume')
    parser.add_argument(
        '--wait', type=_zero_or_more, default=5.0, metavar='S', help='for subscribers, at most; 5'
    )
    return parser


def _above_zero(text: str) -> float:
    if (number := _zero_or_more(text)) == 0:
        raise argparse.ArgumentTypeError(f'expected a number above 0, got {text}')
    return number


def _zero_or_more(text: str) -> float:
    number = float(text)
    if not (math.isfinite(number) and number >= 0):
        raise argparse.ArgumentTypeError(f'expected a number of 0 or more, got {text}')
    return number


def _remap(text: str) -> tuple[str, str]:
    old, mark, new = text.partition(':=')
    if not (old and mark and new):
        raise argparse.ArgumentTypeError(f'expected OLD:=NEW, got {text}')
    return old, new

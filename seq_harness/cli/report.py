"""The command report: a page about a run, or about two side by side."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
import json
import math
from pathlib import Path
import sys
import tempfile

from seq_harness.bags.params import settings_from
from seq_harness.bags.records import BagError
from seq_harness.bags.report.clipping import clipped
from seq_harness.bags.report.data import ReportData
from seq_harness.bags.report.figures import as_plain
from seq_harness.bags.report.sources import report_data
from seq_harness.cli.files import writable

PAGE = Path('report.html')


def main(argv: list[str] | None = None) -> int:
    """Write the page, or print the figures; 0 if there was something to show."""
    parser = _parser()
    arguments = parser.parse_args(argv)
    if (arguments.path is None) == (arguments.compare is None):
        parser.error('expected a recording, or two after --compare')
    try:
        runs = [_read(path, arguments) for path in arguments.compare or [arguments.path]]
    except (BagError, OSError, ValueError) as error:
        print(f'report: {error}', file=sys.stderr)
        return 1
    if arguments.json:
        plain = [as_plain(run) for run in runs]
        print(json.dumps(plain[0] if len(plain) == 1 else plain, indent=2))
    if arguments.output is not None or not arguments.json:
        write_page(runs, arguments.output or PAGE)
    return 0


def write_page(runs: list[ReportData], file: Path) -> None:
    """
    Write the page about one run or two to `file`, and say where it is.

    Raises
    ------
    ModuleNotFoundError
        What draws is not installed.

    """
    # Only a page needs plotly: figures are printed without it.
    from seq_harness.bags.report.page import page

    file.write_text(page(runs), encoding='utf-8')
    size_mb = file.stat().st_size / 1e6
    print(f'report: {file.resolve().as_uri()} ({size_mb:.1f} MB)', file=sys.stderr)


@contextmanager
def reported(file: Path | None) -> Iterator[Path | None]:
    """
    Give a place for an exact record of a run, and write a page about that run afterwards.

    Gives None where no page is wanted. A run that failed has its page too, if it was recorded.

    Raises
    ------
    ModuleNotFoundError
        What draws is not installed; said before the run.

    """
    if file is None:
        yield None
        return
    import_module('seq_harness.bags.report.page')
    with tempfile.TemporaryDirectory(prefix='seq-harness-report-') as folder:
        record = Path(folder) / f'{file.stem}.mcap'
        try:
            yield record
        finally:
            if record.exists():
                write_page([report_data(record)], file)


def _read(path: Path, arguments: argparse.Namespace) -> ReportData:
    settings = None if arguments.params_file is None else settings_from(arguments.params_file)
    data = report_data(path, settings)
    if arguments.start is None and arguments.stop is None:
        return data
    from_s = -math.inf if arguments.start is None else arguments.start
    return clipped(data, from_s, math.inf if arguments.stop is None else arguments.stop)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog='seq-harness report',
        description='Write a page about a run that was recorded, which opens without a network.',
    )
    add = parser.add_argument
    add('path', type=Path, nargs='?', metavar='BAG|RECORD', help='a rosbag2, or an exact record')
    add('--compare', type=Path, nargs=2, metavar=('A', 'B'), help='two of them, side by side')
    add('-o', '--output', type=writable, metavar='FILE', help=f'the page; {PAGE}')
    add(
        '--params-file', type=Path,
        help='parameters of the harness, which name the joints of what a rosbag2 holds',
    )  # fmt: skip
    add('--from', dest='start', type=_seconds, metavar='S', help='begin there')
    add('--to', dest='stop', type=_seconds, metavar='S', help='end there')
    add('--json', action='store_true', help='print the figures; a page only with -o')
    return parser


def _seconds(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise argparse.ArgumentTypeError(f'expected seconds, got {text}')
    return number


if __name__ == '__main__':
    sys.exit(main())

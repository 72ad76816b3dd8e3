"""Find out what a file is, and read it into a report."""

from __future__ import annotations

from pathlib import Path

from mcap.records import Channel, Message
from mcap.stream_reader import StreamReader
from seq_harness.bags.record_format import KINDS
from seq_harness.bags.report.data import ReportData
from seq_harness.bags.report.from_bag import from_bag
from seq_harness.bags.report.from_record import from_record
from seq_harness.settings import Settings


def report_data(path: Path | str, settings: Settings | None = None) -> ReportData:
    """
    Read an exact record, or any rosbag2.

    `settings` name the joints of a rosbag2's channels; a record has its own.

    Raises
    ------
    BagError
        It is neither, or nothing of it can be read.

    """
    return from_record(path) if is_record(Path(path)) else from_bag(path, settings)


def is_record(path: Path) -> bool:
    """Tell whether a file begins as an exact record of a harness does."""
    if not path.is_file():
        return False
    try:
        with path.open('rb') as stream:
            for found in StreamReader(stream).records:
                if isinstance(found, Channel | Message):
                    return isinstance(found, Channel) and found.topic in KINDS
    except Exception:
        # What is damaged is refused by errors of many libraries; whoever reads it says how.
        return False
    return False

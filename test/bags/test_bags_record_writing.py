"""The thread that writes a record: it never holds up who hands over, and counts what it drops."""

from __future__ import annotations

from collections.abc import Iterator
import os
from pathlib import Path
import resource
import subprocess
import sys
import threading
from typing import Any

from hypothesis import given, strategies
from hypothesis.extra import numpy as arrays
import numpy as np
import pytest
from seq_harness.bags.blanks import blank, deserialised, serialised
from seq_harness.bags.params import settings_from
from seq_harness.bags.record_format import Begin, Clocks, VERSION
from seq_harness.bags.record_reading import read_record
from seq_harness.bags.record_shaping import Images, Shaping
from seq_harness.bags.record_values import (
    chunk_of,
    error_of,
    pack_chunk,
    pack_error,
    pack_settings,
    pack_value,
    settings_of,
    unpack_value,
)
from seq_harness.bags.record_writing import MOST_WAITING, RecordWriter
from seq_harness.bags.records import BagError
from seq_harness.playback.chunk import Chunk, ChunkRefused
from seq_harness.playback.uplink import WorkerLost
from support.recordings import parameters
from support.waiting import PATIENCE_S

SETTINGS = settings_from(parameters())
BEGIN = Begin(VERSION, Clocks(5, 1005), 50_000_000, {}, {}, {}, '', 'acts', 'steady')
NUMBERS = strategies.floats(allow_nan=False)


class Held(Shaping):
    """Makes messages only once it is let go."""

    def __init__(self) -> None:
        super().__init__(SETTINGS, Images.NONE, bytes, lambda t_ns: t_ns)
        self.busy = threading.Event()
        self.free = threading.Event()

    def shaped(self, item: Any) -> Iterator[Any]:
        """Wait, then yield the item."""
        self.busy.set()
        assert self.free.wait(PATIENCE_S)
        yield item


class Full(Shaping):
    """Stands for a disk that is full."""

    def __init__(self) -> None:
        super().__init__(SETTINGS, Images.NONE, bytes, lambda t_ns: t_ns)

    def shaped(self, item: Any) -> Iterator[Any]:
        """Fail."""
        raise OSError('no space left')


def test_what_a_slow_disk_does_not_take_is_dropped_and_counted(tmp_path: Path) -> None:
    shaping, path = Held(), tmp_path / 'slow.mcap'
    said: list[str] = []
    writer = RecordWriter(path, BEGIN, shaping, lambda: Clocks(9, 1009), complain=said.append)
    writer.put(Clocks(6, 1006))
    assert shaping.busy.wait(PATIENCE_S)
    for number in range(MOST_WAITING + 7):
        writer.put(Clocks(number, number))
    assert writer.figures()['dropped'] == {'clocks': 7}
    shaping.free.set()
    writer.close()
    assert said == [
        f'the record {path} lacks items: the disk is too slow',
        f'the record {path} lacks 7 items: the disk was too slow',
    ]
    record = read_record(path)
    assert record.end is not None
    assert record.end.dropped == {'clocks': 7}
    assert record.clocks[0] == Clocks(6, 1006)
    assert len(record.clocks) >= MOST_WAITING + 1
    assert record.ros_ns(8) == 1008


def test_g53_a_disk_that_refuses_ends_the_record_and_nothing_else_and_is_told_twice(
    tmp_path: Path,
) -> None:
    told, path = threading.Event(), tmp_path / 'full.mcap'
    said: list[str] = []

    def complain(text: str) -> None:
        said.append(text)
        told.set()

    writer = RecordWriter(path, BEGIN, Full(), lambda: Clocks(9, 1009), complain=complain)
    writer.put(Clocks(6, 1006))
    assert told.wait(PATIENCE_S)
    assert said == [f'nothing is recorded to {path} any more, and play goes on: no space left']
    writer.put(Clocks(7, 1007))
    writer.close()
    assert said[1:] == [f'the record {path} breaks off: no space left; 1 items are missing']
    assert writer.figures()['error'] == 'no space left'
    assert writer.figures()['dropped'] == {'clocks': 1}
    assert read_record(tmp_path / 'full.mcap').end is None


def test_g53_a_disk_that_is_full_from_the_start_refuses_the_record(tmp_path: Path) -> None:
    path = tmp_path / 'none.mcap'
    script = (
        'from bags.test_bags_record_writing import *\n'
        f'RecordWriter(Path({str(path)!r}), BEGIN, Full(), lambda: Clocks(9, 1009))'
    )
    done = subprocess.run(
        [sys.executable, '-c', script],
        env={**os.environ, 'PYTHONPATH': os.pathsep.join(sys.path)},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert f'BagError: {path} cannot be recorded to: [Errno 27] File too large' in done.stderr


def test_a_record_of_a_later_format_is_refused(tmp_path: Path) -> None:
    begin = Begin(VERSION + 1, *list(vars(BEGIN).values())[1:])
    writer = RecordWriter(tmp_path / 'later.mcap', begin, Full(), lambda: Clocks(9, 1009))
    writer.close()
    with pytest.raises(BagError, match='update'):
        read_record(tmp_path / 'later.mcap')


@given(
    arrays.arrays(
        strategies.sampled_from([np.float64, np.float32, np.int64, np.uint8, np.bool_]),
        arrays.array_shapes(max_dims=2, max_side=4),
    )
)
def test_an_array_comes_back_to_the_bit(values: Any) -> None:
    back = unpack_value(pack_value(values))
    assert back.dtype == values.dtype
    np.testing.assert_array_equal(back, values)


@given(strategies.floats())
def test_a_number_comes_back_to_the_bit(value: float) -> None:
    for number in (value, np.float64(value)):
        back = unpack_value(pack_value(number))
        assert type(back) is type(number)
        assert np.array(back).tobytes() == np.array(number).tobytes() or np.isnan(value)


@given(strategies.lists(strategies.tuples(NUMBERS, NUMBERS), min_size=1, max_size=4))
def test_a_chunk_comes_back_as_it_was(rows: list[tuple[float, float]]) -> None:
    chunk = Chunk.at_rate([{'arm': np.array(row)} for row in rows], 20.0, 'done').cut(2)
    back = chunk_of(pack_chunk(chunk))
    assert (back.end_ns, back.end_reason, back.beyond_end_ns) == (
        chunk.end_ns,
        chunk.end_reason,
        chunk.beyond_end_ns,
    )
    for one, other in zip((*back.rows, *back.beyond), (*chunk.rows, *chunk.beyond), strict=True):
        assert one.offset_ns == other.offset_ns
        np.testing.assert_array_equal(one.commands['arm'], other.commands['arm'])


def test_failures_come_back_as_the_loop_tells_them_apart() -> None:
    for error in (WorkerLost('gone'), ChunkRefused('too wide', 'width'), KeyError('front')):
        back = error_of(pack_error(error))
        assert type(back).__name__ == type(error).__name__
        assert str(back) == str(error)
    refused = error_of(pack_error(ChunkRefused('too wide', 'width')))
    assert isinstance(refused, ChunkRefused)
    assert refused.cause == 'width'


def test_settings_come_back_equal() -> None:
    assert settings_of(pack_settings(SETTINGS)) == SETTINGS


def test_bytes_behind_a_message_are_passed_over() -> None:
    message = blank('std_msgs/msg/Float64')
    message.data = 0.25
    data = serialised(message)
    assert deserialised(data + bytes(153), 'std_msgs/msg/Float64').data == 0.25
    with pytest.raises(BagError, match='no std_msgs/msg/Float64'):
        deserialised(data[:6], 'std_msgs/msg/Float64')

"""Recordings as they are written."""

from __future__ import annotations

from pathlib import Path
import threading

import pytest
from seq_harness.bags.reading import Bag
from seq_harness.bags.recording import Kept, Recorder, Storage
from seq_harness.bags.records import BagError, Offered, Record, Topic
from support.waiting import PATIENCE_S

FLOAT = 'std_msgs/msg/Float64'
CUSTOM = 'lab_msgs/msg/Reading'
DATA = b'\x00\x01\x00\x00' + bytes(8)


def _record(number: int, topic: str = '/a') -> Record:
    return Record(topic, FLOAT, 1_000 + number, DATA)


@pytest.mark.parametrize('storage', Storage)
def test_what_is_written_is_read_back(tmp_path: Path, storage: Storage) -> None:
    path = tmp_path / 'bag'
    recorder = Recorder(path, storage)
    recorder.add_topic(Topic('/a', FLOAT))
    recorder.add_topic(Topic('/b', FLOAT, offered=Offered(reliable=False, latched=True, depth=3)))
    records = [_record(n, '/ab'[:1] + 'ab'[n % 2]) for n in range(100)]
    assert {recorder.write(record) for record in records} == {Kept.QUEUED}
    recorded = recorder.close()
    assert recorded.counts == {'/a': 50, '/b': 50}
    assert recorded.dropped == {}
    with Bag(path) as bag:
        assert list(bag.records()) == records
        assert [topic.offered for topic in bag.topics] == [
            Offered(),
            Offered(reliable=False, latched=True, depth=3),
        ]


def test_a_topic_without_messages_is_kept(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / 'bag')
    recorder.add_topic(Topic('/a', FLOAT))
    assert recorder.close().counts == {'/a': 0}
    with Bag(tmp_path / 'bag') as bag:
        assert [topic.name for topic in bag.topics] == ['/a']


def test_a_type_that_only_its_own_package_knows_is_described_in_the_recording(
    tmp_path: Path,
) -> None:
    texts = {
        CUSTOM: 'std_msgs/Header header\nlab_msgs/Part[] parts\nfloat64 value',
        'lab_msgs/msg/Part': 'string name',
        'std_msgs/msg/Header': 'builtin_interfaces/Time stamp\nstring frame_id',
        'builtin_interfaces/msg/Time': 'int32 sec\nuint32 nanosec',
    }
    recorder = Recorder(tmp_path / 'bag', define=texts.get)
    recorder.add_topic(Topic('/a', CUSTOM))
    time_and_frame = bytes(8) + b'\x01\x00\x00\x00\x00' + bytes(3)
    data = b'\x00\x01\x00\x00' + time_and_frame + bytes(4) + bytes(4) + b'\x00' * 6 + b'\xf0\x3f'
    recorder.write(Record('/a', CUSTOM, 5, data))
    recorder.close()
    with Bag(tmp_path / 'bag') as bag:
        ((_, message),) = bag.messages()
    assert message.value == 1.0
    assert message.parts == []


def test_a_type_that_nobody_defines_is_named_at_the_end(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / 'bag')
    recorder.add_topic(Topic('/a', CUSTOM))
    with pytest.raises(BagError, match=r'cannot be written: .*lab_msgs/msg/Reading'):
        recorder.close()


def test_messages_beyond_the_queue_are_dropped_and_counted(tmp_path: Path) -> None:
    asked, may_go_on = threading.Event(), threading.Event()

    def slowly(kind: str) -> str | None:
        asked.set()
        may_go_on.wait(PATIENCE_S)
        return None

    recorder = Recorder(tmp_path / 'bag', max_waiting_bytes=5 * len(DATA), define=slowly)
    recorder.add_topic(Topic('/a', FLOAT))
    assert asked.wait(PATIENCE_S)
    kept = [recorder.write(_record(n)) for n in range(8)]
    assert kept == [Kept.QUEUED] * 5 + [Kept.DROPPED] * 3
    may_go_on.set()
    recorded = recorder.close()
    assert (recorded.counts, recorded.dropped) == ({'/a': 5}, {'/a': 3})


def test_a_recording_that_is_there_is_not_written_over(tmp_path: Path) -> None:
    with pytest.raises(BagError, match='exists already'):
        Recorder(tmp_path)


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / 'file').write_text('')
    with pytest.raises(BagError, match='cannot be written'):
        Recorder(tmp_path / 'file' / 'bag')


def test_a_failure_while_writing_is_told_to_who_writes_and_at_the_end(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / 'bag')
    recorder.write(_record(0, '/never_added'))
    for _ in range(1_000_000):
        if recorder.write(_record(1)) is Kept.FAILED:
            break
    else:
        pytest.fail('the failure was never told')
    with pytest.raises(BagError, match='came on /never_added, which was not added'):
        recorder.close()

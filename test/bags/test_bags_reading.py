"""Recordings as they are found: whole, cut off, damaged, or not there."""

from __future__ import annotations

from pathlib import Path
import shutil

import numpy as np
import pytest
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import get_typestore, Stores
from seq_harness.bags.reading import Bag
from seq_harness.bags.records import BagError, Offered, Record

DATA = Path(__file__).parent / 'data'
JOINTS = DATA / 'zero_stamp_joints'
STORE = get_typestore(Stores.ROS2_JAZZY)
FLOAT = 'std_msgs/msg/Float64'
PAGE = 4096
"""What a database reads at once; a longer message lies on pages of its own."""
PLUGINS = [StoragePlugin.MCAP, StoragePlugin.SQLITE3]


def _made(folder: Path, plugin: StoragePlugin, count: int = 200, more: int = 0) -> Path:
    """Write a recording of two topics, whose messages alternate, each `more` bytes too long."""
    path = folder / 'made'
    with Writer(path, version=9, storage_plugin=plugin) as writer:
        topics = [writer.add_connection(name, FLOAT, typestore=STORE) for name in ('/a', '/b')]
        for number in range(count):
            message = STORE.types[FLOAT](data=float(number))
            data = STORE.serialize_cdr(message, FLOAT)
            writer.write(topics[number % 2], 1_000 + number, bytes(data) + bytes(more))
    return path


def _file(path: Path) -> Path:
    return next(file for file in path.iterdir() if file.suffix in ('.mcap', '.db3'))


def _cut(path: Path, share: float) -> None:
    file = _file(path)
    file.write_bytes(file.read_bytes()[: int(file.stat().st_size * share)])


@pytest.mark.parametrize('plugin', PLUGINS)
def test_messages_come_in_order_of_log_time_with_their_bytes(
    tmp_path: Path, plugin: StoragePlugin
) -> None:
    with Bag(_made(tmp_path, plugin)) as bag:
        assert [(topic.name, topic.type, topic.count) for topic in bag.topics] == [
            ('/a', FLOAT, 100),
            ('/b', FLOAT, 100),
        ]
        assert (bag.count, bag.start_ns, bag.end_ns) == (200, 1_000, 1_199)
        records = list(bag.records())
        assert [record.log_ns for record in records] == list(range(1_000, 1_200))
        assert isinstance(records[0].data, bytes)
        assert [bag.decode(record).data for record in records] == list(range(200))


@pytest.mark.parametrize('plugin', PLUGINS)
def test_topics_and_times_are_chosen(tmp_path: Path, plugin: StoragePlugin) -> None:
    with Bag(_made(tmp_path, plugin)) as bag:
        chosen = [m.data for _, m in bag.messages(['/b'], start_ns=1_010, stop_ns=1_016)]
        assert chosen == [11.0, 13.0, 15.0]
        assert list(bag.records([])) == []


@pytest.mark.parametrize('plugin', PLUGINS)
def test_one_file_of_a_recording_is_read_by_itself(tmp_path: Path, plugin: StoragePlugin) -> None:
    with Bag(_file(_made(tmp_path, plugin))) as bag:
        assert len(list(bag.records(['/a']))) == 100


def test_a_real_recording_is_read() -> None:
    with Bag(JOINTS) as bag:
        states = [message for _, message in bag.messages()]
    assert len(states) == 250
    assert states[0].name == [f'joint_{n}' for n in range(1, 8)]
    assert states[0].position.shape == (7,)


def test_an_older_recording_without_types_is_read_as_jazzy_defines_them() -> None:
    path = Path(__file__).parents[3] / 'shared' / 'bags' / 'lbr_med7_hold'
    if not path.exists():
        pytest.skip('the recording lbr_med7_hold is not beside this repository')
    with Bag(path) as bag:
        record, state = next(bag.messages(['/joint_states']))
        assert record.type == 'sensor_msgs/msg/JointState'
        assert np.isfinite(state.position).all()


def test_the_quality_it_was_offered_with_is_kept() -> None:
    with Bag(DATA / 'handguided_wristcam') as bag:
        assert {topic.offered for topic in bag.topics} <= {None, Offered()}


def test_an_empty_recording_is_read(tmp_path: Path) -> None:
    with Bag(_made(tmp_path, StoragePlugin.MCAP, count=0)) as bag:
        assert (bag.count, bag.start_ns, bag.end_ns) == (0, 0, 0)
        assert list(bag.records()) == []


def test_a_topic_that_is_not_there_is_named_beside_those_that_are(tmp_path: Path) -> None:
    with (
        Bag(_made(tmp_path, StoragePlugin.MCAP)) as bag,
        pytest.raises(BagError, match=r'holds no /c; it holds /a, /b'),
    ):
        next(bag.records(['/a', '/c']))


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(BagError, match='nothing is there'):
        Bag(tmp_path / 'absent')
    with pytest.raises(BagError, match=r'expected metadata\.yaml in .*was not closed'):
        Bag(tmp_path)


@pytest.mark.parametrize(
    ('name', 'content', 'said'),
    [
        ('x.mcap', b'hello', 'x.mcap is no MCAP: it begins with 68656c6c6f'),
        ('x.mcap', b'', 'is no MCAP: it begins with nothing'),
        ('x.txt', b'hello', "cannot be read: Unrecognized storage format '.txt'"),
        ('x.bag', b'#ROSBAG V2.0\n', 'got the ROS 1 bag .*: convert it first'),
        ('x.db3', b'hello', 'cannot be read'),
    ],
)
def test_what_is_no_recording_is_said(
    tmp_path: Path, name: str, content: bytes, said: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(BagError, match=said):
        Bag(path)


@pytest.mark.parametrize('share', [0.05, 0.5, 0.99])
@pytest.mark.parametrize('alone', [False, True])
def test_a_cut_off_mcap_is_refused_with_the_byte_at_which_it_breaks_off(
    tmp_path: Path, share: float, alone: bool
) -> None:
    path = tmp_path / 'cut'
    shutil.copytree(JOINTS, path)
    _cut(path, share)
    size = _file(path).stat().st_size
    with pytest.raises(BagError, match=f'breaks off: expected .* at byte {size - 8}'):
        Bag(_file(path) if alone else path)


def test_a_missing_file_of_a_recording_is_named(tmp_path: Path) -> None:
    path = _made(tmp_path, StoragePlugin.SQLITE3)
    _file(path).unlink()
    with pytest.raises(BagError, match=r'missing: .*made\.db3'):
        Bag(path)


def test_a_damaged_database_tells_the_last_message_that_was_read(tmp_path: Path) -> None:
    path = _made(tmp_path, StoragePlugin.SQLITE3, more=3 * PAGE)
    file = _file(path)
    middle = file.stat().st_size // 2 // PAGE * PAGE
    with file.open('r+b') as stream:
        stream.seek(middle)
        stream.write(b'\xff' * 3 * PAGE)
    read: list[Record] = []
    with Bag(path) as bag, pytest.raises(BagError) as refused:
        read.extend(bag.records())
    assert 50 < len(read) < 150
    place = f'after {len(read)} messages, the last at {read[-1].log_ns} ns'
    assert place in str(refused.value)


@pytest.mark.parametrize('share', [0.1, 0.6])
def test_a_cut_off_database_is_refused(tmp_path: Path, share: float) -> None:
    path = _made(tmp_path, StoragePlugin.SQLITE3, count=3000)
    _cut(path, share)
    with pytest.raises(BagError, match=r'cannot be read|breaks off'), Bag(path) as bag:
        list(bag.records())


def test_messages_that_are_missing_at_the_end_are_noticed(tmp_path: Path) -> None:
    path = _made(tmp_path, StoragePlugin.MCAP)
    metadata = path / 'metadata.yaml'
    metadata.write_text(metadata.read_text().replace('message_count: 100', 'message_count: 101'))
    said = 'breaks off after 200 messages, the last at 1199 ns on /b: expected 202 messages'
    with Bag(path) as bag, pytest.raises(BagError, match=said):
        list(bag.records())


def test_bytes_that_are_not_of_their_type_are_refused_with_their_place() -> None:
    with Bag(JOINTS) as bag:
        record = next(bag.records())
        damaged = Record(record.topic, record.type, record.log_ns, record.data[:40])
        with pytest.raises(BagError, match=f'on /joint_states at {record.log_ns} ns is no sensor'):
            bag.decode(damaged)


@pytest.mark.parametrize('spare', [0, 4, 8])
def test_bytes_that_a_serialiser_leaves_behind_are_no_part_of_a_message(
    tmp_path: Path, spare: int
) -> None:
    with Bag(_made(tmp_path, StoragePlugin.MCAP, more=spare)) as bag:
        assert [message.data for _, message in bag.messages()] == list(range(200))


def test_more_bytes_than_that_are_another_message(tmp_path: Path) -> None:
    with (
        Bag(_made(tmp_path, StoragePlugin.MCAP, more=40)) as bag,
        pytest.raises(BagError, match='size mismatch'),
    ):
        next(bag.messages())

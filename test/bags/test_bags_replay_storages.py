"""However a recording is stored, its replay is the same."""

from __future__ import annotations

from pathlib import Path
import shutil
import struct

import pytest
from rosbags.rosbag2 import CompressionMode, StoragePlugin
from seq_harness.bags import replay
from seq_harness.bags.records import BagError
from support.recordings import Follow, motion, parameters, write
import yaml

MAGIC = b'\x89MCAP0\r\n'
MCAP, SQLITE3 = StoragePlugin.MCAP, StoragePlugin.SQLITE3


@pytest.fixture(scope='module')
def expected(tmp_path_factory: pytest.TempPathFactory) -> str:
    return _hash(write(tmp_path_factory.mktemp('plain') / 'bag', motion()))


def _hash(bag: Path) -> str:
    return replay(bag, parameters(), Follow()).hash


@pytest.mark.parametrize(
    ('plugin', 'compression'),
    [
        (MCAP, CompressionMode.STORAGE),
        (SQLITE3, None),
        (SQLITE3, CompressionMode.MESSAGE),
        (SQLITE3, CompressionMode.FILE),
    ],
)
def test_a_storage_changes_nothing(
    tmp_path: Path, expected: str, plugin: StoragePlugin, compression: CompressionMode | None
) -> None:
    assert _hash(write(tmp_path / 'bag', motion(), plugin, compression)) == expected


@pytest.mark.parametrize('compression', [CompressionMode.MESSAGE, CompressionMode.FILE])
def test_a_compressed_file_is_read_as_the_metadata_beside_it_say(
    tmp_path: Path, expected: str, compression: CompressionMode
) -> None:
    folder = write(tmp_path / 'bag', motion(), SQLITE3, compression)
    (file,) = folder.glob('*.db3*')
    assert _hash(file) == expected


def test_one_of_several_compressed_files_is_refused_naming_the_folder(tmp_path: Path) -> None:
    folder = write(tmp_path / 'bag', motion(), SQLITE3, CompressionMode.MESSAGE)
    metadata = folder / 'metadata.yaml'
    told = yaml.safe_load(metadata.read_text())
    told['rosbag2_bagfile_information']['relative_file_paths'].append('bag_1.db3')
    metadata.write_text(yaml.safe_dump(told))
    with pytest.raises(BagError, match='name its folder'):
        _hash(next(folder.glob('*.db3')))


def test_a_recording_of_two_files_is_one(tmp_path: Path, expected: str) -> None:
    messages = motion()
    first = write(tmp_path / 'first', messages[:90])
    second = write(tmp_path / 'second', messages[90:])
    assert _hash(_joined(first, second)) == expected


def test_a_file_without_an_index_is_read(tmp_path: Path, expected: str) -> None:
    file = write(tmp_path / 'bag', motion()) / 'bag.mcap'
    bare = tmp_path / 'bare.mcap'
    data = file.read_bytes()
    (summary,) = struct.unpack('<Q', data[-28:-20])
    footer = b'\x02' + struct.pack('<QQQI', 20, 0, 0, 0)
    bare.write_bytes(data[:summary] + footer + MAGIC)
    assert summary
    assert _hash(bare) == expected


def _joined(first: Path, second: Path) -> Path:
    """Make one recording of two, as a recorder that splits writes it."""
    name = f'{second.name}.mcap'
    shutil.copy(second / name, first / name)
    held, more = (yaml.safe_load((path / 'metadata.yaml').read_text()) for path in (first, second))
    about, also = (each['rosbag2_bagfile_information'] for each in (held, more))
    about['relative_file_paths'].append(name)
    about['files'] = about.get('files', []) + also.get('files', [])
    end_ns = also['starting_time']['nanoseconds_since_epoch'] + also['duration']['nanoseconds']
    about['duration']['nanoseconds'] = end_ns - about['starting_time']['nanoseconds_since_epoch']
    about['message_count'] += also['message_count']
    for topic, other in zip(
        about['topics_with_message_count'], also['topics_with_message_count'], strict=True
    ):
        topic['message_count'] += other['message_count']
    (first / 'metadata.yaml').write_text(yaml.safe_dump(held))
    return first

"""Recordings and texts that unfold to far more than they are: refused in a line, by name."""

from __future__ import annotations

from pathlib import Path
import shutil
import struct
from typing import NamedTuple

import lz4.frame
import pytest
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer
from rosbags.typesys import get_typestore, Stores
from seq_harness.bags.bounded_yaml import load_yaml, MAX_DEPTH, MAX_NODES, YamlRefused
from seq_harness.bags.params import sections
from seq_harness.bags.reading import Bag
from seq_harness.bags.records import BagError
from seq_harness.bags.unpacking import MOST_VARIABLE
from seq_harness.settings import SettingsError
import zstandard

STORE = get_typestore(Stores.ROS2_JAZZY)
TEXT = 'std_msgs/msg/String'
CHUNK = 0x06
LAUGHS = 'a: &a [x, x, x, x, x, x, x, x, x]\n' + ''.join(
    f'{name}: &{name} [{", ".join(["*" + before] * 9)}]\n'
    for before, name in zip('abcdefg', 'bcdefgh', strict=True)
)


def made(folder: Path, mode: CompressionMode | None, length: int = 1000) -> Path:
    """Write a recording of ten texts of zeros, compressed in its way."""
    plugin = StoragePlugin.MCAP if mode is CompressionMode.STORAGE else StoragePlugin.SQLITE3
    path = folder / 'made'
    writer = Writer(path, version=9, storage_plugin=plugin)
    if mode is not None:
        writer.set_compression(mode, CompressionFormat.ZSTD)
    with writer:
        connection = writer.add_connection('/text', TEXT, typestore=STORE)
        message = STORE.serialize_cdr(STORE.types[TEXT](data='0' * length), TEXT)
        for number in range(10):
            writer.write(connection, number, bytes(message))
    return path


class Chunk(NamedTuple):
    """Where the first chunk of a file lies, and what of it is compressed."""

    at: int
    declared: int
    data: slice


def chunk_of(file: bytes) -> Chunk:
    at = 8
    while file[at] != CHUNK:
        at += 9 + struct.unpack_from('<Q', file, at + 1)[0]
    declared, _, named = struct.unpack_from('<QII', file, at + 25)
    begin = at + 9 + 32 + named + 8
    return Chunk(at, declared, slice(begin, at + 9 + struct.unpack_from('<Q', file, at + 1)[0]))


def mcap_of(folder: Path) -> Path:
    (file,) = folder.glob('*.mcap')
    return file


@pytest.mark.parametrize('declared', [(1 << 30) + 1, 5 << 40, (1 << 64) - 1])
def test_a_chunk_that_declares_more_than_a_gigabyte_is_refused(
    tmp_path: Path, declared: int
) -> None:
    file = mcap_of(made(tmp_path, CompressionMode.STORAGE))
    data = bytearray(file.read_bytes())
    at = chunk_of(bytes(data)).at
    struct.pack_into('<Q', data, at + 25, declared)
    file.write_bytes(data)
    with pytest.raises(BagError, match=f'chunk at byte {at} declares .* GB.*{MOST_VARIABLE}'):
        Bag(file.parent)


@pytest.mark.parametrize('kind', ['zstd', 'lz4 '])
def test_a_chunk_that_holds_more_than_it_declares_is_refused(tmp_path: Path, kind: str) -> None:
    file = mcap_of(made(tmp_path, CompressionMode.STORAGE))
    data = file.read_bytes()
    chunk = chunk_of(data)
    pack = zstandard.ZstdCompressor().compress if kind == 'zstd' else lz4.frame.compress
    bomb = pack(bytes(64 << 20))
    name = kind.strip().encode()
    head = data[chunk.at + 9 : chunk.at + 9 + 28]
    body = head + struct.pack('<I', len(name)) + name + struct.pack('<Q', len(bomb)) + bomb
    record = struct.pack('<BQ', CHUNK, len(body)) + body
    file.write_bytes(data[: chunk.at] + record + data[chunk.data.stop :])
    with pytest.raises(BagError, match=f'holds more than the {chunk.declared} bytes'):
        Bag(file)


def test_a_message_that_unpacks_to_more_than_a_piece_may_is_refused_and_the_bound_can_be_lifted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = made(tmp_path, CompressionMode.MESSAGE, 4 << 20)
    monkeypatch.setenv(MOST_VARIABLE, '0.001')
    with Bag(folder) as bag, pytest.raises(BagError, match=f'unpacks to more.*{MOST_VARIABLE}'):
        list(bag.records())
    monkeypatch.setenv(MOST_VARIABLE, '0.01')
    with Bag(folder) as bag:
        assert len(list(bag.records())) == 10


def test_a_file_that_unpacks_to_200_times_its_size_and_a_piece_is_refused_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unpacked = tmp_path / 'unpacked'
    unpacked.mkdir()
    monkeypatch.setattr('tempfile.tempdir', str(unpacked))
    folder = made(tmp_path, CompressionMode.FILE, 4 << 20)
    monkeypatch.setenv(MOST_VARIABLE, '0.001')
    with pytest.raises(BagError, match=f'unpacks to more.*{MOST_VARIABLE}'):
        Bag(folder)
    assert list(unpacked.iterdir()) == []
    monkeypatch.setenv(MOST_VARIABLE, '1')
    with Bag(folder) as bag:
        assert len(list(bag.records())) == 10
    assert list(unpacked.iterdir()) == []


def test_a_file_that_the_disk_has_no_room_for_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = made(tmp_path, CompressionMode.FILE)
    full = shutil.disk_usage(tmp_path)._replace(free=0)
    monkeypatch.setattr(shutil, 'disk_usage', lambda path: full)
    with pytest.raises(BagError, match='set TMPDIR'):
        Bag(folder)


@pytest.mark.parametrize('said', ['much', '0', '-1', 'nan', 'inf'])
def test_a_bound_that_is_none_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    folder = made(tmp_path, CompressionMode.STORAGE)
    monkeypatch.setenv(MOST_VARIABLE, said)
    with pytest.raises(BagError, match=f'above 0 in {MOST_VARIABLE}'):
        Bag(folder)


@pytest.mark.parametrize(
    ('text', 'why'),
    [
        (LAUGHS, f'more than {MAX_NODES} values'),
        ('[' * 100_000, f'more than {MAX_DEPTH} collections'),
        ('{a: ' * 1_000 + '1' + '}' * 1_000, f'more than {MAX_DEPTH} collections'),
        (f'[{"1, " * (MAX_NODES + 1)}]', f'more than {MAX_NODES} values'),
    ],
    ids=['aliases', 'brackets', 'mappings', 'values'],
)
def test_a_text_that_unfolds_is_refused_before_it_is_built(text: str, why: str) -> None:
    with pytest.raises(YamlRefused, match=why):
        load_yaml(text)


def test_aliases_and_depth_within_the_bounds_are_read() -> None:
    assert load_yaml('a: &a {b: [1, 2]}\nc: *a') == {'a': {'b': [1, 2]}, 'c': {'b': [1, 2]}}
    assert load_yaml('') is None


def test_metadata_that_unfold_are_refused_in_a_line(tmp_path: Path) -> None:
    folder = made(tmp_path, CompressionMode.STORAGE)
    (folder / 'metadata.yaml').write_text(LAUGHS)
    with pytest.raises(BagError, match=r'metadata\.yaml cannot be read') as refused:
        Bag(folder)
    assert len(str(refused.value)) < 500


def test_a_parameter_file_that_unfolds_is_refused_in_a_line(tmp_path: Path) -> None:
    file = tmp_path / 'mine.yaml'
    file.write_text(LAUGHS)
    with pytest.raises(SettingsError, match='is no YAML') as refused:
        sections(file)
    assert len(str(refused.value)) < 500

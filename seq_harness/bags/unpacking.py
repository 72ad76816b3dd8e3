"""Unpack what a recording compresses, within bounds: its sizes are a stranger's word."""

from __future__ import annotations

from collections.abc import Iterator
import io
import os
from pathlib import Path
import shutil
import struct
from typing import BinaryIO

import lz4.frame
from seq_harness.bags.bounded_yaml import load_yaml
from seq_harness.bags.records import BagError
import yaml
import zstandard

GIGABYTE = 1 << 30

MOST_VARIABLE = 'SEQ_HARNESS_MAX_CHUNK_GB'
"""The environment variable that lifts how much one compressed piece may hold, in GB; 1."""

PIECE = 1 << 20
"""How much is unpacked at once."""

RATIO = 200
"""How much more than its own size a whole compressed file may hold, above one piece's bound."""

SPARE_BYTES = 256 << 20
"""What is left free on the disk that a recording is unpacked to."""

CHUNK = 0x06
"""The kind of a record of MCAP that holds compressed ones."""

RECORD = struct.Struct('<BQ')
"""How a record of MCAP begins: its kind, and the bytes that follow."""

CHUNK_HEAD = struct.Struct('<QQQII')
"""How a chunk begins: two times, its size unpacked, a checksum, the length of a name."""

MARK_BYTES = 8
"""How long the mark is with which an MCAP begins."""


def most_bytes() -> int:
    """
    Return how many bytes one compressed piece may hold.

    Raises
    ------
    BagError
        The environment says no number above 0.

    """
    text = os.environ.get(MOST_VARIABLE, '1')
    try:
        most = float(text)
    except ValueError:
        most = 0.0
    if not 0 < most < float('inf'):
        raise BagError(f'expected a number of GB above 0 in {MOST_VARIABLE}, got {text!r}')
    return int(most * GIGABYTE)


def check_chunks(file: Path) -> None:
    """
    Refuse an MCAP one of whose chunks unpacks to more than it may, or than it declares.

    Raises
    ------
    BagError
        It does; says at which byte, and which variable lifts the bound.

    """
    most = most_bytes()
    with file.open('rb') as stream:
        for at, declared, kind, data in _chunks(stream, file.stat().st_size):
            where = f'{file}: the chunk at byte {at}'
            if declared > most:
                raise BagError(f'{where} declares {_gb(declared)}, {_too_much(most)}')
            if _unpacks_beyond(kind, data, declared):
                raise BagError(
                    f'{where} holds more than the {declared} bytes that it declares: it is '
                    'damaged, or was made to fill the memory'
                )


def unpack_message(data: bytes) -> bytes:
    """
    Return a message that was compressed by itself.

    Raises
    ------
    BagError
        It holds more than one piece may.

    """
    most, whole = most_bytes(), bytearray()
    for piece in _pieces(_unpacking('zstd', io.BytesIO(data))):
        whole += piece
        if len(whole) > most:
            raise BagError(f'a message of {len(data)} bytes unpacks to {_too_much(most)}')
    return bytes(whole)


def unpack_files(folder: Path, into: Path) -> Path:
    """
    Unpack a recording whose files are compressed whole, and return the folder to read.

    Raises
    ------
    BagError
        A file holds `RATIO` times its size and more than one piece may, or more than the disk has
        room for; or the metadata do not say which files there are.

    """
    held = load_yaml((folder / 'metadata.yaml').read_text())
    try:
        told = held['rosbag2_bagfile_information']
        names = [Path(name).name for name in told['relative_file_paths']]
        for entry in told.get('files') or []:
            entry['path'] = Path(entry['path']).stem
    except (KeyError, TypeError, AttributeError) as error:
        raise BagError(f'{folder / "metadata.yaml"} lacks what it must say: {error!r}') from error
    told['relative_file_paths'] = [Path(name).stem for name in names]
    told['compression_mode'] = told['compression_format'] = ''
    for name in names:
        _unpack_file(folder / name, into / Path(name).stem)
    (into / 'metadata.yaml').write_text(yaml.safe_dump(held))
    return into


def _unpack_file(packed: Path, made: Path) -> None:
    most = max(most_bytes(), RATIO * packed.stat().st_size)
    room = shutil.disk_usage(made.parent).free - SPARE_BYTES
    written = 0
    with packed.open('rb') as source, made.open('wb') as target:
        for piece in _pieces(_unpacking('zstd', source)):
            written += len(piece)
            if written > most:
                raise BagError(f'{packed} unpacks to {_too_much(most)}')
            if written > room:
                raise BagError(
                    f'{packed} unpacks to more than the {_gb(max(0, room))} that may be used in '
                    f'{made.parent}: free some, or set TMPDIR to a larger disk'
                )
            target.write(piece)


def _chunks(stream: BinaryIO, size: int) -> Iterator[tuple[int, int, str, bytes]]:
    """Yield of each chunk that is whole its place, declared size, compression and data."""
    at = stream.seek(MARK_BYTES)
    while len(begin := stream.read(RECORD.size)) == RECORD.size:
        kind, length = RECORD.unpack(begin)
        after = at + RECORD.size + length
        if after > size:
            return
        if kind == CHUNK and length > CHUNK_HEAD.size:
            body = stream.read(length)
            _, _, declared, _, named = CHUNK_HEAD.unpack_from(body)
            name = body[CHUNK_HEAD.size : CHUNK_HEAD.size + named].decode(errors='replace')
            yield at, declared, name, body[CHUNK_HEAD.size + named + 8 :]
        at = stream.seek(after)


def _unpacks_beyond(kind: str, data: bytes, declared: int) -> bool:
    held = 0
    try:
        for piece in _pieces(_unpacking(kind, io.BytesIO(data))):
            held += len(piece)
            if held > declared:
                return True
    except (RuntimeError, EOFError, zstandard.ZstdError):
        return False  # What is damaged is named by whoever reads it.
    return False


def _unpacking(kind: str, packed: BinaryIO) -> BinaryIO:
    """Return a stream of what `packed` holds; another kind than zstd or lz4 is read as it is."""
    if kind == 'zstd':
        stream: BinaryIO = zstandard.ZstdDecompressor().stream_reader(
            packed, read_across_frames=True
        )
        return stream
    return lz4.frame.open(packed) if kind == 'lz4' else packed


def _pieces(stream: BinaryIO) -> Iterator[bytes]:
    while piece := stream.read(PIECE):
        yield piece


def _too_much(most: int) -> str:
    return (
        f'more than {_gb(most)}: is it a recording? {MOST_VARIABLE} in the environment lifts the '
        'bound'
    )


def _gb(size: int) -> str:
    return f'{size / GIGABYTE:.3g} GB'

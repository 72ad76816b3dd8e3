"""Open recordings whose files were not closed, or not copied whole, as far as they go."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, ExitStack
from pathlib import Path
import shutil
import struct
import tempfile
from typing import BinaryIO

from seq_harness.bags.reading import Bag, MCAP_MARK
from seq_harness.bags.records import BagError

RECORD = struct.Struct('<BQ')
"""How an MCAP record begins: its kind, and the bytes that follow."""

HEADER, DATA_END, FOOTER = 0x01, 0x0F, 0x02
SUMMARY_ONLY = frozenset({FOOTER, 0x08, 0x0A, 0x0B, 0x0D, 0x0E, DATA_END})
"""Kinds of records that stand behind the data, and mean nothing without all of them."""

EMPTY_FOOTER = RECORD.pack(FOOTER, 20) + bytes(20)
"""Says that there is no index, so that the data are read from the first byte on."""


@contextmanager
def opened(path: Path | str, *, mend: bool) -> Iterator[tuple[Bag, str]]:
    """
    Open a recording; where it breaks off and `mend` says so, what is whole of it.

    Gives the recording, and what was wrong with it: empty for nothing. What is mended is a copy,
    which is gone afterwards.

    Raises
    ------
    BagError
        It cannot be read at all.

    """
    broken = ''
    file: Path | None = None
    try:
        bag = Bag(path)
    except BagError as error:
        file, broken = _only_file(Path(path)) if mend else None, str(error)
        if file is None:
            raise
    with ExitStack() as stack:
        if file is not None:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix='seq-harness-mended-'))
            bag = _read(_mended(file, Path(folder)), file, broken)
        yield stack.enter_context(bag), broken


def _read(mended: Path, file: Path, broken: str) -> Bag:
    """Open what is whole of a file, under the file's own name."""
    nothing = f'{broken}; nothing before that can be read' if 'breaks off' in broken else broken
    try:
        bag = Bag(mended)
    except BagError as error:
        raise BagError(nothing) from error
    if not bag.count:
        bag.close()
        raise BagError(nothing)
    bag.path = file
    return bag


def _only_file(path: Path) -> Path | None:
    """Return the file of a recording that has one; None for others."""
    if path.is_file():
        return path
    files = [file for file in path.glob('*') if file.suffix in ('.mcap', '.db3')]
    return files[0] if len(files) == 1 else None


def _mended(file: Path, folder: Path) -> Path:
    """Return a file that can be read: a copy with an end, or the file itself where it has one."""
    if file.suffix != '.mcap':
        return file
    with file.open('rb') as stream:
        whole = _whole_bytes(stream, file.stat().st_size)
    if whole is None:
        return file
    made = folder / file.name
    with file.open('rb') as stream, made.open('wb') as copy:
        shutil.copyfileobj(stream, copy)
        copy.seek(whole)
        copy.truncate()
        copy.write(EMPTY_FOOTER + MCAP_MARK)
    return made


def _whole_bytes(stream: BinaryIO, size: int) -> int | None:
    """Return how many bytes hold whole records of data; None where nothing need be mended."""
    at = len(MCAP_MARK)
    if stream.read(at) != MCAP_MARK:
        raise BagError(f'{stream.name} is no MCAP: nothing of it can be read')
    while (begin := stream.read(RECORD.size)) and len(begin) == RECORD.size:
        kind, length = RECORD.unpack(begin)
        if kind == FOOTER and at + RECORD.size + length + len(MCAP_MARK) == size:
            return None
        if kind in SUMMARY_ONLY or at + RECORD.size + length > size:
            break
        at = stream.seek(length, 1)
    return at

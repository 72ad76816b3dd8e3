"""Read rosbag2 recordings, MCAP and sqlite3, message by message."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
import tempfile
from types import TracebackType
from typing import Any, TypeVar

from rosbags.highlevel import AnyReader
from rosbags.interfaces import Connection, Qos, QosDurability, QosReliability
from rosbags.typesys import get_typestore, Stores
from seq_harness.bags.bounded_yaml import load_yaml
from seq_harness.bags.records import BagError, Offered, PADDING, Record, Topic
from seq_harness.bags.unpacking import check_chunks, unpack_files, unpack_message
from typing_extensions import Self
import yaml

T = TypeVar('T')

METADATA = 'metadata.yaml'

MCAP_MARK = b'\x89MCAP0\r\n'
"""How an MCAP file begins and ends."""

PACKED_BY = BY_FILE, BY_MESSAGE = 'file', 'message'
"""How a recording's metadata call what is compressed outside its storage."""


class Bag:
    """
    An open recording; a context manager.

    Messages of types that it does not describe are read as Jazzy defines them.
    """

    def __init__(self, path: Path | str) -> None:
        """
        Open a recording's folder, or one of its files.

        Raises
        ------
        BagError
            It is not there, is no rosbag2, or breaks off.

        """
        self.path = _readable(Path(path))
        self._stack = ExitStack()
        _check_files(self.path)
        try:
            self._reader = self._opened()
        except BaseException:
            self._stack.close()
            raise
        self.topics = tuple(_topic_of(c) for c in self._reader.connections)
        """The topics it holds; a topic with two types or qualities appears twice."""

    @property
    def count(self) -> int:
        """Return how many messages it holds."""
        return self._reader.message_count

    @property
    def start_ns(self) -> int:
        """Return the log time of its first message; 0 when it holds none."""
        return self._reader.start_time if self.count else 0

    @property
    def end_ns(self) -> int:
        """Return the log time of its last message; 0 when it holds none."""
        return self._reader.end_time - 1 if self.count else 0

    def records(
        self,
        topics: Collection[str] | None = None,
        *,
        start_ns: int | None = None,
        stop_ns: int | None = None,
    ) -> Iterator[Record]:
        """
        Yield the messages in order of log time, still serialised.

        `topics` names those wanted, all when None; `start_ns` is the first log time and `stop_ns`
        the first one after.

        Raises
        ------
        BagError
            A topic is not in it; or it breaks off, with the place of the last good message.

        """
        wanted = self._connections(topics)
        if not wanted:
            return
        messages = self._reader.messages(wanted, start=start_ns, stop=stop_ns)
        number, last = 0, None
        while (item := self._guarded(lambda: next(messages, None), number, last)) is not None:
            last = self._guarded(partial(self._record, *item), number, last)
            number += 1
            yield last
        expected = sum(connection.msgcount for connection in wanted)
        if start_ns is None and stop_ns is None and number < expected:
            raise BagError(
                f'{self.path} breaks off{_place(number, last)}: expected {expected} messages'
            )

    def messages(
        self,
        topics: Collection[str] | None = None,
        *,
        start_ns: int | None = None,
        stop_ns: int | None = None,
    ) -> Iterator[tuple[Record, Any]]:
        """Yield what `records` yields, each with its decoded message, as rosbags makes it."""
        for record in self.records(topics, start_ns=start_ns, stop_ns=stop_ns):
            yield record, self.decode(record)

    def decode(self, record: Record) -> Any:
        """
        Return the message of a record of this recording, as rosbags makes it.

        Raises
        ------
        BagError
            Its bytes are not of its type.

        """
        failure: Exception | None = None
        for spare in PADDING:
            try:
                data = record.data[: len(record.data) - spare]
                return self._reader.deserialize(data, record.type)
            except Exception as error:
                failure = failure or error
        raise BagError(
            f'{self.path}: the message on {record.topic} at {record.log_ns} ns is no '
            f'{record.type}: {failure}'
        ) from failure

    def close(self) -> None:
        """Close its files."""
        if self._reader.stack is not None:
            self._reader.close()
        self._stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _opened(self) -> AnyReader:
        store, path, packed = get_typestore(Stores.ROS2_JAZZY), self.path, _packed_by(self.path)
        if packed == BY_FILE:
            folder = tempfile.TemporaryDirectory(prefix='seq-harness-unpacked-')
            into = Path(self._stack.enter_context(folder))
            path = self._guarded(lambda: unpack_files(self.path, into))
            for file in path.glob('*.mcap'):
                _check_mcap(file)
        reader = self._guarded(lambda: AnyReader([path], default_typestore=store))
        self._guarded(reader.open)
        self._unpack = unpack_message if packed == BY_MESSAGE else bytes
        if packed == BY_MESSAGE:
            for each in reader.readers:
                # rosbags would unpack without a bound: its messages stay packed.
                storage: Any = getattr(each, 'storage', None)
                storage.metadata = storage.metadata._replace(compression_mode=None)
        return reader

    def _record(self, connection: Connection, log_ns: int, data: bytes) -> Record:
        return Record(connection.topic, connection.msgtype, log_ns, self._unpack(data))

    def _connections(self, topics: Collection[str] | None) -> list[Connection]:
        held = {connection.topic for connection in self._reader.connections}
        if missing := sorted(set(topics or ()) - held):
            raise BagError(
                f'{self.path} holds no {", ".join(missing)}; it holds {", ".join(sorted(held))}'
            )
        return [c for c in self._reader.connections if topics is None or c.topic in topics]

    def _guarded(self, step: Callable[[], T], number: int = 0, last: Record | None = None) -> T:
        """Run one step of the reader, whose storages raise errors of many libraries."""
        try:
            return step()
        except BagError:
            raise
        except Exception as error:
            said = f'{self.path} cannot be read{_place(number, last)}: {error}'
            if 'Profile is not ros2' in said:
                said += ' No rosbag2 wrote it; an exact record is replayed with --exact.'
            raise BagError(said) from error


def _place(number: int, last: Record | None) -> str:
    if last is None:
        return ''
    return f' after {number} messages, the last at {last.log_ns} ns on {last.topic}'


def _readable(path: Path) -> Path:
    """Return what to open: for a file that only its metadata tell how to unpack, its folder."""
    metadata = path.parent / METADATA
    if not (path.is_file() and metadata.is_file()):
        return path
    try:
        told = load_yaml(metadata.read_text())['rosbag2_bagfile_information']
        packed = str(told.get('compression_mode', '')).lower() in PACKED_BY
        alone = told['relative_file_paths'] == [path.name]
    except (yaml.YAMLError, KeyError, TypeError, AttributeError, UnicodeDecodeError):
        return path
    if packed and not alone:
        raise BagError(f'{path} is compressed as {metadata} says: name its folder instead')
    return path.parent if packed else path


def _packed_by(path: Path) -> str:
    """Return how the metadata say that a recording is compressed; empty where they do not."""
    if not path.is_dir():
        return ''
    try:
        told = load_yaml((path / METADATA).read_text())['rosbag2_bagfile_information']
        mode = str(told.get('compression_mode', '')).lower()
    except (KeyError, TypeError, AttributeError):
        return ''  # What is missing is named by whoever reads on.
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise BagError(f'{path / METADATA} cannot be read: {error}') from error
    return mode if mode in PACKED_BY else ''


def _check_files(path: Path) -> None:
    """Name the commonest faults better than a storage does."""
    if not path.exists():
        raise BagError(f'expected a recording at {path}, and nothing is there')
    if path.is_dir() and not (path / METADATA).exists():
        raise BagError(
            f'expected metadata.yaml in {path}, and it is not there: the recording was not '
            'closed, or this is no rosbag2'
        )
    if path.suffix == '.bag':
        raise BagError(f'expected a rosbag2 recording, got the ROS 1 bag {path}: convert it first')
    for file in path.glob('*.mcap') if path.is_dir() else [path] * (path.suffix == '.mcap'):
        _check_mcap(file)


def _check_mcap(file: Path) -> None:
    size, mark = file.stat().st_size, len(MCAP_MARK)
    with file.open('rb') as stream:
        begin = stream.read(mark)
        stream.seek(max(0, size - mark))
        end = stream.read(mark)
    if begin != MCAP_MARK:
        raise BagError(f'{file} is no MCAP: it begins with {begin.hex() or "nothing"}')
    if end != MCAP_MARK or size < 2 * mark:
        raise BagError(
            f'{file} breaks off: expected the mark of an MCAP at byte {max(0, size - mark)}, its '
            f'end, got {end.hex()}; it was not closed, or not copied whole'
        )
    check_chunks(file)


def _topic_of(connection: Connection) -> Topic:
    profiles: list[Qos] = getattr(connection.ext, 'offered_qos_profiles', [])
    offered = None
    if profiles:
        offered = Offered(
            reliable=all(p.reliability is not QosReliability.BEST_EFFORT for p in profiles),
            latched=all(p.durability is QosDurability.TRANSIENT_LOCAL for p in profiles),
            depth=max(1, *(p.depth for p in profiles)),
        )
    return Topic(connection.topic, connection.msgtype, connection.msgcount, offered)

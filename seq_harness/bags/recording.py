"""Write rosbag2 recordings from a thread of their own, so that taking messages never waits."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
import threading
from typing import Any, TypeAlias

from rosbags.interfaces import (
    Connection,
    Nodetype,
    Qos,
    QosDurability,
    QosHistory,
    QosLiveliness,
    QosReliability,
    QosTime,
)
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import get_types_from_msg, get_typestore, Stores
from seq_harness.bags.records import BagError, Offered, Record, Topic

Define: TypeAlias = Callable[[str], str | None]
"""Returns the text that defines a type, such as `std_msgs/msg/Header`, or None."""

MAX_WAITING_BYTES = 64 << 20
"""What may wait for the disk; about two seconds of one raw camera."""

_FOREVER = QosTime(9223372036, 854775807)


class Storage(Enum):
    """The file formats of rosbag2."""

    MCAP = 'mcap'
    SQLITE3 = 'sqlite3'


class Kept(Enum):
    """What became of a message that was handed over."""

    QUEUED = 'queued'
    DROPPED = 'dropped'
    """Too much waits for the disk."""
    FAILED = 'failed'
    """The disk refused; `close` says why."""


@dataclass(frozen=True)
class Recorded:
    """What a recording holds, once it is closed."""

    counts: dict[str, int]
    """Topic to messages."""
    dropped: dict[str, int]
    """Topic to messages that did not fit into the queue."""


class Recorder:
    """
    Writes one recording; messages are handed over without waiting, by any thread.

    Its own thread alone touches the files.
    """

    def __init__(
        self,
        path: Path | str,
        storage: Storage = Storage.MCAP,
        *,
        max_waiting_bytes: int = MAX_WAITING_BYTES,
        define: Define = lambda kind: None,
    ) -> None:
        """
        Make the folder `path`; types that `define` does not know are taken as Jazzy has them.

        Raises
        ------
        BagError
            The folder is there already, or cannot be made.

        """
        self._path = Path(path)
        self._define = define
        self._max_waiting_bytes = max_waiting_bytes
        self._changed = threading.Condition()
        # Guarded by _changed.
        self._waiting: deque[Topic | Record] = deque()
        self._waiting_bytes = 0
        self._taken = 0
        self._closing = False
        self._error: Exception | None = None
        self._dropped: Counter[str] = Counter()
        # The writing thread's alone, until it has ended.
        self._connections: dict[str, Connection] = {}
        self._counts: Counter[str] = Counter()
        self._opened = threading.Event()
        self._thread = threading.Thread(target=self._run, args=[storage], name='recorder')
        self._thread.start()
        self._opened.wait()
        if self._error is not None:
            self._thread.join()
            raise self._failure(self._error)

    @property
    def taken(self) -> int:
        """Return how many messages were taken so far, written or not."""
        return self._taken

    def add_topic(self, topic: Topic) -> None:
        """Announce a topic; its messages may be written from now on."""
        with self._changed:
            self._waiting.append(topic)
            self._changed.notify()

    def write(self, record: Record) -> Kept:
        """Hand over one message of a topic that was added."""
        with self._changed:
            if self._error is not None:
                return Kept.FAILED
            if self._waiting_bytes + len(record.data) > self._max_waiting_bytes:
                self._dropped[record.topic] += 1
                return Kept.DROPPED
            self._taken += 1
            self._waiting_bytes += len(record.data)
            self._waiting.append(record)
            self._changed.notify()
            return Kept.QUEUED

    def close(self) -> Recorded:
        """
        Write what waits, end the files and return what they hold.

        Raises
        ------
        BagError
            The disk refused, now or earlier.

        """
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join()
        if self._error is not None:
            raise self._failure(self._error)
        return Recorded(dict(self._counts), dict(self._dropped))

    def _run(self, storage: Storage) -> None:
        try:
            plugin = StoragePlugin[storage.name]
            with Writer(self._path, version=9, storage_plugin=plugin) as writer:
                self._opened.set()
                while (item := self._next()) is not None:
                    self._put(writer, item)
        except Exception as error:
            with self._changed:
                self._error = error
        self._opened.set()

    def _next(self) -> Topic | Record | None:
        """Return what is to be written next; None once all is written and the end was asked."""
        with self._changed:
            while not self._waiting:
                if self._closing:
                    return None
                self._changed.wait()
            item = self._waiting.popleft()
            if isinstance(item, Record):
                self._waiting_bytes -= len(item.data)
            return item

    def _put(self, writer: Writer, item: Topic | Record) -> None:
        if isinstance(item, Record):
            if item.topic not in self._connections:
                raise BagError(f'a message came on {item.topic}, which was not added')
            writer.write(self._connections[item.topic], item.log_ns, item.data)
            self._counts[item.topic] += 1
            return
        self._connections[item.name] = writer.add_connection(
            item.name,
            item.type,
            typestore=_typestore(item.type, self._define),
            offered_qos_profiles=[_qos_of(item.offered or Offered())],
        )
        self._counts[item.name] += 0

    def _failure(self, error: Exception) -> BagError:
        return BagError(f'{self._path} cannot be written: {error}')


def _typestore(kind: str, define: Define) -> Any:
    """Return a type store that knows `kind` as `define` tells it, or else as Jazzy does."""
    types: dict[str, Any] = {}
    wanted = [kind]
    while wanted:
        if (name := wanted.pop()) in types:
            continue
        if (text := define(name)) is None:
            return get_typestore(Stores.ROS2_JAZZY)
        types.update(get_types_from_msg(text, name))
        wanted.extend(_nested(field) for _, field in types[name][1] if _nested(field))
    store = get_typestore(Stores.EMPTY)
    store.register(types)
    return store


def _nested(field: Any) -> str:
    """Return the message type that a field, or each of its elements, has; empty when none."""
    node, detail = field
    if node in (Nodetype.ARRAY, Nodetype.SEQUENCE):
        return _nested(detail[0])
    return str(detail) if node is Nodetype.NAME else ''


def _qos_of(offered: Offered) -> Qos:
    return Qos(
        history=QosHistory.KEEP_LAST,
        depth=offered.depth,
        reliability=QosReliability.RELIABLE if offered.reliable else QosReliability.BEST_EFFORT,
        durability=(QosDurability.TRANSIENT_LOCAL if offered.latched else QosDurability.VOLATILE),
        deadline=_FOREVER,
        lifespan=_FOREVER,
        liveliness=QosLiveliness.AUTOMATIC,
        liveliness_lease_duration=_FOREVER,
        avoid_ros_namespace_conventions=False,
    )

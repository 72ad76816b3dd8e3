"""Write an exact record from a thread of its own, so that handing something over never waits."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from contextlib import suppress
import json
import logging
from pathlib import Path
import threading
import time
from typing import Any, BinaryIO

from mcap.writer import Writer
from pydantic import TypeAdapter
from seq_harness.bags.blanks import definition
from seq_harness.bags.record_format import Begin, Clocks, End, KINDS, TOPICS
from seq_harness.bags.record_shaping import Cdr, Shaping
from seq_harness.bags.records import BagError

logger = logging.getLogger(__name__)

LOOK_S = 0.05
"""How often the writing thread looks for what waits; nobody has to wake it."""

FLUSH_S = 0.25
"""How often everything written so far goes to the system, where a killed process leaves it."""

CHUNK_BYTES = 128 << 10
"""After so many bytes a chunk is written, however short that took."""

CLOCKS_S = 1.0

CLOSE_WITHIN_S = 5.0

MOST_WAITING = 8000
"""What may wait for the disk, in items: some fifteen seconds at 100 rows a second."""

_NAMES = {'Turn': 'round', 'Published': 'setpoint', 'Act': 'answer'}

ADAPTERS: dict[type[Any], TypeAdapter[Any]] = {kind: TypeAdapter(kind) for kind in TOPICS}


def free_path(path: Path) -> Path:
    """Return `path`, or with a number where that is there already, so that none is overwritten."""
    if not path.suffix:
        path = path.with_suffix('.mcap')
    number, wanted = 2, path
    while path.exists():
        path = wanted.with_name(f'{wanted.stem}-{number}{wanted.suffix}')
        number += 1
    return path


class RecordWriter:
    """
    Writes one record; anything is handed over without waiting, by any thread.

    Its own thread alone makes messages and touches the file.
    """

    def __init__(
        self,
        path: Path,
        begin: Begin,
        shaping: Shaping,
        clocks: Callable[[], Clocks],
        *,
        may_wait: bool = False,
        complain: Callable[[str], None] = logger.error,
    ) -> None:
        """
        Begin the file `path`; whoever hands over waits for the disk where it `may_wait`.

        `complain` hears when the record begins to lack something, and at the end that it does.

        Raises
        ------
        BagError
            It cannot be made.

        """
        self.path = path
        self._shaping = shaping
        self._clocks = clocks
        self._may_wait = may_wait
        self._complain = complain
        self._offset_ns = begin.clocks.ros_ns - begin.clocks.t_ns
        self._waiting: deque[Any] = deque()  # any thread appends; the writing thread takes
        self._closing = threading.Event()
        self._error: Exception | None = None  # written by the writing thread
        self._counting = threading.Lock()  # held to count what is dropped
        self._dropped: Counter[str] = Counter()  # under _counting
        # The writing thread's alone, until it has ended.
        self._written: Counter[str] = Counter()
        self._channels: dict[str, int] = {}
        self._file = _made(path)
        self._writer = Writer(self._file, chunk_size=CHUNK_BYTES)
        self._begin(begin)
        self._thread = threading.Thread(target=self._run, name='record', daemon=True)
        self._thread.start()

    def put(self, item: Any) -> None:
        """Hand over an item, or count it where too much waits."""
        while self._may_wait and len(self._waiting) >= MOST_WAITING and self._error is None:
            self._closing.wait(LOOK_S)
        if len(self._waiting) < MOST_WAITING and self._error is None:
            self._waiting.append(item)
            return
        with self._counting:
            self._dropped[_kind(item)] += 1

    def figures(self) -> dict[str, Any]:
        """Return what was written so far, and what could not be."""
        with self._counting:
            dropped = dict(self._dropped)
        return {
            'path': str(self.path),
            'setpoints': self._shaping.hash.count,
            'hash': self._shaping.hash.digest,
            'messages': sum(self._written.copy().values()),
            'dropped': dropped,
            **({} if self._error is None else {'error': str(self._error)}),
        }

    def close(self) -> None:
        """Write what waits and the end, and close the file; never waits long for a disk."""
        self._closing.set()
        self._thread.join(CLOSE_WITHIN_S)
        if self._thread.is_alive():
            self._complain(f'{self.path} was not ended within {CLOSE_WITHIN_S:g} s')
        lacking = self._dropped_count()
        if self._error is not None:
            self._complain(
                f'the record {self.path} breaks off: {self._error}; {lacking} items are missing'
            )
        elif lacking:
            self._complain(f'the record {self.path} lacks {lacking} items: the disk was too slow')

    def _begin(self, begin: Begin) -> None:
        try:
            self._writer.start(library='seq_harness')
            self._put(begin, begin.clocks.t_ns)
            self._writer.flush()  # type: ignore[no-untyped-call]
        except OSError as error:
            with suppress(OSError):
                self._file.close()
            raise BagError(f'{self.path} cannot be recorded to: {error}') from error

    def _run(self) -> None:
        try:
            with self._file:
                self._write()
                self._writer.finish()  # type: ignore[no-untyped-call]
        except Exception as error:
            self._error = error
            self._count_waiting()
            self._complain(
                f'nothing is recorded to {self.path} any more, and play goes on: {error}'
            )

    def _write(self) -> None:
        clocks_s = flushed_s = time.monotonic()
        closing = is_told = False
        while not closing:
            closing = self._closing.wait(LOOK_S)
            self._drain()
            if not is_told and self._dropped_count():
                is_told = True
                self._complain(f'the record {self.path} lacks items: the disk is too slow')
            now_s = time.monotonic()
            if now_s - clocks_s >= CLOCKS_S:
                clocks_s = now_s
                self._put_clocks()
            if now_s - flushed_s >= FLUSH_S:
                flushed_s = now_s
                self._writer.flush()  # type: ignore[no-untyped-call]
        self._put_clocks()
        self._put_end()

    def _drain(self) -> None:
        """Write what waits now; what comes meanwhile is for the next time."""
        for _ in range(len(self._waiting)):
            item = self._waiting.popleft()
            try:
                messages = list(self._shaping.shaped(item))
            except (BagError, LookupError, TypeError, ValueError) as error:
                # What cannot be made into a message must not end the record of all others.
                self._refuse(item, error)
                continue
            for message in messages:
                self._put(message, _instant(message))

    def _put(self, message: Any, t_ns: int) -> None:
        if isinstance(message, Cdr):
            topic, data, sequence = message.topic, message.data, message.sequence
        else:
            topic = TOPICS[type(message)]
            data, sequence = ADAPTERS[type(message)].dump_json(message), self._written[topic]
        log_ns = max(0, t_ns + self._offset_ns)
        channel = self._channel(topic, message)
        self._writer.add_message(channel, log_ns, data, publish_time=log_ns, sequence=sequence)
        self._written[topic] += 1

    def _channel(self, topic: str, message: Any) -> int:
        if topic not in self._channels:
            if isinstance(message, Cdr):
                text = definition(message.type).encode()
                schema = self._writer.register_schema(message.type, 'ros2msg', text)
                self._channels[topic] = self._writer.register_channel(topic, 'cdr', schema)
            else:
                kind = KINDS[topic]
                schema = self._writer.register_schema(
                    f'seq_harness.{kind.__name__}', 'jsonschema', _schema(kind)
                )
                self._channels[topic] = self._writer.register_channel(topic, 'json', schema)
        return self._channels[topic]

    def _put_clocks(self) -> None:
        clocks = self._clocks()
        self._put(clocks, clocks.t_ns)

    def _put_end(self) -> None:
        with self._counting:
            dropped = dict(self._dropped)
        found = self._shaping.hash
        t_ns = self._clocks().t_ns
        self._put(End(t_ns, found.digest, found.count, dict(self._written), dropped), t_ns)

    def _refuse(self, item: Any, error: Exception) -> None:
        with self._counting:
            self._dropped[f'{_kind(item)}: {type(error).__name__}: {error}'] += 1

    def _dropped_count(self) -> int:
        with self._counting:
            return sum(self._dropped.values())

    def _count_waiting(self) -> None:
        with self._counting:
            while self._waiting:
                self._dropped[_kind(self._waiting.popleft())] += 1


def _kind(item: Any) -> str:
    """Return what an item is called where it is counted."""
    name = type(item).__name__
    return _NAMES.get(name, name.lower())


def _made(path: Path) -> BinaryIO:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open('xb')
    except OSError as error:
        raise BagError(f'{path} cannot be recorded to: {error}') from error


def _schema(kind: type[Any]) -> bytes:
    return json.dumps(ADAPTERS[kind].json_schema()).encode()


def _instant(message: Any) -> int:
    """Return the playback instant that a message is logged under."""
    for name in ('t_ns', 'sent_ns', 'ended_ns', 'born_ns', 'start_ns'):
        instant_ns = getattr(message, name, None)
        if instant_ns is not None:
            return int(instant_ns)
    return 0

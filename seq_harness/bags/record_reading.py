"""Read exact records, closed or broken off."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
import os
from pathlib import Path
import struct
from typing import Any, BinaryIO

from mcap.exceptions import EndOfFile
from mcap.records import Channel, Message, Schema
from mcap.stream_reader import StreamReader
from pydantic import TypeAdapter, ValidationError
from seq_harness.bags.blanks import deserialised
from seq_harness.bags.reading import MCAP_MARK
from seq_harness.bags.record_format import (
    Answer,
    Arrived,
    Ask,
    Begin,
    Clocks,
    End,
    EpisodeChange,
    FRAME_TOPIC,
    KINDS,
    Notice,
    Payload,
    Request,
    Round,
    Sample,
    Setpoint,
    SETPOINT_TOPIC,
    VERSION,
)
from seq_harness.bags.records import BagError

_OTHERWISE = '; `record` makes one, and a rosbag2 is replayed without --exact'

_ADAPTERS = {topic: TypeAdapter(kind) for topic, kind in KINDS.items()}


@dataclass
class RunRecord:
    """All that a record holds, each kind in order."""

    path: Path
    begin: Begin
    end: End | None = None
    """None where the process was killed."""
    broken: str = ''
    """How the file breaks off; empty for one that was closed."""
    damaged: bool = False
    """Whether what broke off is no cut, as a killed process leaves it, but bytes that changed."""
    clocks: list[Clocks] = field(default_factory=list)
    episodes: list[EpisodeChange] = field(default_factory=list)
    arrived: list[Arrived] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    rounds: list[Round] = field(default_factory=list)
    asks: list[Ask] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    setpoints: list[Setpoint] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
    payloads: dict[str, list[Payload]] = field(default_factory=dict)
    """Topic to the messages of ROS on it, such as `setpoint/arm` and `frame/front`."""

    def ros_ns(self, t_ns: int) -> int:
        """Return the ROS time of an instant of the playback clock, by the clocks at the begin."""
        return t_ns - self.begin.clocks.t_ns + self.begin.clocks.ros_ns

    @cached_property
    def messages(self) -> dict[int, bytes]:
        """Return the bytes of every setpoint, by its number."""
        return {
            payload.sequence: payload.data
            for topic, payloads in self.payloads.items()
            if topic.startswith(SETPOINT_TOPIC)
            for payload in payloads
        }

    def frames(self) -> Iterator[tuple[int, str, bytes]]:
        """Yield the frames that acts sent: the act's number, the key, and a JPEG or PNG."""
        for topic, payloads in self.payloads.items():
            if topic.startswith(FRAME_TOPIC):
                for payload in payloads:
                    image = deserialised(payload.data, payload.type)
                    yield payload.sequence, topic.removeprefix(FRAME_TOPIC), bytes(image.data)


def read_record(path: Path | str) -> RunRecord:
    """
    Read a record, up to where it breaks off.

    Raises
    ------
    BagError
        The file is not there, is no record of a harness, or has a later format.

    """
    path = Path(path)
    if path.is_dir():
        raise BagError(f'expected the file of an exact record, got the folder {path}{_OTHERWISE}')
    record: RunRecord | None = None
    try:
        with path.open('rb') as stream:
            for item in _items(stream, path):
                if record is None:
                    record = RunRecord(path, _begin(item, path))
                elif isinstance(item, _Broken):
                    record.broken, record.damaged = item.how, item.damaged
                else:
                    _keep(record, item)
    except OSError as error:
        raise BagError(f'{path} cannot be read: {error}') from error
    if record is None:
        raise BagError(f'{path} holds nothing of a harness{_OTHERWISE}')
    if record.end is None and not record.broken:
        record.broken = 'it ends without an end'
    return record


@dataclass(frozen=True)
class _Broken:
    """How a file breaks off."""

    how: str
    damaged: bool


def _items(stream: BinaryIO, path: Path) -> Iterator[Any]:
    """Yield every message, as its kind or as a payload; at last how the file breaks off."""
    schemas: dict[int, Schema] = {}
    channels: dict[int, Channel] = {}
    reader = StreamReader(stream, validate_crcs=True)
    try:
        for found in reader.records:
            if isinstance(found, Schema):
                schemas[found.id] = found
            elif isinstance(found, Channel):
                channels[found.id] = found
            elif isinstance(found, Message):
                yield _item(found, channels[found.channel_id], schemas)
    except ValidationError as error:
        first = error.errors()[0]
        place = '.'.join(str(part) for part in first['loc'])
        said = f'{error.title}: {place}: {first["msg"]}'
        raise BagError(f'{path} holds what this version does not read: {said}') from error
    except Exception as error:
        # What is cut off or damaged is refused by errors of many libraries.
        yield _broken(stream, error)


def _broken(stream: BinaryIO, error: Exception) -> _Broken:
    """Tell a file that ends too early from one whose bytes are not those that were written."""
    at, size = stream.tell(), stream.seek(0, os.SEEK_END)
    stream.seek(max(0, size - len(MCAP_MARK)))
    closed = stream.read() == MCAP_MARK
    if isinstance(error, (EndOfFile, struct.error)) and not closed:
        return _Broken(f'the file ends after {size} bytes, before it was closed', False)
    said = f'{type(error).__name__}: {error}'.rstrip(': ')
    return _Broken(f'damaged before byte {at} of {size}: {said}', True)


def _item(message: Message, channel: Channel, schemas: dict[int, Schema]) -> Any:
    adapter = _ADAPTERS.get(channel.topic)
    if adapter is not None:
        return adapter.validate_json(message.data)
    kind = schemas[channel.schema_id].name if channel.schema_id in schemas else ''
    return Payload(channel.topic, kind, message.sequence, message.log_time, message.data)


def _begin(item: Any, path: Path) -> Begin:
    if not isinstance(item, Begin):
        raise BagError(f'{path} is no exact record: it does not begin as one{_OTHERWISE}')
    if item.format > VERSION:
        raise BagError(
            f'{path} has the format {item.format}; this version reads up to {VERSION}: update it'
        )
    return item


def _keep(record: RunRecord, item: Any) -> None:
    if isinstance(item, End):
        record.end = item
    elif isinstance(item, Payload):
        record.payloads.setdefault(item.topic, []).append(item)
    else:
        getattr(record, _PLACES[type(item)]).append(item)


_PLACES: dict[type[Any], str] = {
    Clocks: 'clocks',
    EpisodeChange: 'episodes',
    Arrived: 'arrived',
    Sample: 'samples',
    Round: 'rounds',
    Ask: 'asks',
    Answer: 'answers',
    Setpoint: 'setpoints',
    Request: 'requests',
    Notice: 'notices',
}

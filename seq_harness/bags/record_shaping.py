"""What was handed over, made into the messages of a record; the writing thread's alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
import hashlib
import io
from typing import Any

import numpy as np
from PIL import Image
from seq_harness.bags import record_format
from seq_harness.bags.blanks import blank, deserialised, serialised
from seq_harness.bags.record_format import (
    Answer,
    FRAME_TOPIC,
    INPUT_TOPIC,
    Round,
    Setpoint,
    SETPOINT_TOPIC,
)
from seq_harness.bags.record_taking import Act, Published, Turn
from seq_harness.bags.record_values import pack_chunk, pack_error, pack_still, pack_value
from seq_harness.bags.setpoint_hash import SetpointHash
from seq_harness.inputs import Sample, Snapshot
from seq_harness.messages.commands import COMMANDS
from seq_harness.messages.converters import converter, Form
from seq_harness.playback.whole import Trajectory
from seq_harness.settings import Settings

SMALL = 64
"""Arrays of at most so many numbers are recorded whole."""

QUALITY = 80
"""Of the JPEG that a raw frame becomes."""

MAGICS = {b'\xff\xd8\xff': 'jpeg', b'\x89PNG': 'png'}

IMAGE = 'sensor_msgs/msg/CompressedImage'
STATE = 'sensor_msgs/msg/JointState'


class Images(Enum):
    """What is recorded of images."""

    NONE = 'none'
    ACTS = 'acts'
    """The frames that acts sent."""
    ALL = 'all'
    """Those, and every frame that a round saw, as it arrived."""


@dataclass(frozen=True)
class Cdr:
    """A message of ROS, on a topic and under a number of its own."""

    topic: str
    type: str
    sequence: int
    t_ns: int
    data: bytes


class Shaping:
    """Make messages of what a tape handed over, in its order."""

    def __init__(
        self,
        settings: Settings,
        images: Images,
        serialise: Callable[[Any], bytes],
        ros_ns: Callable[[int], int],
    ) -> None:
        """`serialise` gives a message's CDR; `ros_ns` the ROS time of a playback instant."""
        self._channels = {item.name: item for item in settings.channels}
        self._types = {item.name: item.type for item in settings.inputs}
        self._images = images
        self._serialise = serialise
        self._ros_ns = ros_ns
        self._newest: dict[str, tuple[Sample, int]] = {}
        self._looked: dict[str, int] = {}
        self._serial = 0
        self.hash = SetpointHash()

    def shaped(self, item: Any) -> Iterator[Any]:
        """Yield the messages that an item makes: dataclasses of the format, and `Cdr`."""
        if isinstance(item, Turn):
            yield from self._round(item)
        elif isinstance(item, Published):
            yield from self._setpoint(item)
        elif isinstance(item, Act):
            yield from self._act(item)
        else:
            yield item

    def _round(self, turn: Turn) -> Iterator[Any]:
        looks = []
        for snapshot in turn.snapshots:
            yield from self._new_samples(snapshot, turn)
            looks.append(self._change(snapshot))
        reads: dict[str, list[tuple[int, Any]]] = {}
        for what, count, value in turn.reads:
            reads.setdefault(what, []).append((count, _packed(value)))
        yield Round(
            turn.number,
            turn.ended,
            turn.woken,
            turn.prepared_ns,
            turn.clock_ns,
            looks,
            reads,
            turn.resume_ns,
            turn.asked,
        )

    def _change(self, snapshot: Snapshot) -> dict[str, int | None]:
        now = {name: self._newest[name][1] for name in snapshot}
        changed: dict[str, int | None] = {
            name: serial for name, serial in now.items() if self._looked.get(name) != serial
        }
        gone = [name for name in self._looked if name not in now]
        self._looked = now
        return {**changed, **dict.fromkeys(gone)}

    def _new_samples(self, snapshot: Snapshot, turn: Turn) -> Iterator[Any]:
        for name, sample in snapshot.items():
            known = self._newest.get(name)
            if known is not None and known[0] is sample:
                continue
            self._serial += 1
            self._newest[name] = sample, self._serial
            yield from self._sample(name, sample)

    def _sample(self, name: str, sample: Sample) -> Iterator[Any]:
        serial, found = self._serial, converter(self._types[name])
        if found.form is not Form.IMAGE:
            yield record_format.Sample(
                serial,
                name,
                sample.stamp_ns,
                sample.born_ns,
                pack_value(sample.value),
                proven=sample.proven,
                doubt=sample.doubt,
                still=[pack_still(still) for still in sample.still],
            )
            if found.form is Form.NUMBERS:
                yield self._state(name, sample)
            return
        data = _bytes_of(sample.value)
        whole = self._images is Images.ALL
        sha256 = hashlib.sha256(data).hexdigest() if whole else ''
        yield record_format.Sample(
            serial,
            name,
            sample.stamp_ns,
            sample.born_ns,
            None,
            sha256,
            data.nbytes,
            sample.proven,
            sample.doubt,
            sample.form,
        )
        if whole:
            made = self._serialise(sample.value)
            yield Cdr(f'{INPUT_TOPIC}{name}', found.message, serial, sample.born_ns, made)

    def _state(self, name: str, sample: Sample) -> Cdr:
        message = blank(STATE)
        _stamp(message, sample.stamp_ns)
        message.name = list(sample.value)
        message.position = np.array(list(sample.value.values()), np.float64)
        data = serialised(message)
        return Cdr(f'{INPUT_TOPIC}{name}', STATE, self._serial, sample.born_ns, data)

    def _setpoint(self, item: Published) -> Iterator[Any]:
        channel = self._channels[item.sent.channel]
        kind = COMMANDS[channel.type].message
        data = serialised(deserialised(self._serialise(item.sent.message), kind))
        setpoint = Setpoint(
            item.number,
            item.round,
            channel.name,
            channel.topic,
            item.sent.due_ns,
            item.sent_ns,
            item.sent.sampled_ns,
            _numbers(item.sent.value),
        )
        self.hash.add(setpoint, data)
        yield setpoint
        yield Cdr(f'{SETPOINT_TOPIC}{channel.name}', kind, item.number, item.sent_ns, data)

    def _act(self, act: Act) -> Iterator[Any]:
        yield Answer(
            act.number,
            act.step,
            act.request_id,
            act.began_ns,
            act.ended_ns,
            [_sent(key, value) for key, value in act.seen.items()],
            None if act.chunk is None else pack_chunk(act.chunk),
            None if act.error is None else pack_error(act.error),
            act.handler_ms,
        )
        if self._images is not Images.NONE:
            for key, value in act.seen.items():
                yield from self._frame(act, key, value)

    def _frame(self, act: Act, key: str, value: Any) -> Iterator[Cdr]:
        picture = _picture(value)
        if picture is None:
            return
        message = blank(IMAGE)
        _stamp(message, self._ros_ns(act.began_ns))
        message.format, data = picture
        message.data = np.frombuffer(data, np.uint8)
        made = serialised(message)
        yield Cdr(f'{FRAME_TOPIC}{key}', IMAGE, act.number, act.began_ns, made)


def _bytes_of(message: Any) -> memoryview:
    """Return the bytes of an image's message; none where a type of others has them elsewhere."""
    try:
        return memoryview(getattr(message, 'data', b'')).cast('B')
    except (TypeError, ValueError):
        return memoryview(b'')


def _packed(value: Any) -> Any:
    if isinstance(value, Exception):
        return {'error': pack_error(value)}
    return value.value if isinstance(value, Enum) else pack_value(value)


def _numbers(value: Any) -> list[float]:
    rows: Sequence[Any] = [row for _, row in value.points] if _is_plan(value) else [value]
    return [float(number) for row in rows for number in np.ravel(row)]


def _is_plan(value: Any) -> bool:
    return isinstance(value, Trajectory)


def _sent(key: str, value: Any) -> record_format.Sent:
    if isinstance(value, str):
        data = value.encode()
        return record_format.Sent(key, 'text', (), len(data), _sha256(data), value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return record_format.Sent(
            key, _coded(bytes(value)) or 'bytes', (), len(value), _sha256(value)
        )
    array = np.asarray(value)
    data = np.ascontiguousarray(array).tobytes() if array.dtype != object else repr(value).encode()
    shown = pack_value(array) if array.size <= SMALL else None
    return record_format.Sent(key, str(array.dtype), array.shape, len(data), _sha256(data), shown)


def _sha256(data: bytes | bytearray | memoryview) -> str:
    return hashlib.sha256(data).hexdigest()


def _coded(data: bytes) -> str:
    return next((name for magic, name in MAGICS.items() if data.startswith(magic)), '')


def _picture(value: Any) -> tuple[str, bytes] | None:
    """Return the format and bytes of a frame, which are its own where it is encoded."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        data = bytes(value)
        return (_coded(data), data) if _coded(data) else None
    if not (isinstance(value, np.ndarray) and value.dtype == np.uint8):
        return None
    if value.ndim != 3 or value.shape[2] != 3:
        return None
    out = io.BytesIO()
    Image.fromarray(value).save(out, 'JPEG', quality=QUALITY)
    return 'jpeg', out.getvalue()


def _stamp(message: Any, stamp_ns: int) -> None:
    sec, nanosec = divmod(stamp_ns, 1_000_000_000)
    message.header.stamp.sec, message.header.stamp.nanosec = sec, nanosec

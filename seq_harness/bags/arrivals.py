"""The messages of a recording as the inputs of a harness."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from seq_harness.bags.faults import FaultKind, Faults, Place
from seq_harness.bags.records import BagError, Record, Topic
from seq_harness.inputs import Inputs, Verdict
from seq_harness.messages.converters import converter
from seq_harness.settings import InputSettings

NODE = '/harness'


@dataclass
class _Stream:
    """One topic of the recording, and the inputs that read it."""

    kind: str
    inputs: tuple[tuple[InputSettings, str], ...]
    """Each with the name under which it knows the topic."""
    number: int = 0
    last_log_ns: int | None = None
    last_stamp_ns: int = 0
    wrong_types: set[str] = field(default_factory=set)

    @property
    def max_gap_ns(self) -> int:
        return round(min(item.max_age_s for item, _ in self.inputs) * 1e9)


def resolved(topic: str, remaps: Mapping[str, str], node: str = NODE) -> str:
    """Return a topic's full name, once `remaps`, from name to name, are heeded."""

    def full(name: str) -> str:
        if name.startswith('~'):
            return f'{node}{name[1:]}'
        return name if name.startswith('/') else f'/{name}'

    renamed = {full(old): full(new) for old, new in remaps.items()}
    return renamed.get(full(topic), full(topic))


class Arrivals:
    """Put messages into the inputs as their subscriptions would, and note what is wrong."""

    def __init__(
        self,
        settings: tuple[InputSettings, ...],
        inputs: Inputs,
        faults: Faults,
        decode: Callable[[Record], Any],
        remaps: Mapping[str, str],
    ) -> None:
        self._inputs = inputs
        self._faults = faults
        self._decode = decode
        self._streams: dict[str, _Stream] = {}
        for item in settings:
            for topic in item.topics:
                self._add(item, topic, remaps)

    def _add(self, item: InputSettings, topic: str, remaps: Mapping[str, str]) -> None:
        name, kind = resolved(topic, remaps), converter(item.type).message
        known = self._streams.get(name)
        if known is not None and known.kind != kind:
            raise BagError(f'{name} was to be read as {known.kind} and as {kind}: choose one')
        self._streams[name] = _Stream(kind, (*(known.inputs if known else ()), (item, topic)))

    def check(self, topics: tuple[Topic, ...], start_ns: int) -> list[str]:
        """Note topics that are missing; return those that are there, by name."""
        held = {topic.name for topic in topics}
        for name, stream in self._streams.items():
            if name not in held:
                known = ', '.join(f'{topic.name} ({topic.type})' for topic in topics)
                place = Place(name, start_ns, 0)
                text = f'{stream.kind} was expected there, and the recording holds {known}'
                self._faults.note(FaultKind.MISSING_TOPIC, place, text)
        return sorted(held & set(self._streams))

    def watch(self, record: Record) -> None:
        """Note a gap before a message that has not arrived yet."""
        stream = self._streams[record.topic]
        self._watch_gap(stream, Place(record.topic, record.log_ns, stream.number))

    def put(self, record: Record) -> None:
        """Let one message arrive, at its log time."""
        stream = self._streams[record.topic]
        place = Place(record.topic, record.log_ns, stream.number)
        stream.number += 1
        if record.type != stream.kind:
            text = f'{stream.kind} was expected, got {record.type}'
            self._faults.note(FaultKind.WRONG_TYPE, place, text)
            return
        try:
            message = self._decode(record)
        except BagError as error:
            self._faults.note(FaultKind.UNREADABLE, place, str(error))
            return
        if hasattr(message, 'header'):
            self._watch_stamp(stream, place, message.header.stamp)
        for item, topic in stream.inputs:
            self._arrive(item, topic, message, place)

    def note_frozen(self, topic: str, text: str, now_ns: int) -> None:
        """Note a frozen state, on the topic as its input knows it, at its newest message."""
        for name, stream in self._streams.items():
            if any(topic == known for _, known in stream.inputs):
                place = Place(name, now_ns, stream.number - 1)
                self._faults.note(FaultKind.FROZEN_STATE, place, text)

    def _arrive(self, item: InputSettings, topic: str, message: Any, place: Place) -> None:
        now_ns = place.log_ns
        arrival = self._inputs.put(
            item.name, message, now_ns=now_ns, ros_now_ns=now_ns, topic=topic
        )
        if arrival.verdict is Verdict.REFUSED:
            self._faults.note(FaultKind.REFUSED, place, arrival.reason)
        elif arrival.verdict is Verdict.RESTAMPED:
            self._faults.note(FaultKind.RESTAMPED, place, arrival.reason)
        elif arrival.verdict is Verdict.AGEING:
            self._faults.note(FaultKind.STAMP_STANDS, place, arrival.reason)

    def _watch_gap(self, stream: _Stream, place: Place) -> None:
        before_ns, stream.last_log_ns = stream.last_log_ns, place.log_ns
        if before_ns is not None and place.log_ns - before_ns > stream.max_gap_ns:
            text = (
                f'{(place.log_ns - before_ns) / 1e9:.3f} s after the message before it; the input '
                f'may be {stream.max_gap_ns / 1e9:g} s old'
            )
            self._faults.note(FaultKind.GAP, place, text)

    def _watch_stamp(self, stream: _Stream, place: Place, stamp: Any) -> None:
        stamp_ns = stamp.sec * 1_000_000_000 + stamp.nanosec
        if stamp_ns and stamp_ns < stream.last_stamp_ns:
            text = f'its stamp is {stamp_ns} ns, and that of the one before {stream.last_stamp_ns}'
            self._faults.note(FaultKind.STAMP_WENT_BACK, place, text)
        stream.last_stamp_ns = stamp_ns or stream.last_stamp_ns

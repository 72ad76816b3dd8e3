"""Where the newest of one input is kept, by what the input holds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
import threading
from typing import Any

from seq_harness.inputs.samples import Sample
from seq_harness.inputs.stamps import Aged
from seq_harness.inputs.stillness import Stillness
from seq_harness.messages.converters import Converter, converter, Form, Read
from seq_harness.messages.refusals import ImageRefused
from seq_harness.settings import InputSettings

CONTEST_NS, CONTEST_FALLS = 1_000_000_000, 4
"""So many falls of a publisher's numbers within this time are those of two publishers."""


@dataclass(frozen=True)
class At:
    """Where and when a message came."""

    topic: str
    came_ns: int
    """On the playback clock."""
    aged: Aged
    sequence: int | None


class _NumbersSlot:
    """Merges named numbers over messages and topics; as old as its oldest (G3)."""

    def __init__(self, settings: InputSettings, read: Read) -> None:
        self._settings = settings
        self._read = read
        self._numbers: dict[str, tuple[float, Aged]] = {}
        self._stillness = Stillness()
        self._contest = _Contest()
        self._newest: Sample | None = None

    def store(self, message: Any, at: At) -> str:
        found = self._read(message, self._settings.joints, self._settings.field)
        for name, value in found.items():
            self._numbers[name] = (value, at.aged)
        self._stillness.note(at.topic, found, at.came_ns, advanced=at.aged.advanced)
        contested = self._contest.note(at, found)
        if len(self._numbers) >= len(self._settings.joints):
            values = {name: value for name, (value, _) in self._numbers.items()}
            oldest = min((aged for _, aged in self._numbers.values()), key=_born_ns)
            self._newest = Sample(
                values,
                min(aged.stamp_ns for _, aged in self._numbers.values()),
                oldest.born_ns,
                proven=all(aged.proven for _, aged in self._numbers.values()),
                doubt=oldest.doubt,
                still=self._stillness.tell(),
            )
        return contested

    def sample(self) -> Sample | None:
        return self._newest


class _Contest:
    """
    Finds two publishers of the same names, by the numbers that each gives to its messages.

    Those of one publisher rise; where two take turns they fall, again and again. A publisher that
    was started anew falls once.
    """

    def __init__(self) -> None:
        self._last: dict[str, dict[str, tuple[int, int]]] = {}
        """Name to topic to the last number there, and when it came."""
        self._falls: dict[str, list[int]] = {}

    def note(self, at: At, names: Iterable[str]) -> str:
        """Take a message's number; return what is wrong, or nothing."""
        if at.sequence is None:
            return ''
        contested = [name for name in names if self._fell(name, at.topic, at.sequence, at.came_ns)]
        if not contested:
            return ''
        return f'two publishers of {", ".join(contested)}: stop one, or give it another topic'

    def _fell(self, name: str, topic: str, sequence: int, now_ns: int) -> bool:
        """Say whether the numbers of a name fell often of late, on its topic or across topics."""
        places = self._last.setdefault(name, {})
        last = places.get(topic)
        places[topic] = (sequence, now_ns)
        falls = self._falls.setdefault(name, [])
        elsewhere = len(places) > 1 and any(
            place != topic and now_ns - at <= CONTEST_NS for place, (_, at) in places.items()
        )
        if elsewhere or (last is not None and sequence <= last[0]):
            falls.append(now_ns)
        if falls:
            falls[:] = [at for at in falls if now_ns - at <= CONTEST_NS]
        return len(falls) >= CONTEST_FALLS


class _WordSlot:
    """Keeps the newest word; for a status, says when it is none of the available ones."""

    def __init__(self, settings: InputSettings, read: Read) -> None:
        self._settings = settings
        self._read = read
        self._newest: Sample | None = None

    def store(self, message: Any, at: At) -> str:
        word = self._read(message, self._settings.joints, self._settings.field)
        if word is None:
            return ''
        self._newest = _sample(word, at.aged)
        known = self._settings.available
        return f'{word!r} came; available is {list(known)}' if known and word not in known else ''

    def sample(self) -> Sample | None:
        return self._newest


class _ImageSlot:
    """
    Keeps the newest frame that passes its cheap check.

    A frame that did not decode when it was read gives way to the one before it, and until one
    decodes again every frame must at its arrival (G12).
    """

    def __init__(self, settings: InputSettings, found: Converter) -> None:
        self._frozen_ns = round(settings.frozen_after_s * 1e9)
        self._read = found.read
        self._check = found.check
        self._form_of = found.form_of
        self._lock = threading.Lock()  # held for a few assignments
        self._newest: Sample | None = None
        self._before: Sample | None = None
        self._doubted = False
        self._same_since_ns: int | None = None  # the executor's thread alone

    def store(self, message: Any, at: At) -> str:
        self._check(message)
        self._check_frozen(message, at.aged.born_ns)
        if self._doubted:
            self._read(message, (), '')
        taken, form = _sample(message, at.aged), self._form_of(message)
        with self._lock:
            self._before = self._newest
            self._newest = replace(taken, form=form, retract=self._retract)
            self._doubted = False
        return ''

    def sample(self) -> Sample | None:
        return self._newest

    def _retract(self, sample: Sample) -> None:
        with self._lock:
            self._doubted = True
            if self._newest is sample or self._before is sample:
                self._newest, self._before = self._before, None
            if self._newest is sample:
                self._newest = None

    def _check_frozen(self, message: Any, born_ns: int) -> None:
        """Refuse frames that have been the same to the byte for too long."""
        newest = self._newest
        if not self._frozen_ns or newest is None:
            return
        if not _same_bytes(message.data, newest.value.data):
            self._same_since_ns = None
            return
        if self._same_since_ns is None:
            self._same_since_ns = newest.born_ns
        same_ns = born_ns - self._same_since_ns
        if same_ns >= self._frozen_ns:
            raise ImageRefused(f'the camera is frozen: the same frame for {same_ns / 1e9:.2f} s')


def _sample(value: Any, aged: Aged) -> Sample:
    return Sample(value, aged.stamp_ns, aged.born_ns, proven=aged.proven, doubt=aged.doubt)


def _born_ns(aged: Aged) -> int:
    return aged.born_ns


def _same_bytes(new: Any, old: Any) -> bool:
    return len(new) == len(old) and memoryview(new) == memoryview(old)


Slot = _NumbersSlot | _WordSlot | _ImageSlot


def make_slot(settings: InputSettings) -> Slot:
    """Return an empty place for an input."""
    found = converter(settings.type)
    if found.form is Form.NUMBERS:
        return _NumbersSlot(settings, found.read)
    if found.form is Form.WORD:
        return _WordSlot(settings, found.read)
    return _ImageSlot(settings, found)

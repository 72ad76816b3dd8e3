"""The tape that replays: gives the readings of a record, and compares what goes out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

from seq_harness.bags import record_format
from seq_harness.bags.blanks import deserialised
from seq_harness.bags.record_format import PREFIX, Round, Setpoint, SETPOINT_TOPIC
from seq_harness.bags.record_reading import RunRecord
from seq_harness.bags.record_values import chunk_of, error_of, sample_of, unpack_value
from seq_harness.bags.records import BagError
from seq_harness.bags.setpoint_hash import SetpointHash
from seq_harness.bags.taping import Sent
from seq_harness.episode import Start
from seq_harness.inputs import Snapshot
from seq_harness.playback.answer import Answer
from seq_harness.playback.chunk import Chunk

T = TypeVar('T')

ROUND = f'{PREFIX}round'
ASK = f'{PREFIX}ask'


@dataclass(frozen=True)
class Difference:
    """Where a replay first did otherwise than its record."""

    round: int
    topic: str
    """The topic of the record on which it shows."""
    expected: str
    """What the record holds."""
    came: str
    """What the replay did."""

    def __str__(self) -> str:
        return f'round {self.round}, {self.topic}: expected {self.expected}; came {self.came}'


class Differs(BaseException):
    """The replay did otherwise than its record; no error that a loop may take for its own."""

    def __init__(self, difference: Difference) -> None:
        super().__init__(str(difference))
        self.difference = difference


class NotRecorded:
    """An image of which a record holds no more than that a round saw it."""

    def __init__(self, input_name: str) -> None:
        self._input = input_name

    def __getattr__(self, name: str) -> Any:
        raise BagError(
            f'a round reads the image {self._input!r}, and exact replay goes without images'
        )


class _Given:
    """An answer that is there once the record says so."""

    def __init__(self, answer: Callable[[], record_format.Answer]) -> None:
        self._answer = answer

    def done(self) -> bool:
        """Tell nothing: the record knows."""
        return False

    def result(self) -> Chunk | None:
        held = self._answer()
        if held.error is not None:
            raise error_of(held.error)
        return None if held.chunk is None else chunk_of(held.chunk)


class GivingTape:
    """Give each reading as it was recorded; `Differs` is raised at the first that cannot be."""

    def __init__(self, record: RunRecord, inputs: Sequence[str]) -> None:
        """Take the names of the inputs in their order, which is that of a look."""
        self._inputs = inputs
        self._samples = {
            item.serial: sample_of(
                item,
                NotRecorded(item.input) if item.value is None else unpack_value(item.value),
            )
            for item in record.samples
        }
        self._answers = {item.act: item for item in record.answers}
        self._asks = {item.act: item.round for item in record.asks}
        self._setpoints = record.setpoints
        self._messages = record.messages
        self._kinds = {
            topic.removeprefix(SETPOINT_TOPIC): held[0].type
            for topic, held in record.payloads.items()
            if topic.startswith(SETPOINT_TOPIC)
        }
        self._acts = 0
        self._seen: Snapshot = {}
        self.hash = SetpointHash()

    def begin(self, held: Round) -> None:
        """Give the readings of a round from now on."""
        self._round = held
        self._clock = iter(held.clock_ns)
        self._looks = iter(held.snapshots)
        self._reads = {
            count: (what, value) for what, reads in held.reads.items() for count, value in reads
        }
        self._asked = 0

    def end(self, resume_ns: int | None) -> None:
        """Check that the round read and sent all that was recorded, and when it goes on."""
        held = self._round
        if self.hash.count < len(self._setpoints):
            missing = self._setpoints[self.hash.count]
            if missing.round <= held.number:
                self._differ(f'{SETPOINT_TOPIC}{missing.channel}', self._told(missing), 'nothing')
        for left, what in ((self._clock, 'the clock'), (self._looks, 'a look at the inputs')):
            if next(left, None) is not None:
                self._differ(ROUND, f'one more reading of {what}', 'none')
        if self._asked != held.asked:
            self._differ(ROUND, f'{held.asked} other readings', f'{self._asked}')
        if resume_ns != held.resume_ns:
            self._differ(ROUND, f'to go on at {held.resume_ns} ns', f'{resume_ns} ns')

    def clock(self, live: Callable[[], int]) -> int:
        """Return the next reading of the playback clock."""
        now_ns = next(self._clock, None)
        if now_ns is None:
            self._differ(ROUND, f'{len(self._round.clock_ns)} readings of the clock', 'more')
        return now_ns

    def look(self, live: Callable[[], Snapshot]) -> Snapshot:
        """Return the next look at the inputs."""
        change = next(self._looks, None)
        if change is None:
            self._differ(ROUND, f'{len(self._round.snapshots)} looks at the inputs', 'more')
        seen = dict(self._seen)
        for name, serial in change.items():
            if serial is None:
                del seen[name]
            else:
                seen[name] = self._samples[serial]
        self._seen = {name: seen[name] for name in self._inputs if name in seen}
        return self._seen

    def read(self, what: str, live: Callable[[], T], nothing: T) -> T:
        """Return or raise what was read then; `nothing` where nothing was noted."""
        asked, value = self._reads.get(self._asked, (what, nothing))
        if asked != what:
            self._differ(ROUND, f'{asked!r} to be read next', repr(what))
        self._asked += 1
        if isinstance(value, dict) and 'error' in value:
            raise error_of(value['error'])
        given: T = value
        return given

    def start(self, live: Start, work: Callable[[], Chunk | None]) -> Answer[Chunk | None]:
        """Return the answer that the next act was given; nothing is asked."""
        act = self._acts
        self._acts += 1
        asked = self._asks.get(act)
        if asked != self._round.number:
            expected = 'no more acts' if asked is None else f'act {act} in round {asked}'
            self._differ(ASK, expected, f'act {act} now')
        return _Given(lambda: self._answer(act))

    def sent(self, setpoint: Sent) -> None:
        """Compare a setpoint with the one that went out then."""
        number = self.hash.count
        topic = f'{SETPOINT_TOPIC}{setpoint.channel}'
        came = self._text(setpoint.channel, setpoint.due_ns, setpoint.message)
        if number >= len(self._setpoints) or self._setpoints[number].round != self._round.number:
            self._differ(topic, 'nothing more in this round', came)
        expected = self._setpoints[number]
        said = expected.channel, expected.due_ns, self._messages[number]
        if said != (setpoint.channel, setpoint.due_ns, setpoint.message):
            self._differ(topic, self._told(expected), came)
        self.hash.add(expected, setpoint.message)

    def _answer(self, act: int) -> record_format.Answer:
        if act not in self._answers:
            self._differ(f'{PREFIX}answer', 'none', f'a reading of the answer of act {act}')
        return self._answers[act]

    def _told(self, setpoint: Setpoint) -> str:
        return self._text(setpoint.channel, setpoint.due_ns, self._messages[setpoint.number])

    def _text(self, channel: str, due_ns: int | None, data: bytes) -> str:
        kind = self._kinds.get(channel)
        shown = data.hex() if kind is None else str(deserialised(data, kind))
        return f'{channel} due {due_ns} ns: {" ".join(shown.split())}'

    def _differ(self, topic: str, expected: str, came: str) -> NoReturn:
        raise Differs(Difference(self._round.number, topic, expected, came))

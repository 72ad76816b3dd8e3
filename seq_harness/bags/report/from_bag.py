"""A report's data out of any rosbag2: whatever of a run its topics tell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from seq_harness.bags.mending import opened
from seq_harness.bags.reading import Bag
from seq_harness.bags.records import BagError
from seq_harness.bags.report.bag_frames import frames_of, IMAGES
from seq_harness.bags.report.bag_said import Said
from seq_harness.bags.report.bag_topics import FLOATS, JOINT_STATE, Numbers, numbers_of, TRAJECTORY
from seq_harness.bags.report.data import Channel, Event, EventKind, Lines, Prediction, ReportData
from seq_harness.settings import ChannelSettings, Settings
from seq_harness.settings.output_types import RATES

CHUNK = '/chunk'
"""How the topic ends on which a harness shows its chunks."""

PREVIEW = '/preview/'

MOST_DECODED = 500_000
"""Of a topic with more messages only some are decoded, evenly spread."""


def from_bag(path: Path | str, settings: Settings | None = None) -> ReportData:
    """
    Read what a recording tells; `settings` name the joints of channels whose messages do not.

    Raises
    ------
    BagError
        It cannot be read at all.

    """
    with opened(path, mend=True) as (bag, broken):
        return _Reading(bag, settings, broken).data()


class _Reading:
    """One recording on its way into a report; times are log times."""

    def __init__(self, bag: Bag, settings: Settings | None, broken: str) -> None:
        self._bag = bag
        self._settings = settings
        self._notes = [f'The recording breaks off: {broken}.'] if broken else []
        self._said = Said()
        self._numbers: dict[str, Numbers] = {}
        self._last_ns = bag.start_ns

    def data(self) -> ReportData:
        self._read()
        self._start_ns = self._said.began_ns or self._bag.start_ns
        channels = list(self._channels())
        predictions = list(self._predictions(channels))
        frames = frames_of(self._bag, self._wanted(predictions), self._start_ns, self._notes)
        return ReportData(
            title=self._bag.path.stem,
            source='rosbag2, by log time',
            start_ns=self._start_ns,
            length_s=self._seconds(max(self._last_ns, self._start_ns)),
            reason=self._said.reason,
            channels=channels,
            states=list(self._states(channels)),
            predictions=predictions,
            predicted_from='the instant at which its message came',
            events=self._events(predictions),
            backlog=self._said.backlog(self._start_ns),
            frames=frames,
            figures=self._said.figures,
            missing=[*self._missing(channels, predictions), *self._notes],
        )

    def _seconds(self, t_ns: int) -> float:
        return (t_ns - self._start_ns) / 1e9

    def _read(self) -> None:
        """Take in all but the images, as far as the recording goes."""
        topics = [each for each in self._bag.topics if each.type not in IMAGES]
        strides = {each.name: -(-each.count // MOST_DECODED) for each in topics}
        for name, stride in strides.items():
            if stride > 1:
                self._notes.append(f'Of {name} one message in {stride} was read.')
        numbers = {each.name: made for each in topics if (made := numbers_of(each)) is not None}
        wanted = [each.name for each in topics if each.name in numbers or Said.reads(each)]
        seen = dict.fromkeys(wanted, 0)
        try:
            for record in self._bag.records(wanted) if wanted else ():
                self._last_ns = record.log_ns
                seen[record.topic] += 1
                if seen[record.topic] % strides[record.topic]:
                    continue
                self._take(numbers.get(record.topic), record.topic, record.log_ns,
                           self._bag.decode(record))  # fmt: skip
        except BagError as error:
            self._notes.append(f'The recording breaks off: {error}.')
        self._numbers = {name: each for name, each in numbers.items() if len(each)}

    def _take(self, numbers: Numbers | None, topic: str, log_ns: int, message: object) -> None:
        if numbers is not None:
            numbers.take(message, log_ns)
        else:
            self._said.take(topic, message, log_ns)

    def _commands(self) -> Iterator[tuple[str, Numbers, ChannelSettings | None]]:
        """Yield the topics that command, each with the name and settings of its channel."""
        for topic, numbers in self._numbers.items():
            item = self._item(topic)
            if item is not None:
                preview = ' (preview)' if PREVIEW in topic else ''
                yield f'{item.name}{preview}', numbers, item
            elif topic.endswith(CHUNK):
                continue
            elif self._commands_something(topic, numbers.topic.type):
                yield topic, numbers, None

    def _item(self, topic: str) -> ChannelSettings | None:
        for item in self._settings.channels if self._settings is not None else ():
            name = item.topic.lstrip('~/')
            if topic in (item.topic, f'/{name}') or topic.endswith(f'{PREVIEW}{name}'):
                return item
        return None

    @staticmethod
    def _commands_something(topic: str, kind: str) -> bool:
        told = PREVIEW in topic or 'command' in topic
        return kind == TRAJECTORY or (kind == FLOATS and told) or (kind == JOINT_STATE and told)

    def _channels(self) -> Iterator[Channel]:
        found = list(self._commands())
        self._commanding = {numbers.topic.name for _, numbers, _ in found}
        for name, numbers, item in found:
            joints = item.joints if item is not None else self._joints_of(numbers, len(found))
            commanded = numbers.lines(joints, self._start_ns)
            if len(commanded):
                is_rate = item is not None and item.kind in RATES
                yield Channel(
                    name=name,
                    unit='' if is_rate else 'rad, m',
                    commanded=commanded,
                    measured=None if is_rate else self._measured(commanded.names),
                    is_rate=is_rate,
                )

    def _joints_of(self, numbers: Numbers, channels: int) -> tuple[str, ...]:
        """Return the names of a channel's values, as its messages or the chunks say them."""
        if numbers.named:
            return numbers.names
        for topic, chunks in self._numbers.items():
            # A harness names the joints of its only channel in the order of its setpoints.
            if topic.endswith(CHUNK) and channels == 1 and len(chunks.names) == numbers.width:
                return chunks.names
        self._notes.append(
            f'Which joints {numbers.topic.name} commands is not in the recording: name a '
            'parameter file of the harness, and what was measured of them is drawn with it.'
        )
        return tuple(f'value {number}' for number in range(numbers.width))

    def _measured(self, names: Sequence[str]) -> Lines | None:
        """Return what was measured of most of some joints, by one topic."""
        best: tuple[int, Numbers] | None = None
        for topic, numbers in self._numbers.items():
            if numbers.topic.type == JOINT_STATE and topic not in self._commanding:
                common = len(set(numbers.names) & set(names))
                if common and (best is None or common > best[0]):
                    best = common, numbers
        if best is None:
            return None
        held = tuple(name for name in names if name in best[1].names)
        return best[1].lines(held, self._start_ns)

    def _states(self, channels: Sequence[Channel]) -> Iterator[Lines]:
        shown = {name for each in channels if each.measured for name in each.measured.names}
        for topic, numbers in self._numbers.items():
            if numbers.topic.type == JOINT_STATE and topic not in self._commanding:
                rest = tuple(name for name in numbers.names if name not in shown)
                if rest:
                    yield numbers.lines(rest, self._start_ns)
                shown.update(rest)

    def _predictions(self, channels: Sequence[Channel]) -> Iterator[Prediction]:
        for topic, numbers in self._numbers.items():
            if numbers.topic.type != TRAJECTORY:
                continue
            for channel in channels:
                names = channel.commanded.names
                if topic.endswith(CHUNK) or topic in (channel.name, self._topic_of(channel)):
                    for label, t_s, values in numbers.plans(names, self._start_ns):
                        if len(t_s) > 1:
                            yield Prediction(channel.name, t_s, values, label)

    def _topic_of(self, channel: Channel) -> str:
        found = (numbers for name, numbers, _ in self._commands() if name == channel.name)
        return next((numbers.topic.name for numbers in found), '')

    def _events(self, predictions: Sequence[Prediction]) -> list[Event]:
        first = {each.name: float(each.t_s[0]) for each in predictions}
        came = [Event(at_s, EventKind.JOIN, f'{name} came') for name, at_s in first.items()]
        return sorted([*self._said.events(self._start_ns), *came], key=lambda event: event.at_s)

    def _wanted(self, predictions: Sequence[Prediction]) -> dict[str, float]:
        """Return the instants of which frames are shown: those of the chunks, or evenly spread."""
        if predictions:
            return {each.name: float(each.t_s[0]) for each in predictions}
        end_s = self._seconds(self._bag.end_ns)
        times = np.linspace(self._seconds(self._bag.start_ns), end_s, 30)
        return {f'frame {number}': float(at_s) for number, at_s in enumerate(times, 1)}

    def _missing(
        self, channels: Sequence[Channel], predictions: Sequence[Prediction]
    ) -> Iterator[str]:
        if not self._bag.count:
            yield 'The recording is empty.'
        if not channels:
            yield 'No topic of commands was recorded: only what was measured is shown.'
        elif not any(each.measured for each in channels):
            yield 'No joint state of the commanded joints was recorded.'
        if not predictions:
            yield 'No chunks were recorded (the topic ~/chunk).'
        if not self._said.figures:
            yield 'The topic ~/episode was not recorded: nothing says why the episode ended.'
        yield (
            'A plain recording tells neither when setpoints were due, nor when the policy was '
            'asked, nor how old observations were: an exact record does.'
        )

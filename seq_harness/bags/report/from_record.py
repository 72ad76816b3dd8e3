"""A report's data out of an exact record, which holds nearly all of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from seq_harness.bags.blanks import deserialised
from seq_harness.bags.record_format import Answer, Setpoint, SETPOINT_TOPIC
from seq_harness.bags.record_reading import read_record, RunRecord
from seq_harness.bags.record_values import chunk_of, declaration_of, settings_of
from seq_harness.bags.report.data import (
    Act,
    Channel,
    Floats,
    Frame,
    Lines,
    Prediction,
    ReportData,
)
from seq_harness.bags.report.record_events import events_of
from seq_harness.bags.report.splicing import spliced
from seq_harness.contract import obs_schedule
from seq_harness.settings import ChannelSettings, Settings
from seq_harness.settings.output_types import RATES

UNITS = {
    'position': 'rad, m',
    'angle': 'rad',
    'velocity': 'rad/s, m/s',
    'effort': 'Nm, N',
    'delta': 'rad, m',
    'pose': 'm, 1',
    'binary': '',
}
"""By kind of channel, as messages of ROS count."""


def from_record(path: Path | str) -> ReportData:
    """
    Read a record, as far as it goes.

    Raises
    ------
    BagError
        There is no record of a harness that this version reads.

    """
    return data_of(read_record(path))


def data_of(record: RunRecord) -> ReportData:
    """Return what a report shows of a record that was read."""
    return _Reading(record).data()


class _Reading:
    """One record on its way into a report; times count from the begin of its first episode."""

    def __init__(self, record: RunRecord) -> None:
        self._record = record
        self._settings: Settings = settings_of(record.begin.settings)
        live = [each.t_ns for each in record.episodes if each.state != 'idle']
        self._start_ns = live[0] if live else record.begin.clocks.t_ns
        self._chunks = {
            each.act: chunk_of(each.chunk) for each in record.answers if each.chunk is not None
        }

    def data(self) -> ReportData:
        record = self._record
        ended = [each for each in record.episodes if each.reason]
        return ReportData(
            title=record.path.stem,
            source='exact record',
            start_ns=record.ros_ns(self._start_ns),
            length_s=self._seconds(self._last_ns()),
            reason=ended[-1].reason if ended else '',
            channels=[self._channel(item) for item in self._settings.channels],
            predictions=list(self._predictions()),
            acts=list(self._acts()),
            events=events_of(record, self._settings, self._chunks, self._start_ns),
            ages_ms=self._ages(),
            frames=list(self._frames()),
            figures=ended[-1].figures if ended else {},
            facts=self._facts(),
            missing=list(self._missing()),
        )

    def _seconds(self, t_ns: int) -> float:
        return (t_ns - self._start_ns) / 1e9

    def _last_ns(self) -> int:
        record = self._record
        known = [self._start_ns]
        known += [each.t_ns for each in record.episodes[-1:]]
        known += [each.start_ns for each in record.rounds[-1:]]
        known += [each.sent_ns for each in record.setpoints[-1:]]
        return max(known)

    def _channel(self, item: ChannelSettings) -> Channel:
        setpoints = [each for each in self._record.setpoints if each.channel == item.name]
        width = max(1, len(item.joints))
        if any(len(each.values) != width for each in setpoints):
            commanded, due_s = self._trajectories(item, setpoints), np.zeros(0)
        else:
            sent_s = np.array([self._seconds(each.sent_ns) for each in setpoints], np.float64)
            due_s = np.array([self._due_s(each) for each in setpoints], np.float64)
            values = np.array([each.values for each in setpoints], np.float64)
            commanded = Lines(item.joints, sent_s, values.reshape(len(setpoints), width))
        return Channel(
            name=item.name,
            unit=UNITS.get(item.kind, ''),
            commanded=commanded,
            measured=None if item.kind in RATES else self._measured(item),
            due_s=due_s,
            is_rate=item.kind in RATES,
        )

    def _due_s(self, setpoint: Setpoint) -> float:
        return np.nan if setpoint.due_ns is None else self._seconds(setpoint.due_ns)

    def _trajectories(self, item: ChannelSettings, setpoints: Sequence[Setpoint]) -> Lines:
        """Return the points of whole-chunk setpoints, until the next one takes their place."""
        types = {each.sequence: each.type for each in self._record.payloads.get(
            f'{SETPOINT_TOPIC}{item.name}', ())}  # fmt: skip
        width, plans = len(item.joints), []
        for each in setpoints:
            values = np.array(each.values, np.float64)
            if not len(values) or len(values) % width or each.number not in types:
                continue
            points = deserialised(self._record.messages[each.number], types[each.number]).points
            offsets = [point.time_from_start for point in points]
            after_s = np.array([each.sec + each.nanosec / 1e9 for each in offsets])
            rows = values.reshape(-1, width)
            if len(after_s) == len(rows):
                plans.append((self._seconds(each.sent_ns) + after_s, rows))
        return spliced(item.joints, plans)

    def _measured(self, item: ChannelSettings) -> Lines | None:
        samples = [each for each in self._record.samples if each.input == item.state]
        held = [(each.born_ns, each.value) for each in samples if isinstance(each.value, Mapping)]
        if not held:
            return None
        names = tuple(name for name in item.joints if any(name in value for _, value in held))
        values = [[value.get(name, np.nan) for name in names] for _, value in held]
        return _rising(names, [self._seconds(born_ns) for born_ns, _ in held], values)

    def _predictions(self) -> Iterator[Prediction]:
        asked_ns = {each.act: each.t_ns for each in self._record.asks}
        for act, chunk in self._chunks.items():
            for item in self._settings.channels:
                rows = [row for row in (*chunk.rows, *chunk.beyond) if item.name in row.commands]
                if not rows or item.kind == 'delta' or act not in asked_ns:
                    continue
                t_s = self._seconds(asked_ns[act]) + np.array([r.offset_ns for r in rows]) / 1e9
                values = np.array([np.ravel(row.commands[item.name]) for row in rows], np.float64)
                yield Prediction(item.name, t_s, values, f'act {act}')

    def _acts(self) -> Iterator[Act]:
        answers = {each.act: each for each in self._record.answers}
        shown_ns = _first_shown(self._record)
        for ask in self._record.asks:
            answer = answers.get(ask.act)
            parts: dict[str, float] = {}
            if answer is not None:
                # A round reads the clock ahead: its act may begin before the instant it asks at.
                parts['queue'] = max(0, answer.began_ns - ask.t_ns) / 1e6
                parts.update(_taken(answer))
                if ask.t_ns in shown_ns and shown_ns[ask.t_ns] >= answer.ended_ns:
                    parts['until its first setpoint'] = (
                        shown_ns[ask.t_ns] - answer.ended_ns
                    ) / 1e6
            yield Act(
                name=f'act {ask.act}' + ('' if answer is None else f', step {answer.step}'),
                asked_s=self._seconds(ask.t_ns),
                answered_s=None if answer is None else self._seconds(answer.ended_ns),
                parts_ms=parts,
                outcome=_outcome(answer),
            )

    def _ages(self) -> Lines | None:
        born_ns = {each.serial: each.born_ns for each in self._record.samples}
        names = tuple(item.name for item in self._settings.inputs)
        seen: dict[str, int | None] = {}
        t_s, values = [], []
        for each in self._record.rounds:
            for snapshot in each.snapshots:
                seen.update(snapshot)
            ages = [_age_ms(each.start_ns, born_ns.get(seen.get(name) or 0)) for name in names]
            if each.snapshots and not np.isnan(ages).all():
                t_s.append(self._seconds(each.start_ns))
                values.append(ages)
        return _rising(names, t_s, values) if t_s else None

    def _frames(self) -> Iterator[Frame]:
        asked_ns = {each.act: each.t_ns for each in self._record.asks}
        for act, key, data in self._record.frames():
            if act in asked_ns:
                media = 'image/png' if data.startswith(b'\x89PNG') else 'image/jpeg'
                yield Frame(self._seconds(asked_ns[act]), key, f'act {act}', data, media)

    def _facts(self) -> dict[str, str]:
        begin, settings = self._record.begin, self._settings
        facts = {'instruction': begin.instruction, 'playback clock': begin.playback_clock}
        facts['row period'] = f'{begin.period_ns / 1e6:g} ms'
        for name in ('asking', 'handoff', 'worker_url', 'preview'):
            if name in settings.general:
                facts[name] = str(settings[name])
        facts['versions'] = ', '.join(f'{name} {text}' for name, text in begin.versions.items())
        end = self._record.end
        if end is not None:
            facts['hash of all setpoints'] = end.hash
        return {name: text for name, text in facts.items() if text}

    def _streams(self) -> bool:
        """Tell whether the policy reads more than an act's own observation."""
        begin = self._record.begin
        hz = 1e9 / begin.period_ns
        declared = declaration_of(begin.declaration).observations
        return obs_schedule.reads_past(obs_schedule.of(declared, hz))

    def _missing(self) -> Iterator[str]:
        record = self._record
        if record.broken:
            yield (
                f'The record breaks off after {self._seconds(self._last_ns()):.3f} s '
                f'({record.broken}): what is shown is what was written until then.'
            )
        if record.end is not None and record.end.dropped:
            lost = ', '.join(f'{count} of {kind}' for kind, count in record.end.dropped.items())
            yield f'The disk was too slow: {lost} were not written.'
        if not record.setpoints:
            yield 'No setpoint was sent.'
        if not record.asks:
            yield 'The policy was not asked.'
        elif not any(True for _ in record.frames()):
            yield f'No camera frame was recorded (images: {record.begin.images}).'
        if not any(each.reason for each in record.episodes):
            yield 'No episode ended in it, so that figures of the run itself are missing.'
        deltas = [item.name for item in self._settings.channels if item.kind == 'delta']
        if deltas:
            yield f'Chunks of {", ".join(deltas)} are not drawn: their rows are changes.'
        if self._streams():
            yield (
                'How much of the observation stream waited is not in an exact record; when it was '
                'full is among the events.'
            )


def _first_shown(record: RunRecord) -> Mapping[int, int]:
    """Return when the first setpoint of each observation went out, by its instant."""
    shown: dict[int, int] = {}
    for each in record.setpoints:
        if each.sampled_ns is not None:
            shown.setdefault(each.sampled_ns, each.sent_ns)
    return shown


def _taken(answer: Answer) -> dict[str, float]:
    """Return how long the network and the inference took, apart where the worker says so."""
    taken_ms, handler_ms = (answer.ended_ns - answer.began_ns) / 1e6, answer.handler_ms
    if handler_ms is None or handler_ms > taken_ms:
        return {'network and inference': taken_ms}
    return {'network': taken_ms - handler_ms, 'inference': handler_ms}


def _outcome(answer: Answer | None) -> str:
    if answer is None:
        return 'no answer is recorded'
    if answer.error is not None:
        return f'{answer.error.get("type", "")}: {answer.error.get("text", "")}'
    return '' if answer.chunk is not None else 'no rows'


def _age_ms(at_ns: int, born_ns: int | None) -> float:
    return np.nan if born_ns is None else (at_ns - born_ns) / 1e6


def _rising(names: tuple[str, ...], t_s: Sequence[float], values: Sequence[Any]) -> Lines:
    times: Floats = np.array(t_s, np.float64)
    order = np.argsort(times, kind='stable')
    rows = np.array(values, np.float64).reshape(len(times), len(names))
    return Lines(names, times[order], rows[order])

"""The events of an exact record: what was asked for, what took over, and what was amiss."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np
from seq_harness.bags.record_format import Arrived
from seq_harness.bags.record_reading import RunRecord
from seq_harness.bags.report.data import Event, EventKind
from seq_harness.playback.chunk import Chunk
from seq_harness.settings import ChannelSettings, Settings

WELL = 'accepted'
"""The verdict of an input on a message that it took as it was."""

STARVED_PERIODS = 2.5
"""So many row periods without a row are told; a late round alone takes fewer."""


def events_of(
    record: RunRecord, settings: Settings, chunks: Mapping[int, Chunk], start_ns: int
) -> list[Event]:
    """Return the events in order; `chunks` are those answered, by act, and times from start_ns."""
    found = [
        *_states(record),
        *_reads(record),
        *_joins(record),
        *_answers(record),
        *_unplayed(record, chunks),
        *_beyond_limits(record, settings, chunks),
        *_gaps(record),
        *_faults(record),
    ]
    ordered = sorted(found, key=lambda item: item[0])
    return [Event((t_ns - start_ns) / 1e9, kind, text) for t_ns, kind, text in ordered]


_Found = tuple[int, EventKind, str]


def _states(record: RunRecord) -> Iterator[_Found]:
    last = ''
    for each in record.episodes:
        text = f'episode {each.number}: {each.state}'
        text = f'episode {each.number} ended: {each.reason}' if each.reason else text
        if text != last:
            yield each.t_ns, EventKind.STATE, text
        last = text
    for request in record.requests:
        detail = f' ({request.detail})' if request.detail else ''
        refused = '' if request.accepted else f', refused: {request.reason}'
        yield request.t_ns, EventKind.STATE, f'request: {request.name}{detail}{refused}'


def _reads(record: RunRecord) -> Iterator[_Found]:
    """Yield what rounds read anew: an instruction, and that the observation stream was full."""
    was_full = False
    for each in record.rounds:
        for _, text in each.reads.get('instruction', ()):
            yield each.start_ns, EventKind.INSTRUCTION, str(text)
        # An observation that was taken leaves no trace here.
        full = bool(each.reads.get('observe'))
        if full and not was_full:
            yield each.start_ns, EventKind.FAULT, 'the observation stream is full: steps wait'
        was_full = full


def _joins(record: RunRecord) -> Iterator[_Found]:
    """Yield where rows begin to answer another observation than the row before."""
    acts = {each.t_ns: each.act for each in record.asks}
    last: int | None = None
    for each in record.setpoints:
        if each.sampled_ns is None or each.due_ns is None:
            continue
        if each.sampled_ns != last:
            which = acts.get(each.sampled_ns)
            name = 'a new chunk' if which is None else f'the chunk of act {which}'
            yield each.sent_ns, EventKind.JOIN, f'{name} takes over'
        last = each.sampled_ns


def _answers(record: RunRecord) -> Iterator[_Found]:
    for each in record.answers:
        if each.error is not None:
            kind = EventKind.GUARD if 'cause' in each.error else EventKind.FAULT
            text = f'{each.error.get("type", "")}: {each.error.get("text", "")}'
            yield each.ended_ns, kind, f'act {each.act} failed: {text}'
        elif each.chunk is not None and each.chunk.get('end_reason'):
            reason = each.chunk['end_reason']
            yield each.ended_ns, EventKind.STATE, f'act {each.act}: the policy ends: {reason}'


def _unplayed(record: RunRecord, chunks: Mapping[int, Chunk]) -> Iterator[_Found]:
    """Yield the answers of which no row went out: others did since, or they were refused."""
    played = {each.sampled_ns for each in record.setpoints}
    asked_ns = {each.act: each.t_ns for each in record.asks}
    last_ns = max((t_ns for t_ns in played if t_ns is not None), default=0)
    unplayed = [
        (asked_ns[each.act], each)
        for each in record.answers
        if each.act in chunks and chunks[each.act].rows and asked_ns.get(each.act) not in played
    ]
    passed = [each for t_ns, each in unplayed if t_ns < last_ns]
    refused, said = _refusals(record)
    later = [each for t_ns, each in unplayed if t_ns >= last_ns][: max(0, refused - len(passed))]
    for number, answer in enumerate((*passed, *later), 1):
        # The run counts refusals by cause, and tells of the last one alone.
        why = f': {said}' if said and number == refused == len(passed) + len(later) else ''
        yield answer.ended_ns, EventKind.GUARD, f'no row of act {answer.act} was played{why}'


def _refusals(record: RunRecord) -> tuple[int, str]:
    """Return how many chunks the episodes refused, and what was said of the last one."""
    counted, said = 0, ''
    for each in record.episodes:
        told = each.figures.get('chunks', {})
        counted += sum(told.get('refused', {}).values())
        said = told.get('last_refusal') or said
    return counted, said


def _beyond_limits(
    record: RunRecord, settings: Settings, chunks: Mapping[int, Chunk]
) -> Iterator[_Found]:
    """Yield the answers with rows outside the limits of a joint."""
    action = settings.general.get('guard_limits', 'refuse')
    for answer in record.answers:
        chunk = chunks.get(answer.act)
        for item in settings.channels if chunk is not None else ():
            said = _breach(chunk, item) if chunk is not None else ''
            if said:
                yield (
                    answer.ended_ns,
                    EventKind.GUARD,
                    f'act {answer.act}: {said} (guard_limits: {action})',
                )


def _breach(chunk: Chunk, item: ChannelSettings) -> str:
    """Say which row of a chunk is outside the limits first, and how many are; empty for none."""
    if item.kind not in ('position', 'angle') or len(item.lower) != len(item.joints):
        return ''
    rows = [np.ravel(row.commands[item.name]) for row in chunk.rows if item.name in row.commands]
    if not rows or any(len(row) != len(item.joints) for row in rows):
        return ''
    values = np.array(rows, np.float64)
    outside = ~((values >= item.lower) & (values <= item.upper))
    if not outside.any():
        return ''
    row, column = np.argwhere(outside)[0]
    return (
        f'{int(outside.any(axis=1).sum())} rows outside limits, the first is row {row}: '
        f'{item.joints[column]} = {values[row, column]:.4g}, allowed '
        f'{item.lower[column]:g} to {item.upper[column]:g}'
    )


def _gaps(record: RunRecord) -> Iterator[_Found]:
    """Yield the stretches without a row, but for those in which the episode was held or over."""
    changes = np.array([each.t_ns for each in record.episodes], np.int64)
    sent_ns = sorted({each.sent_ns for each in record.setpoints if each.due_ns is not None})
    for before, after in pairwise(sent_ns):
        if after - before > STARVED_PERIODS * record.begin.period_ns:
            if ((changes > before) & (changes < after)).any():
                continue
            text = f'no row for {(after - before) / 1e6:.0f} ms'
            yield before, EventKind.STARVED, text


def _faults(record: RunRecord) -> Iterator[_Found]:
    for each in record.notices:
        text = f'{each.name}: {each.verdict}: {each.reason}' if each.reason else (
            f'{each.name}: well again')  # fmt: skip
        yield each.t_ns, EventKind.FAULT, text
    by_verdict: dict[tuple[str, str], list[Arrived]] = {}
    for message in record.arrived:
        if message.verdict != WELL:
            by_verdict.setdefault((message.input, message.verdict), []).append(message)
    for (name, verdict), messages in by_verdict.items():
        yield messages[0].t_ns, EventKind.FAULT, _many(name, verdict, messages)


def _many(name: str, verdict: str, messages: Sequence[Arrived]) -> str:
    reason = f': {messages[0].reason}' if messages[0].reason else ''
    count = f' ({len(messages)} messages, the first)' if len(messages) > 1 else ''
    return f'{name}: {verdict}{reason}{count}'

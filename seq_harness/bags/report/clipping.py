"""A part of what a report shows."""

from __future__ import annotations

from dataclasses import replace

from seq_harness.bags.records import BagError
from seq_harness.bags.report.data import Channel, Lines, ReportData


def clipped(data: ReportData, from_s: float, to_s: float) -> ReportData:
    """
    Return what lies between two instants; times go on counting from the same start.

    Raises
    ------
    BagError
        The run was over before the first of them, or the second lies before it.

    """
    if from_s > data.length_s or to_s < from_s:
        raise BagError(
            f'{data.title} lasts {data.length_s:.3f} s: nothing lies from {from_s:g} s '
            f'to {to_s:g} s'
        )

    def within(at_s: float) -> bool:
        return from_s <= at_s <= to_s

    return replace(
        data,
        length_s=max(0.0, min(data.length_s, to_s) - from_s),
        channels=[_channel(each, from_s, to_s) for each in data.channels],
        states=[_lines(each, from_s, to_s) for each in data.states],
        predictions=[each for each in data.predictions if len(each.t_s) and within(each.t_s[0])],
        acts=[each for each in data.acts if within(each.asked_s)],
        events=[each for each in data.events if within(each.at_s)],
        ages_ms=None if data.ages_ms is None else _lines(data.ages_ms, from_s, to_s),
        backlog=None if data.backlog is None else _lines(data.backlog, from_s, to_s),
        frames=[each for each in data.frames if within(each.at_s)],
        missing=[
            f'Only from {from_s:g} s to {min(to_s, data.length_s):g} s is shown; what the run '
            'counted itself is of all of it.',
            *data.missing,
        ],
    )


def _channel(channel: Channel, from_s: float, to_s: float) -> Channel:
    lines = channel.commanded
    held = (lines.t_s >= from_s) & (lines.t_s <= to_s)
    measured = channel.measured
    return replace(
        channel,
        commanded=_lines(lines, from_s, to_s),
        measured=None if measured is None else _lines(measured, from_s, to_s),
        due_s=channel.due_s[held] if len(channel.due_s) == len(lines) else channel.due_s,
    )


def _lines(lines: Lines, from_s: float, to_s: float) -> Lines:
    held = (lines.t_s >= from_s) & (lines.t_s <= to_s)
    return Lines(lines.names, lines.t_s[held], lines.values[held])
